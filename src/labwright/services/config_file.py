"""Changes to `labwright.toml` that keep its comments and its order, and are there whole or not at all."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labwright.domain.errors import Invalid
from labwright.files import write_whole

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

Data = dict[str, Any]
_READABLE = 0o644


class ConfigFile:
    def __init__(self, path: Path) -> None:
        self._path = Path(os.path.realpath(path))  # a link stays one

    def text(self) -> str:
        try:
            return self._path.read_text()
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise Invalid(f"{self._path} cannot be read: {error}.", hint="Mend the file, then try again.") from error

    def data(self) -> Data:
        return self._parsed(self.text())

    def change(self, wanted: Data, edit: Callable[[TOMLDocument], None], check: Callable[[Data], object]) -> None:
        """`edit` makes the file say `wanted`; `check` refuses it before anything is written."""
        import tomlkit  # here, as settings are changed now and then

        document = tomlkit.parse(self._valid(self.text()))
        edit(document)
        text = tomlkit.dumps(document)
        if self._parsed(text) != wanted:
            hint = f"Change {self._path} by hand; it was left as it is."
            raise Invalid("The file is written in a way that cannot be changed safely.", hint=hint)
        check(wanted)
        self._write(text)

    def _write(self, text: str) -> None:
        mode = _READABLE
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(self._path.stat().st_mode)
        write_whole(self._path, text.encode())
        self._path.chmod(mode)

    def _valid(self, text: str) -> str:
        self._parsed(text)
        return text

    def _parsed(self, text: str) -> Data:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            hint = "Mend the line it names, then try again."
            raise Invalid(f"{self._path} is not valid TOML: {error}.", hint=hint) from error


def with_values(data: Mapping[str, Any], changes: Mapping[str, Any]) -> Data:
    """None takes a value out."""
    return {name: value for name, value in {**data, **changes}.items() if value is not None}
