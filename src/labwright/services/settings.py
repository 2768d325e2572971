"""The verbs of settings: view and change. Changes are written to `labwright.toml`, which users read and keep."""

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

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

Data = dict[str, Any]
_READABLE = 0o644


class ConfigFile:
    def __init__(self, path: Path) -> None:
        self._path = Path(os.path.realpath(path))  # keep a symbolic link

    def text(self) -> str:
        try:
            return self._path.read_text()
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise Invalid(f"{self._path} cannot be read: {error}.", hint="Fix the file, then try again.") from error

    def data(self) -> Data:
        return self._parsed(self.text())

    def change(self, changed: Data, edit: Callable[[TOMLDocument], None], check: Callable[[Data], object]) -> None:
        """Apply `edit`, after which the file must hold `changed`. `check` may refuse before anything is written."""
        import tomlkit  # here, because settings change rarely

        before = self.text()
        self._parsed(before)  # raises Invalid
        document = tomlkit.parse(before)
        edit(document)
        text = tomlkit.dumps(document)
        if self._parsed(text) != changed:
            hint = f"Edit {self._path} by hand. It was not changed."
            raise Invalid("The file has a layout that cannot be changed safely.", hint=hint)
        check(changed)
        mode = _READABLE
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(self._path.stat().st_mode)
        write_whole(self._path, text.encode())
        self._path.chmod(mode)

    def _parsed(self, text: str) -> Data:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            hint = "Fix that line, then try again."
            raise Invalid(f"{self._path} is not valid TOML: {error}.", hint=hint) from error


def with_values(data: Mapping[str, Any], changes: Mapping[str, Any]) -> Data:
    """Return the data with the changes. None removes a value."""
    return {name: value for name, value in {**data, **changes}.items() if value is not None}


Value = str | bool | int | float
_NAMES = [field.name for field in fields(Settings)]
# Only a restart changes these: they decide where the server listens and where its state is.
_AT_START_ONLY = frozenset({"host", "port", "allowed_hosts", "lease_dir", "state_dir"})


class SettingsUser(Protocol):
    """A part of the server that checks new settings and applies them."""

    def targets(self, settings: Settings) -> object: ...

    def use(self, settings: Settings) -> None: ...


def view(lab: Lab, environ: Mapping[str, str] = os.environ) -> list[dict[str, Any]]:
    try:
        following = settings_of(lab.paths.config, ConfigFile(lab.paths.config).data(), environ)
    except Invalid:
        following = lab.settings  # the file is invalid; `labwright doctor` says why
    defaults = Settings()
    return [
        {
            "name": name,
            "value": getattr(lab.settings, name),
            "default": getattr(defaults, name),
            "bounds": BOUNDS.get(name),
            "following": getattr(following, name),
            "by_variable": variable_of(name) in environ,
            "editable": name not in _AT_START_ONLY,
            "at_start": name in AT_START,
        }
        for name in _NAMES
    ]


def change(
    lab: Lab,
    changes: Mapping[str, Value | None],
    actor: Actor,
    user: SettingsUser,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Change settings, all or none. None restores a default."""
    for name, value in changes.items():
        _check_name(name, environ)
        if value is not None:  # first, since the file does not have this line yet
            checked_value(name, name, value, "Nothing was saved")
    with lab.settings_lock:
        file = ConfigFile(lab.paths.config)
        changed = with_values(file.data(), changes)

        def edit(document: Any) -> None:
            for name, value in changes.items():
                if value is None:
                    document.pop(name, None)
                else:
                    document[name] = value

        def check(data: Data) -> None:
            user.targets(settings_of(lab.paths.config, data, environ))

        file.change(changed, edit, check)
        following = settings_of(lab.paths.config, changed, environ)
        live = {name: getattr(following, name) for name in _NAMES if name not in AT_START}
        lab.settings = replace(lab.settings, **live)
        user.use(lab.settings)
        lab.wake()
    emit_changed(lab, sorted(changes), actor)


def emit_changed(lab: Lab, names: list[str], actor: Actor) -> None:
    with lab.db.transaction() as tx:
        tx.emit(Event(type=EventType.SETTINGS_CHANGED, actor=str(actor), time=now(), data={"changed": names}))


def _check_name(name: str, environ: Mapping[str, str]) -> None:
    if name not in _NAMES:
        near = nearest(name, _NAMES)
        raise Invalid(f"There is no setting {name!r}.", hint=f"Did you mean {near}?" if near else "", field=(name,))
    if name in _AT_START_ONLY:
        hint = "Edit labwright.toml, then restart the server."
        raise Conflict(f"{name} cannot be changed while the server runs.", hint=hint)
    if variable_of(name) in environ:
        hint = "Unset or change the variable, then restart the server."
        raise Conflict(f"{variable_of(name)} is set in the server's environment and overrides the file.", hint=hint)
