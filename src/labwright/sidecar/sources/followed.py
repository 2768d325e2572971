"""Files of the workdir that belong to this run, read as they grow.

A claim makes two runs notice that they read the same file. Every reader holds a shared lock on the claim. Only a single
reader can get an exclusive lock for a moment. A reader that is not alone notes it in the claim, so the other sees it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import zlib
from abc import ABC, abstractmethod

from labwright.sidecar.sources.lines import EPOCH, LONGEST, GrowingLines, Numbers, numbers_in
from labwright.sidecar.sources.metric_file import Mark, MetricFile
from labwright.sidecar.sources.tensorboard import read_scalars
from labwright.sidecar.sources.trainer_states import State, entries_before, first_since, folder_of_states, read_state

_SHARED = b"shared\n"
_BLOCK = 4 << 20
_TAIL = 256


class Claim:
    """A claim of this run on a metric file."""

    def __init__(self, folder: str, file: os.stat_result) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        while True:
            self._fd = os.open(_path(folder, file), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_SH)  # others hold an exclusive lock only for a moment
            if os.fstat(self._fd).st_nlink:
                break
            os.close(self._fd)  # deleted meanwhile: old claims are cleaned up
        if self._try(fcntl.LOCK_EX):
            os.ftruncate(self._fd, 0)  # no other reader; notes in it come from runs that have ended
        else:
            os.pwrite(self._fd, _SHARED, 0)
        self.renew()
        self._try(fcntl.LOCK_SH)

    def renew(self) -> None:
        """Update the time of the claim when the file has grown, so that later runs see that it is taken."""
        os.utime(self._fd)

    def is_sole(self) -> bool:
        alone = self._try(fcntl.LOCK_EX)
        if not alone:
            os.pwrite(self._fd, _SHARED, 0)
        self._try(fcntl.LOCK_SH)
        return alone and os.fstat(self._fd).st_size == 0

    def _try(self, kind: int) -> bool:
        try:
            fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        os.close(self._fd)


def is_claimed_since(folder: str, file: os.stat_result, moment: float) -> bool:
    """Return whether a run has claimed this file since then."""
    try:
        return os.stat(_path(folder, file)).st_mtime >= moment
    except FileNotFoundError:
        return False


def _path(folder: str, file: os.stat_result) -> str:
    return f"{folder}/{file.st_dev}-{file.st_ino}"


class Followed(ABC):
    """A file that is read with a delay: new bytes are taken at the next look, if nobody else writes or claims it."""

    def __init__(self, path: str, file: MetricFile, claim: Claim, since: float) -> None:
        self.path = path
        self.paths = {path}  # all files that are read as one
        self.file = file
        self.closed = False
        self._claim = claim
        self._since = since
        self._prefix = file.header.get("prefix", "")
        mark: Mark = file.mark or (file.header["from"], 0)
        self._position, self._count = mark[:2]
        self._seen = self._until = -1
        self._last = False  # nothing more will be written

    def look(self, *, last: bool = False) -> bool:
        """Check the file. Return whether there is something to take."""
        if self.closed or self.file.is_behind or (size := self._size()) is None:
            return False
        if size < self._seen:
            self._restart(self._seen)
            self._seen = -1
        if size != self._seen:
            self._claim.renew()
        self._until = size if last else self._seen
        self._seen, self._last = size, last
        if self._until == -1:
            return False
        if not self._claim.is_sole():
            self.give_up("another run reads it too, so its numbers cannot be assigned to one run")
            return False
        return self._has_more(self._until)

    def take(self) -> None:
        self._read(self._until)

    @property
    def _mark(self) -> Mark:
        return self._position, self._count

    def give_up(self, why: str) -> None:
        self.closed = True
        self.file.refuse(self.path, why, time.time(), self._mark)

    def _size(self) -> int | None:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return None
        if found.st_ino != self.file.header["inode"]:
            self.closed = True  # another file with that name, which must be checked first
            self._claim.close()
            return None
        return found.st_size

    def _restart(self, old_size: int) -> None:  # noqa: B027 - other kinds need nothing
        """Handle a file that was cut short. Only files of lines can be rewritten in place."""

    def _has_more(self, until: int) -> bool:
        return until != self._position

    @abstractmethod
    def _read(self, until: int) -> None:
        """Read from where the last look ended."""

    def _add(self, found: Numbers) -> None:
        if found.values:
            step = self._count if found.step is None else found.step
            self._count = max(self._count, step + 1)
            values = {f"{self._prefix}{key}": value for key, value in found.values.items()}
            self.file.add(step, found.time or time.time(), values, self._mark)
        for key, why in found.refused.items():
            self._refuse(key, why)

    def _refuse(self, key: str, why: str) -> None:
        self.file.refuse(key, why, time.time(), self._mark)


class JsonLines(Followed):
    """A `metrics.jsonl`, or a declared file of that kind.

    A command that is tried again may rewrite the file beyond our position. Then only the bytes before that position
    show that it is a new file.
    """

    def __init__(self, path: str, file: MetricFile, claim: Claim, since: float) -> None:
        super().__init__(path, file, claim, since)
        self._lines = GrowingLines(path, self._position)
        self._tail = self._before(self._position)
        if file.mark is not None and file.mark[2:] not in ((), self._mark[2:]):
            self._restart(self._position)

    @property
    def _mark(self) -> Mark:
        return self._position, self._count, zlib.crc32(self._tail)

    def _before(self, position: int) -> bytes:
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as file:
            file.seek(max(0, position - _TAIL))
            return file.read(min(position, _TAIL))
        return b""

    def _restart(self, old_size: int) -> None:
        lost = old_size - self._lines.read_to
        unread = f"{lost} bytes had not been read" if lost > 0 else "its last bytes were not read"
        self._refuse("(the file)", f"it was cut short, {unread}; it is read from its start again")
        self._position, self._tail = 0, b""
        self._lines = GrowingLines(self.path, 0)

    def _has_more(self, until: int) -> bool:
        if until < self._lines.read_to or self._before(self._position) != self._tail:
            self._restart(self._lines.read_to)
        return until > self._lines.read_to or until > self._position

    def _read(self, until: int) -> None:
        while True:
            limit = min(_BLOCK, until - self._lines.read_to) + self._last  # one byte more shows the end
            for line, end in self._lines.read(limit, last=self._last):
                self._position = end
                self._tail = self._before(end) if line is None else (self._tail + line)[-_TAIL:]
                if line is None:
                    self._refuse("(a line)", f"it is longer than {LONGEST} bytes")
                elif line.strip():
                    self._take(line)
            if not self._last or self._lines.read_to >= until:
                return

    def _take(self, line: bytes) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            self._refuse("(a line)", "it is not a JSON object")
        elif found := numbers_in(record, self._since, time.time(), has_epochs=self.file.has(self._prefix + EPOCH)):
            self._add(found)


class EventFile(Followed):
    """A TensorBoard event file. Each event has a time, which shows whether it is older than the run."""

    def _has_more(self, until: int) -> bool:
        return until > self._position

    def _read(self, until: int) -> None:
        for record in read_scalars(self.path, self._position, until):
            if record.broken and record.end == self._position:
                self.give_up(record.broken)
                return
            self._position = record.end
            if record.broken:
                self._refuse(os.path.basename(self.path), record.broken)
            elif record.time >= self._since:
                self._add(Numbers(record.step, record.time, record.values))


class TrainerState(Followed):
    """A Hugging Face `trainer_state.json`, rewritten each time with a longer history. The position counts entries.

    It is -1 until the run has written its first state, which shows how many entries an earlier run left. The
    checkpoints of a folder are read as one file, the newest.
    """

    _read_at = -1
    _taken: list[int] | None = None  # checksums of the entries read so far; unknown after a restart of the monitor

    def offer(self, path: str) -> None:
        """Use this file if it is newer. A checkpoint may be deleted at any moment, even the newest."""
        self.paths.add(path)
        with contextlib.suppress(FileNotFoundError):
            written = os.path.getmtime(path)
            if not os.path.exists(self.path) or written > os.path.getmtime(self.path):
                self.path = path

    def _size(self) -> int | None:
        try:
            return os.stat(self.path).st_mtime_ns
        except FileNotFoundError:
            return None

    def _has_more(self, until: int) -> bool:
        return until != self._read_at and until >= self._since * 1e9

    def _read(self, until: int) -> None:
        state = read_state(self.path)
        if state is None:
            return  # half written; the next look reads it
        self._read_at = until
        if self._position < 0:
            first = first_since(folder_of_states(self.path), self._since, state)
            self._position = entries_before(first, self.file.header["before"])
            if self._position:
                self._refuse(
                    "(older entries)", f"{self._position} were there before the run, which continues from them"
                )
        self._rewind_to(state)
        for record in state.history[self._position :]:
            self._position += 1
            found = numbers_in(record, self._since, time.time())
            if found:
                self._add(found)
        self._taken = state.sums

    def _rewind_to(self, state: State) -> None:
        """Go back if the run has started again, from scratch or from an earlier checkpoint."""
        if self._taken is None:
            same = self._position if self._position <= len(state.history) else 0
        else:
            same = state.shares(self._taken)
        if same < self._position:
            self._position = same
            self._refuse("(the history)", f"it was rewritten; it is read from entry {same + 1} on")
