"""Settings are a person's: what a command makes in their place does not stay, be it a file, a link or a folder."""

from __future__ import annotations

import itertools
import os
from pathlib import Path


class SettingsFile:
    """As it is when a command begins. One that is there cannot be changed inside; a link to one can be replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._link = os.readlink(path) if path.is_symlink() else None
        self._was_there = os.path.lexists(path)

    def as_it_was(self) -> str:
        """What was done about it, in words; empty where nothing had to be."""
        link = os.readlink(self._path) if self._path.is_symlink() else None
        if not os.path.lexists(self._path) or (self._was_there and link == self._link):
            self._put_link_back()
            return ""
        refused = self._free_name()
        self._path.rename(refused)
        self._put_link_back()
        return f"{self._path.name} holds settings, which are a person's to make; it was renamed to {refused.name}."

    def _put_link_back(self) -> None:
        if self._link is not None and not os.path.lexists(self._path):
            self._path.symlink_to(self._link)

    def _free_name(self) -> Path:
        names = (self._path.with_name(f"{self._path.name}.refused{number or ''}") for number in itertools.count())
        return next(name for name in names if not os.path.lexists(name))
