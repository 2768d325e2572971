"""A text in the user's own editor. What was typed is never lost: where it cannot be used, its file stays."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labwright.domain.errors import Invalid

_USUAL = ("nano", "vi")


class Edited:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept = False

    @property
    def text(self) -> str:
        try:
            return self.path.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise Invalid("The edited text is not UTF-8.", hint=f"It is in {self.keep()}.") from error

    def keep(self) -> Path:
        self.kept = True
        return self.path


@contextmanager
def edit_text(text: str, name: str) -> Iterator[Edited]:
    folder = Path(tempfile.mkdtemp(prefix="labwright-"))
    edited = Edited(folder / name)
    try:
        edited.path.write_bytes(text.encode())
        _open(edited)
        yield edited
    finally:
        if not edited.kept:
            shutil.rmtree(folder)


def _open(edited: Edited) -> None:
    command = _editor()
    try:
        code = subprocess.run([*command, str(edited.path)], check=False).returncode
    except OSError as error:
        raise Invalid(f"{command[0]} cannot be started: {error.strerror}.", hint="Set EDITOR.") from error
    if code != 0:
        raise Invalid(f"{command[0]} ended with {code}; nothing was saved.", hint=f"The text is in {edited.keep()}.")


def _editor() -> list[str]:
    chosen = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if chosen:
        return chosen
    found = next((name for name in _USUAL if shutil.which(name)), None)
    if found is None:
        raise Invalid("There is no editor.", hint="Set EDITOR, for example: export EDITOR=nano")
    return [found]
