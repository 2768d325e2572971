"""Settings: a variable wins over the file, the file over the default; nonsense is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from labwright.domain.errors import Invalid
from labwright.settings import Settings, load_settings


def test_with_nothing_set_the_defaults_hold(tmp_path: Path) -> None:
    assert load_settings(tmp_path, {}) == Settings()


def test_a_variable_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "labwright.toml").write_text("port = 1\nmax_parallel = 7\ngrace_seconds = 3\n")
    settings = load_settings(tmp_path, {"LABWRIGHT_PORT": "2"})
    assert (settings.port, settings.max_parallel, settings.grace_seconds) == (2, 7, 3.0)


@pytest.mark.parametrize(("text", "value"), [("1", True), ("no", False), ("TRUE", True), ("0", False)])
def test_yes_and_no_are_read_as_people_write_them(tmp_path: Path, text: str, value: bool) -> None:
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
def test_a_variable_that_makes_no_sense_is_named(tmp_path: Path, name: str, text: str) -> None:
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
def test_a_file_that_makes_no_sense_is_refused_with_the_place(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "labwright.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(Invalid, match=named):
        load_settings(tmp_path, {})


def test_tables_are_left_to_their_readers(tmp_path: Path) -> None:
    (tmp_path / "labwright.toml").write_text("[model]\nname = 'x'\n")
    assert load_settings(tmp_path, {}) == Settings()
