"""A change to `labwright.toml` keeps everything else in it."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from labwright.domain.actor import PERSON
from labwright.domain.errors import Conflict, Invalid
from labwright.services import settings
from labwright.services.settings import ConfigFile
from labwright.settings import Settings
from tests.support.lab import lab_in

FILE = """\
# how we run things
keep_days = 30     # a month

model = "ollama:qwen3:8b"  # on gpu1

[slurm]
partition = "gpu"  # the big one

[[notify]]
kind = "desktop"
"""


class Content:
    """A file with every kind of content."""

    def __init__(self) -> None:
        self.used: list[Settings] = []

    def targets(self, settings: Settings) -> object:
        if settings.model == "nonsense":
            raise Invalid("model names no provider.")
        return None

    def use(self, settings: Settings) -> None:
        self.used.append(settings)


@pytest.fixture
def lab(tmp_path: Path) -> Any:
    with lab_in(tmp_path / "project") as made:
        yield made


def change(lab: Any, changes: dict[str, Any], environ: dict[str, str] | None = None) -> Content:
    content = Content()
    settings.change(lab, changes, PERSON, content, environ or {})
    return content


def test_comments_order_and_tables_stay(lab: Any) -> None:
    lab.paths.config.write_text(FILE)
    lab.paths.config.chmod(0o640)
    content = change(lab, {"keep_days": 60, "session_usd_limit": 2.5})
    text = lab.paths.config.read_text()
    assert text.replace("keep_days = 60 ", "keep_days = 30 ").replace("session_usd_limit = 2.5\n", "") == FILE
    assert tomllib.loads(text) == {**tomllib.loads(FILE), "keep_days": 60, "session_usd_limit": 2.5}
    assert lab.paths.config.stat().st_mode & 0o777 == 0o640
    assert (lab.settings.keep_days, lab.settings.session_usd_limit) == (60, 2.5)
    assert content.used == [lab.settings]


def test_missing_file_is_created_and_null_restores_the_default(lab: Any) -> None:
    change(lab, {"max_parallel": 3})
    assert lab.paths.config.read_text() == "max_parallel = 3\n"
    change(lab, {"max_parallel": None, "keep_days": 10})
    assert tomllib.loads(lab.paths.config.read_text()) == {"keep_days": 10}
    assert lab.settings.max_parallel == 0


def test_link_stays_a_link(lab: Any, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.toml"
    real.write_text("keep_days = 5\n")
    lab.paths.config.symlink_to(real)
    change(lab, {"keep_days": 6})
    assert lab.paths.config.is_symlink()
    assert real.read_text() == "keep_days = 6\n"


def test_settings_read_at_start_wait_for_the_next_start(lab: Any) -> None:
    before = lab.settings.tmux
    change(lab, {"tmux": not before})
    (shown,) = [one for one in settings.view(lab, {}) if one["name"] == "tmux"]
    assert (shown["value"], shown["following"], shown["at_start"]) == (before, not before, True)


BAD: list[tuple[dict[str, Any], str, type[Exception]]] = [
    ({"keep_days": -1}, "keep_days must be a whole number from 0", Invalid),
    ({"keep_days": "many"}, "keep_days must be a whole number", Invalid),
    ({"keep_dayz": 1}, "no setting 'keep_dayz'", Invalid),
    ({"host": "0.0.0.0"}, "host cannot be changed while the server runs", Conflict),
    ({"keep_days": 3, "model": "nonsense"}, "names no provider", Invalid),
]


@pytest.mark.parametrize(("changes", "words", "kind"), BAD)
def test_bad_change_changes_nothing(lab: Any, changes: dict[str, Any], words: str, kind: type[Exception]) -> None:
    lab.paths.config.write_text(FILE)
    before = lab.settings
    with pytest.raises(kind, match=words):
        change(lab, changes)
    assert lab.paths.config.read_text() == FILE
    assert lab.settings == before


def test_setting_overridden_by_the_environment_is_refused(lab: Any) -> None:
    with pytest.raises(Conflict, match="LABWRIGHT_KEEP_DAYS"):
        change(lab, {"keep_days": 3}, {"LABWRIGHT_KEEP_DAYS": "7"})
    assert not lab.paths.config.exists()


def test_broken_file_is_left_unchanged(lab: Any) -> None:
    lab.paths.config.write_text("keep_days = = 3\n")
    with pytest.raises(Invalid, match="not valid TOML"):
        change(lab, {"keep_days": 4})
    assert lab.paths.config.read_text() == "keep_days = = 3\n"


def test_interrupted_write_leaves_the_old_file(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.paths.config.write_text(FILE)

    def cut(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", cut)
    with pytest.raises(OSError, match="no space"):
        change(lab, {"keep_days": 1})
    assert ConfigFile(lab.paths.config).text() == FILE
