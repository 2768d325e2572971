"""The verbs of settings: what holds now and after the next start, and changing it.

What is written goes into `labwright.toml`, since that is what people read, copy and keep in version control.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.event import Event, EventType
from labwright.files import write_whole
from labwright.settings import AT_START, BOUNDS, Settings, checked_value, nearest, settings_of, variable_of

Value = str | bool | int | float
_NAMES = [field.name for field in fields(Settings)]
# Where the server listens and keeps its state: whoever starts it decides that.
_BY_HAND = frozenset({"host", "port", "allowed_hosts", "lease_dir", "state_dir"})


class Taker(Protocol):
    """Who else has to be content with the settings, and goes on with them."""

    def targets(self, settings: Settings) -> object: ...

    def use(self, settings: Settings) -> None: ...


def view(lab: Lab, environ: Mapping[str, str] = os.environ) -> list[dict[str, Any]]:
    try:
        following = settings_of(lab.paths.config, ConfigFile(lab.paths.config).data(), environ)
    except Invalid:
        following = lab.settings  # half-edited; `labwright doctor` tells
    defaults = Settings()
    return [
        {
            "name": name,
            "value": getattr(lab.settings, name),
            "default": getattr(defaults, name),
            "bounds": BOUNDS.get(name),
            "following": getattr(following, name),
            "by_variable": variable_of(name) in environ,
            "editable": name not in _BY_HAND,
            "at_start": name in AT_START,
        }
        for name in _NAMES
    ]


def change(
    lab: Lab, changes: Mapping[str, Value | None], actor: Actor, taker: Taker, environ: Mapping[str, str] = os.environ
) -> None:
    """None goes back to the default. All of it or nothing."""
    for name, value in changes.items():
        _check_name(name, environ)
        if value is not None:  # before it is looked at as a line of the file, which does not have it
            checked_value(name, name, value, "Nothing was saved")
    with lab.settings_lock:
        file = ConfigFile(lab.paths.config)
        wanted = with_values(file.data(), changes)

        def edit(document: Any) -> None:
            for name, value in changes.items():
                if value is None:
                    document.pop(name, None)
                else:
                    document[name] = value

        def check(data: Data) -> None:
            taker.targets(settings_of(lab.paths.config, data, environ))

        file.change(wanted, edit, check)
        _take(lab, settings_of(lab.paths.config, wanted, environ), taker)
    tell(lab, sorted(changes), actor)


def tell(lab: Lab, names: list[str], actor: Actor) -> None:
    with lab.db.transaction() as tx:
        tx.emit(Event(type=EventType.SETTINGS_CHANGED, actor=str(actor), time=now(), data={"changed": names}))


def _take(lab: Lab, following: Settings, taker: Taker) -> None:
    live = {name: getattr(following, name) for name in _NAMES if name not in AT_START}
    lab.settings = replace(lab.settings, **live)
    taker.use(lab.settings)
    lab.wake()


def _check_name(name: str, environ: Mapping[str, str]) -> None:
    if name not in _NAMES:
        near = nearest(name, _NAMES)
        raise Invalid(f"There is no setting {name!r}.", hint=f"Did you mean {near}?" if near else "", field=(name,))
    if name in _BY_HAND:
        hint = "Write it into labwright.toml yourself, then start the server again."
        raise Conflict(f"{name} is set by whoever starts the server, not from here.", hint=hint)
    if variable_of(name) in environ:
        hint = "Unset the variable, or change it, where the server is started."
        raise Conflict(f"{variable_of(name)} is set in the server's environment and wins over the file.", hint=hint)


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
