"""Notification channels in `labwright.toml`. Addresses are secrets: they come from a variable or a private file."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from labwright.compute.notify.message import Notification, NotificationKind
from labwright.compute.notify.senders import Desktop, Sender, Slack, Webhook, is_private
from labwright.domain.alert import Severity
from labwright.domain.errors import Invalid
from labwright.paths import ProjectPaths
from labwright.settings import load_tables

TABLE = "notify"
_KEYS = ("kind", "name", "url_env", "url_file", "min_severity", "events", "answers")
_WITH_ADDRESS: dict[str, Callable[[str], Sender]] = {"webhook": Webhook, "slack": Slack}
_KINDS = (*_WITH_ADDRESS, "desktop")
_ORDER = list(Severity)
_CHOICES = (
    NotificationKind.ALERT,
    NotificationKind.RUN_FAILED,
    NotificationKind.RUN_FINISHED,
    NotificationKind.APPROVAL,
)
Word = TypeVar("Word", NotificationKind, Severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    name: str
    kind: str
    events: tuple[NotificationKind, ...]
    min_severity: Severity
    url_env: str = ""
    answers: bool = False  # approval requests carry a token to answer them
    sender: Sender = field(repr=False)

    def wants(self, message: Notification) -> bool:
        """Return whether the channel gets a message. `min_severity` applies to alerts only."""
        severe = _ORDER.index(message.severity) >= _ORDER.index(self.min_severity)
        return message.kind in self.events and (severe or message.kind is not NotificationKind.ALERT)


def load_channels(paths: ProjectPaths, environ: Mapping[str, str] = os.environ) -> list[Channel]:
    """Load the channels. Raises Invalid if the file is wrong, so that the server does not start with it."""
    return channels_of(paths, load_tables(paths.project, TABLE), environ)


def channels_of(
    paths: ProjectPaths, tables: Sequence[dict[str, Any]], environ: Mapping[str, str] = os.environ
) -> list[Channel]:
    """Return the channels that these tables describe."""
    found: list[Channel] = []
    for number, table in enumerate(tables, 1):
        entry = _Entry(f"{paths.config}: [[{TABLE}]] number {number}", table, paths.project, environ)
        channel = entry.channel(sum(table.get("kind") == other.kind for other in found))
        if channel.name in {other.name for other in found}:
            raise entry.wrong(f"another channel has the name {channel.name!r}", "Give each channel its own `name`.")
        found.append(channel)
    return found


class PrivateFiles:
    """The files with addresses that `labwright.toml` names: no snapshot and no diff contains them."""

    def __init__(self, paths: ProjectPaths) -> None:
        self._paths = paths
        self._read_at: tuple[int, int] | None = None
        self._found: frozenset[str] = frozenset()

    def __call__(self) -> frozenset[str]:
        """Return real paths. Called for every snapshot, so the file is read only if it has changed."""
        try:
            info = os.stat(self._paths.config)
        except FileNotFoundError:
            return frozenset()
        if self._read_at != (info.st_mtime_ns, info.st_size):
            self._read_at = (info.st_mtime_ns, info.st_size)
            with contextlib.suppress(Invalid):  # while it is being edited, the files named before stay private
                names = [table.get("url_file") for table in load_tables(self._paths.project, TABLE)]
                self._found = frozenset(
                    os.path.realpath(self._paths.project / Path(name).expanduser())
                    for name in names
                    if isinstance(name, str) and name
                )
        return self._found


class _Entry:
    """One table of the file. Errors name the table, but never a value that may be an address."""

    def __init__(self, where: str, table: dict[str, Any], project: Path, environ: Mapping[str, str]) -> None:
        self._where = where
        self._table = table
        self._project = project
        self._environ = environ

    def wrong(self, what: str, hint: str = "") -> Invalid:
        return Invalid(f"{self._where}: {what}.", hint=hint)

    def channel(self, others: int) -> Channel:
        """Return the channel. `others`: how many channels of its kind came before, for its default name."""
        if "url" in self._table:
            hint = 'Write url_env = "MY_WEBHOOK_URL" and set that variable where the server is started, or url_file.'
            raise self.wrong("the address is a secret and must not be in this file", hint)
        if unknown := sorted(set(self._table) - set(_KEYS)):
            raise self.wrong(f"unknown {', '.join(unknown)}", f"Known: {', '.join(_KEYS)}.")
        kind = self._text("kind")
        if kind not in _KINDS:
            raise self.wrong("`kind` is missing or unknown", f"Choose: {', '.join(_KINDS)}.")
        return Channel(
            name=self._text("name") or (f"{kind}-{others + 1}" if others else kind),
            kind=kind,
            events=self._events(),
            min_severity=self._one_of("min_severity", self._text("min_severity") or Severity.WARNING, list(Severity)),
            url_env=self._text("url_env"),
            answers=self._answers(kind),
            sender=self._sender(kind),
        )

    def _answers(self, kind: str) -> bool:
        """Return whether messages carry a token. Only a program may get one: in a chat room anybody could use it."""
        answers = self._table.get("answers", False)
        if not isinstance(answers, bool):
            raise self.wrong("`answers` must be true or false")
        if answers and kind != "webhook":
            raise self.wrong(f"a {kind} channel cannot answer", "Only a webhook can; leave `answers` out.")
        if answers and NotificationKind.APPROVAL not in self._events():
            raise self.wrong("`answers` needs approvals to answer", f'Put "{NotificationKind.APPROVAL}" into `events`.')
        return answers

    def _text(self, key: str) -> str:
        value = self._table.get(key, "")
        if not isinstance(value, str):
            raise self.wrong(f"`{key}` must be text")
        return value

    def _events(self) -> tuple[NotificationKind, ...]:
        names = self._table.get("events", [NotificationKind.ALERT])
        if not isinstance(names, list) or not names:
            raise self.wrong("`events` must be a list", f"Choose from: {', '.join(_CHOICES)}.")
        return tuple(self._one_of("events", name, list(_CHOICES)) for name in names)

    def _one_of(self, key: str, value: object, choices: list[Word]) -> Word:
        found = next((choice for choice in choices if choice == value), None)
        if found is None:
            raise self.wrong(f"`{key}` cannot be {str(value)[:40]!r}", f"Choose: {', '.join(choices)}.")
        return found

    def _sender(self, kind: str) -> Sender:
        variable, file = self._text("url_env"), self._text("url_file")
        if kind not in _WITH_ADDRESS:
            if variable or file:
                raise self.wrong(f"a {kind} channel has no address", "Leave url_env and url_file out.")
            return Desktop()
        if bool(variable) == bool(file):
            raise self.wrong("give one of `url_env` and `url_file`", "The address itself stays out of this file.")
        if "://" in variable:
            raise self.wrong("`url_env` is the name of a variable, not the address")
        if variable and not self._environ.get(variable):
            hint = "Set it where the server is started, or use url_file."
            raise self.wrong(f"the variable {variable} is not set", hint)
        url = (self._environ[variable] if variable else self._read(self._project / Path(file).expanduser())).strip()
        if not is_web_address(url):
            raise self.wrong(f"the value of {variable or file} is not an http or https address")
        if self._table.get("answers") and not is_private(url):
            hint = "A token to answer is sent only over https."
            raise self.wrong(f"the address in {variable or file} is not https", hint)
        return _WITH_ADDRESS[kind](url)

    def _read(self, path: Path) -> str:
        try:
            mode = path.stat().st_mode
            text = path.read_text() if stat.S_ISREG(mode) else ""
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise self.wrong(f"{path} cannot be read: {why}") from None
        if mode & 0o077:
            raise self.wrong(f"others may read {path}", f"chmod 600 {path}")
        return text


def is_web_address(url: str) -> bool:
    try:
        address = urlsplit(url)
        usable = address.scheme in ("http", "https") and address.hostname and (address.port or 1)
    except ValueError:
        return False
    return bool(usable) and url.isascii() and url.isprintable() and " " not in url
