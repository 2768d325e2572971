"""Edit a text in the user's editor. If it cannot be saved, its file is kept."""

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

_FALLBACKS = ("nano", "vi")


class EditedFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept = False

    @property
    def text(self) -> str:
        try:
            return self.path.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise Invalid("The edited text is not UTF-8.", hint=f"Your text is in {self.keep()}.") from error

    def keep(self) -> Path:
        self.kept = True
        return self.path


@contextmanager
def edit_text(text: str, name: str) -> Iterator[EditedFile]:
    folder = Path(tempfile.mkdtemp(prefix="labwright-"))
    edited = EditedFile(folder / name)
    try:
        edited.path.write_bytes(text.encode())
        _open(edited)
        yield edited
    finally:
        if not edited.kept:
            shutil.rmtree(folder)


def _open(edited: EditedFile) -> None:
    command = _editor()
    try:
        code = subprocess.run([*command, str(edited.path)], check=False).returncode
    except OSError as error:
        raise Invalid(f"{command[0]} cannot be started: {error.strerror}.", hint="Set EDITOR.") from error
    if code != 0:
        raise Invalid(f"{command[0]} exited with {code}; nothing was saved.", hint=f"Your text is in {edited.keep()}.")


def _editor() -> list[str]:
    chosen = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if chosen:
        return chosen
    found = next((name for name in _FALLBACKS if shutil.which(name)), None)
    if found is None:
        raise Invalid("No editor was found.", hint="Set EDITOR, for example: export EDITOR=nano")
    return [found]
