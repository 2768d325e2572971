"""One run a file: a claim on a metric file that two runs of a project cannot both hold without noticing.

Every reader of a file holds a shared lock on the claim; an exclusive one can be had for a moment only by whoever is
alone. Whoever was not alone writes it down, so that the other learns of it too.
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


class Claim:
    def __init__(self, folder: str, file: os.stat_result) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._fd = _open_locked(_path(folder, file))
        if self._try(fcntl.LOCK_EX):
            os.ftruncate(self._fd, 0)  # nobody else is there; what was noted is of runs that have ended
        else:
            os.pwrite(self._fd, _SHARED, 0)
        self.renew()
        self._try(fcntl.LOCK_SH)

    def renew(self) -> None:
        """The file has grown: runs that began after the claim was made shall see that it is taken."""
        os.utime(self._fd)

    def is_sole(self) -> bool:
        alone = self._try(fcntl.LOCK_EX)
        if not alone:
            os.pwrite(self._fd, _SHARED, 0)
        self._try(fcntl.LOCK_SH)
        return alone and os.fstat(self._fd).st_size == 0

    def _try(self, kind: int) -> bool:
        return _try(self._fd, kind)

    def close(self) -> None:
        os.close(self._fd)


def _open_locked(path: str) -> int:
    """With a shared lock on what the name stands for: an old claim is swept away under an exclusive one."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_SH)  # others hold an exclusive one for a moment only
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)


def _try(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_claimed_since(folder: str, file: os.stat_result, moment: float) -> bool:
    """Whether some run has taken this file as its own since then."""
    try:
        return os.stat(_path(folder, file)).st_mtime >= moment
    except FileNotFoundError:
        return False


def _path(folder: str, file: os.stat_result) -> str:
    return f"{folder}/{file.st_dev}-{file.st_ino}"


_BLOCK = 4 << 20
_TAIL = 256


class Followed(ABC):
    """What is there at one look is taken at the next, if by then nobody else writes the file or claims it."""

    def __init__(self, path: str, file: MetricFile, claim: Claim, since: float) -> None:
        self.path = path
        self.paths = {path}  # all that are read through this one
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
        """Answers whether there is something to take."""
        if self.closed or self.file.is_behind or (size := self._size()) is None:
            return False
        if size < self._seen:
            self._begin_again(self._seen)
            self._seen = -1
        if size != self._seen:
            self._claim.renew()
        self._until = size if last else self._seen
        self._seen, self._last = size, last
        if self._until == -1:
            return False
        if not self._claim.is_sole():
            self.give_up("another run reads it too, so nobody knows whose numbers these are")
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
            self.closed = True  # another file by that name; it has to be found to be ours anew
            self._claim.close()
            return None
        return found.st_size

    def _begin_again(self, old_size: int) -> None:  # noqa: B027 - nothing to do for the other kinds
        """It was cut short. Only lines can be written anew in one file."""

    def _has_more(self, until: int) -> bool:
        return until != self._position

    @abstractmethod
    def _read(self, until: int) -> None:
        """From where the last look ended."""

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
    """A `metrics.jsonl`, or a declared file of its kind.

    A command that begins anew, such as one that is tried again, may have filled it beyond where we were: then it is as
    long as ever, and only the bytes that were read last tell that it is another.
    """

    def __init__(self, path: str, file: MetricFile, claim: Claim, since: float) -> None:
        super().__init__(path, file, claim, since)
        self._lines = GrowingLines(path, self._position)
        self._tail = self._before(self._position)
        if file.mark is not None and file.mark[2:] not in ((), self._mark[2:]):
            self._begin_again(self._position)

    @property
    def _mark(self) -> Mark:
        return self._position, self._count, zlib.crc32(self._tail)

    def _before(self, position: int) -> bytes:
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as file:
            file.seek(max(0, position - _TAIL))
            return file.read(min(position, _TAIL))
        return b""

    def _begin_again(self, old_size: int) -> None:
        lost = old_size - self._lines.read_to
        unread = f"{lost} bytes had not been read" if lost > 0 else "what came after the last look was not read"
        self._refuse("(the file)", f"it was cut short, {unread}; it is read from its beginning again")
        self._position, self._tail = 0, b""
        self._lines = GrowingLines(self.path, 0)

    def _has_more(self, until: int) -> bool:
        if until < self._lines.read_to or self._before(self._position) != self._tail:
            self._begin_again(self._lines.read_to)
        return until > self._lines.read_to or until > self._position

    def _read(self, until: int) -> None:
        while True:
            limit = min(_BLOCK, until - self._lines.read_to) + self._last  # a byte more than there is shows the end
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
    """TensorBoard's. Each event carries its time, so older ones are told apart by that."""

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
    """A Hugging Face `trainer_state.json`: written whole, each time with a longer history. The position counts entries.

    It is -1 until the run has written its first state, which tells how many of the entries an earlier run left.
    A folder's checkpoints are read as one: the newest.
    """

    _read_at = -1
    _taken: list[int] | None = None  # the sums of the entries read so far; a monitor before this one knew them

    def offer(self, path: str) -> None:
        """A checkpoint may be swept away at any moment, also the one that was the newest."""
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
            return  # half written; there will be another look
        self._read_at = until
        if self._position < 0:
            self._leave_out_older(state)
        self._go_back_to(state)
        for record in state.history[self._position :]:
            self._position += 1
            found = numbers_in(record, self._since, time.time())
            if found:
                self._add(found)
        self._taken = state.sums

    def _leave_out_older(self, state: State) -> None:
        first = first_since(folder_of_states(self.path), self._since, state)
        self._position = entries_before(first, self.file.header["before"])
        if self._position:
            words = f"{self._position} were there before the run, which goes on from them"
            self._refuse("(older entries)", words)

    def _go_back_to(self, state: State) -> None:
        """The run may begin anew, or from an earlier checkpoint of its own."""
        if self._taken is None:
            same = self._position if self._position <= len(state.history) else 0
        else:
            same = state.shares(self._taken)
        if same < self._position:
            self._position = same
            self._refuse("(the history)", f"it was written anew; it is read from entry {same + 1} on")
