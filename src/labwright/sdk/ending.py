"""How a run that no supervisor watches ended, in the words of its `exit.json`.

Where the script cannot know (`raise SystemExit(…)`), `exit.code` tells its watcher. A kill leaves neither: then the
run is lost.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time

from labwright.sdk.lines import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

_RESERVE = 4096
_INTERRUPTED = 130


class ExitFile:
    """Made with the run, so that a disk that fills up meanwhile cannot hide how it ended."""

    def __init__(self, run_dir: str) -> None:
        self._path = f"{run_dir}/exit.json"
        self._aside = f"{self._path}.new"
        self._started = time.time()
        self._cpu = _cpu_seconds()
        keep_exit_code(f"{run_dir}/exit.code")
        try:
            self._write(b" " * _RESERVE)
        except OSError:
            pass  # the disk is full already; there may be room at the end

    def record(self, facts: dict[str, Any]) -> None:
        """Whole and on the disk, or not at all; the first to say it is right."""
        if os.path.exists(self._path):
            return
        ended = time.time()
        usage = {
            "cpu_seconds": _cpu_seconds() - self._cpu,
            "max_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "wall_seconds": ended - self._started,
        }
        content = {
            **facts,
            "attempt": 1,
            "started_at": self._started,
            "ended_at": ended,
            "usage": {name: round(value, 3) for name, value in usage.items()},
        }
        try:
            self._write(json.dumps(content).encode().ljust(_RESERVE) + b"\n")
            os.replace(self._aside, self._path)
        except OSError as error:
            say(f"how the run ended could not be written to {self._path} ({error.strerror})")

    def _write(self, content: bytes) -> None:
        fd = os.open(self._aside, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            if os.write(fd, content) < len(content.rstrip()):
                raise OSError(28, "No space left on device")
            os.fsync(fd)
        finally:
            os.close(fd)


def _cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def ended_with(exit_code: int, error: str | None = None) -> dict[str, Any]:
    failed = bool(exit_code)
    return {
        "exit_code": exit_code,
        "signal": exit_code - 128 if exit_code == _INTERRUPTED else None,
        "error": error or (f"Exit code {exit_code}" if failed else None),
        "status": "failed" if failed else "finished",
        "reason": "exit_code" if failed else "",
    }


class ExitWatch:
    """Finds out, when the interpreter ends, what its exit code will be. Nothing tells an exit handler that.

    An uncaught exception is in `sys.last_value`; `sys.exit` is wrapped to see its argument; and whether the script ran
    to its end is read from its outermost frame, so that a caught SystemExit or an old traceback misleads nobody.
    """

    def __init__(self) -> None:
        self._script = _script_frame()
        self._exit = sys.exit
        self._code: Any = None
        self._called = False
        sys.exit = self._note_exit
        if self._script is not None and self._script.f_globals.get("exit") is self._exit:
            self._script.f_globals["exit"] = self._note_exit  # `from sys import exit`

    def _note_exit(self, status: Any = None, /) -> Any:
        self._called, self._code = True, status
        self._exit(status)

    def verdict(self) -> dict[str, Any] | None:
        """None after `raise SystemExit(…)`, and without a script: then only the C library will know."""
        if self._script is None:
            return None
        if _returned(self._script):
            return ended_with(0)
        error = getattr(sys, "last_value", None)
        if error is not None:
            return _ended_by(error)
        if not self._called:
            return None
        if self._code is None or isinstance(self._code, int):
            return ended_with(int(self._code or 0) & 0xFF)
        return ended_with(1, error=str(self._code)[:500])


def _ended_by(error: BaseException) -> dict[str, Any]:
    words = f"{type(error).__name__}: {error}"[:500]
    return ended_with(_INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1, error=words.rstrip(": "))


def _script_frame() -> FrameType | None:
    """The frame of the `__main__` script, if there is one: not in a notebook, nor at a prompt."""
    frame: FrameType | None = sys._getframe()
    found = None
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__":
            found = frame
        frame = frame.f_back
    return found


def _returned(frame: FrameType) -> bool:
    from opcode import opname

    name = opname[frame.f_code.co_code[frame.f_lasti]]
    return name.startswith("RETURN_")


_SIZE = 2
_NOT_YET = b"??"  # a code that is there leaves at most one of them
_READ_WRITE, _SHARED, _IN_PLACE_OF_IT, _UNBUFFERED = 3, 0x01, 0x32, 2


def keep_exit_code(path: str) -> None:
    """From now on the end of this process, but for a kill, is in that file. Not where there is no glibc."""
    try:
        _keep_exit_code(path)
    except (ImportError, OSError, AttributeError):
        pass  # the end of a `raise SystemExit(…)` will not be known; everything else is


def _keep_exit_code(path: str) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    on_exit, number, pointer = libc.on_exit, ctypes.c_int, ctypes.c_void_p
    libc.mmap.restype = libc.fmemopen.restype = pointer
    libc.mmap.argtypes = (pointer, ctypes.c_size_t, number, number, number, ctypes.c_long)
    libc.fmemopen.argtypes = (pointer, ctypes.c_size_t, ctypes.c_char_p)
    libc.setvbuf.argtypes = (pointer, pointer, number, ctypes.c_size_t)
    on_exit.argtypes = (pointer, pointer)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, _NOT_YET)
        memory = libc.mmap(None, _SIZE, _READ_WRITE, _SHARED, fd, 0)
    finally:
        os.close(fd)
    stream = None if memory in (None, pointer(-1).value) else libc.fmemopen(memory, _SIZE, b"w")
    if not stream:
        raise OSError(ctypes.get_errno(), "no memory for the exit code")
    libc.setvbuf(stream, None, _UNBUFFERED, 0)
    ctypes.memmove(memory, _NOT_YET, _SIZE)  # opening it has written a zero
    on_exit(ctypes.cast(libc.fputc, pointer), stream)
    # A forked child ends with a code of its own, which is nobody's business: it gets other memory in that place.
    os.register_at_fork(after_in_child=lambda: libc.mmap(memory, _SIZE, _READ_WRITE, _IN_PLACE_OF_IT, -1, 0))
