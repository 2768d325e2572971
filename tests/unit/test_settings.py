"""Settings: a variable wins over the file, the file over the default. Invalid values are refused by name."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from labwright.domain.errors import Invalid
from labwright.settings import BOUNDS, Settings, load_settings, unknown_tables


def test_defaults_apply_if_nothing_is_set(tmp_path: Path) -> None:
    assert load_settings(tmp_path, {}) == Settings()


def test_variable_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "labwright.toml").write_text("port = 1\nmax_parallel = 7\ngrace_seconds = 3\n")
    settings = load_settings(tmp_path, {"LABWRIGHT_PORT": "2"})
    assert (settings.port, settings.max_parallel, settings.grace_seconds) == (2, 7, 3.0)


@pytest.mark.parametrize(("text", "value"), [("1", True), ("no", False), ("TRUE", True), ("0", False)])
def test_yes_and_no_have_common_spellings(tmp_path: Path, text: str, value: bool) -> None:
    assert load_settings(tmp_path, {"LABWRIGHT_TMUX": text}).tmux is value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("LABWRIGHT_PORT", "http"),
        ("LABWRIGHT_PORT", ""),
        ("LABWRIGHT_TMUX", "maybe"),
        ("LABWRIGHT_AGEING_SECONDS", "soon"),
        ("LABWRIGHT_LOG_CAP_MB", "1.5"),
    ],
)
def test_invalid_variable_is_named(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(Invalid, match=name):
        load_settings(tmp_path, {name: text})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("port = 'a'\n", "port"),
        ("tmux = 1\n", "tmux"),
        ("log_cap_mb = true\n", "log_cap_mb"),
        ("prot = 1\n", "prot"),
        ("port = \n", "not valid TOML"),
        ("\xff", "not valid TOML"),
    ],
)
def test_invalid_file_is_refused_with_the_location(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "labwright.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(Invalid, match=named):
        load_settings(tmp_path, {})


def test_unreadable_file_is_refused_with_a_message(tmp_path: Path) -> None:
    (tmp_path / "labwright.toml").mkdir()
    with pytest.raises(Invalid, match=r"labwright\.toml cannot be read: Is a directory\."):
        load_settings(tmp_path, {})


def test_tables_are_left_to_their_readers(tmp_path: Path) -> None:
    (tmp_path / "labwright.toml").write_text("[model]\nname = 'x'\n")
    assert load_settings(tmp_path, {}) == Settings()


def test_every_number_has_limits_and_a_default_within() -> None:
    defaults = {field.name: field.default for field in fields(Settings)}
    assert set(BOUNDS) == {name for name, value in defaults.items() if type(value) in (int, float)}
    assert all(low <= defaults[name] <= high for name, (low, high) in BOUNDS.items())


@pytest.mark.parametrize("text", [str(10**9), "-1", "nan", "inf", "", " ", "1e3"])
def test_absurd_number_of_runs_is_refused_with_limits_and_a_hint(tmp_path: Path, text: str) -> None:
    with pytest.raises(Invalid) as refused:
        load_settings(tmp_path, {"LABWRIGHT_MAX_PARALLEL": text})
    assert refused.value.message.startswith("LABWRIGHT_MAX_PARALLEL must be a whole number from 0 to 10000, not ")
    assert refused.value.hint == "Fix or unset the variable; the default is 0."


@pytest.mark.parametrize("text", ["nan", "inf", "-0.1", "1e300", ""])
def test_absurd_time_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Invalid, match="LABWRIGHT_GRACE_SECONDS must be a number from 0 to 3600"):
        load_settings(tmp_path, {"LABWRIGHT_GRACE_SECONDS": text})


@pytest.mark.parametrize("line", ["grace_seconds = nan", f"grace_seconds = 1{'0' * 400}", "max_parallel = 1000000000"])
def test_file_has_the_same_limits(tmp_path: Path, line: str) -> None:
    (tmp_path / "labwright.toml").write_text(f"{line}\n")
    with pytest.raises(Invalid, match=f"{line.split()[0]} must be a"):
        load_settings(tmp_path, {})


def test_empty_address_is_refused_since_it_would_listen_everywhere(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="LABWRIGHT_HOST must be text that is not empty"):
        load_settings(tmp_path, {"LABWRIGHT_HOST": ""})


def test_mistyped_name_is_reported_with_the_nearest_valid_one(tmp_path: Path) -> None:
    config = tmp_path / "labwright.toml"
    config.write_text("max_paralel = 1\n")
    with pytest.raises(Invalid) as refused:
        load_settings(tmp_path, {})
    assert refused.value.hint == "Did you mean max_parallel?"
    config.write_text("[[alert]]\nmetric = 'x'\n[metrics]\n[zebra]\n")
    alert, zebra = unknown_tables(tmp_path)
    assert alert == f"{config}: [alert] has no effect: did you mean [[alerts]]?"
    assert "[[notify]]" in zebra
