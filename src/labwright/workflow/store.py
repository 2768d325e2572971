"""The progress of a workflow: an append-only log of facts, and a file for each large value.

    <folder>/log.jsonl            one line per fact; a line that was cut off by a kill is skipped
    <folder>/values/<sha256>.json values of more than 64 KB

A line is written before the next step starts, so a kill of the process loses none. `sync` decides what a power cut may
lose: "each" fsyncs every line, "end" (the default) when the run ends, "never" leaves it to the system.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labwright.workflow.values import digest_of, files_unchanged, text_of

SYNC = ("each", "end", "never")
_INLINE_LIMIT = 64 << 10
_write = json.JSONEncoder(separators=(",", ":")).encode


class StoreInUse(RuntimeError):
    """Another process runs a workflow in this folder."""


class Stored:
    """The encoded result of a finished task. A large one is read from its file on demand."""

    def __init__(self, digest: str, encoded: Any = None, file: Path | None = None) -> None:
        self.digest = digest
        self._encoded = encoded
        self._file = file

    @property
    def encoded(self) -> Any:
        return self._encoded if self._file is None else json.loads(self._file.read_text("utf-8"))


class Store:
    """The folder of a workflow's progress. `run` opens it for the duration of the run."""

    def __init__(self, folder: str | os.PathLike[str], sync: str = "end") -> None:
        if sync not in SYNC:
            raise ValueError(f"sync must be one of {', '.join(SYNC)}, not {sync!r}")
        self.folder = Path(folder)
        self.log = self.folder / "log.jsonl"
        self._values = self.folder / "values"
        self._sync = sync
        self._fd: int | None = None
        self._finished: dict[str, dict[str, Any]] = {}  # by key

    def __enter__(self) -> Store:
        self.folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.log, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise StoreInUse(f"{self.folder} is in use by another process") from None
        self._fd = fd
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":  # a kill cut off the last line
            os.write(fd, b"\n")
        self._finished = {}
        for fact in self.facts():
            if fact["fact"] == "finished":
                self._finished[fact["key"]] = fact
            elif fact["fact"] == "forgotten":
                self._remove_finished(fact["step"])
        return self

    def __exit__(self, *_error: object) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            if self._sync != "never":
                os.fsync(fd)
            fcntl.flock(fd, fcntl.LOCK_UN)  # close alone would leave the lock to a child that another thread is forking
            os.close(fd)

    def facts(self) -> Iterator[dict[str, Any]]:
        """Yield every whole line of the log, oldest first."""
        try:
            with open(self.log, "rb") as file:
                for line in file:
                    try:
                        fact = json.loads(line)
                    except ValueError:  # cut off by a kill
                        continue
                    if isinstance(fact, dict) and "fact" in fact:
                        yield fact
        except FileNotFoundError:
            return

    def append(self, fact: dict[str, Any]) -> None:
        if self._fd is None:
            raise RuntimeError("the store is not open")
        line = _write(fact).encode() + b"\n"
        while line:  # a full disk may take a part of it; readers skip such a line
            line = line[os.write(self._fd, line) :]
        if self._sync == "each":
            os.fsync(self._fd)

    def forget(self, step: str) -> None:
        """Make the next run repeat this step. Steps after it are repeated if its result differs."""
        if self._fd is None:
            with self:
                self.forget(step)
            return
        self.append({"fact": "forgotten", "step": step})
        self._remove_finished(step)

    def _remove_finished(self, step: str) -> None:
        self._finished = {key: fact for key, fact in self._finished.items() if fact["step"] != step}

    def keep(self, encoded: Any) -> dict[str, Any]:
        """Store a value. Return the part of a `finished` line that holds it or names its file."""
        text = text_of(encoded)
        digest = digest_of(text)
        if len(text) <= _INLINE_LIMIT:
            return {"digest": digest, "value": encoded}
        self._values.mkdir(exist_ok=True)
        write_whole(self._value_file(digest), text, sync=self._sync != "never")  # before the line that names it
        return {"digest": digest}

    def finished(self, key: str) -> Stored | None:
        """Return the result of a task with this key, if it finished in any run and its files are unchanged."""
        fact = self._finished.get(key)
        if fact is None:
            return None
        stored = self.stored(fact)
        try:
            return stored if files_unchanged(stored.encoded) else None
        except (OSError, ValueError):  # its value file is missing or damaged: the task runs again
            return None

    def stored(self, kept: dict[str, Any]) -> Stored:
        if "value" in kept:
            return Stored(kept["digest"], kept["value"])
        return Stored(kept["digest"], file=self._value_file(kept["digest"]))

    def _value_file(self, digest: str) -> Path:
        return self._values / f"{digest}.json"


def write_whole(file: str | os.PathLike[str], text: str, *, sync: bool = True) -> None:
    """Write a file under another name and rename it. If the disk is full, nothing is left."""
    aside = f"{os.fspath(file)}.{os.getpid()}.new"
    try:
        with open(aside, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            if sync:
                os.fsync(out.fileno())
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside)
        raise
    os.replace(aside, file)
