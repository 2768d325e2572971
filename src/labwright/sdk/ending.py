"""Record how a run without a supervisor ended, in its `exit.json`.

If the script cannot know its exit code (`raise SystemExit(…)`), the C library writes it to `exit.code` for the watcher.
After a kill there is neither, and the run is lost.
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
_SIZE = 2
_NOT_YET = b"??"  # a written code leaves at most one of them
_READ_WRITE, _SHARED, _IN_PLACE_OF_IT, _UNBUFFERED = 3, 0x01, 0x32, 2


class ExitFile:
    """`exit.json`. Its space is reserved at the start, so that it can be written even if the disk fills up."""

    def __init__(self, run_dir: str) -> None:
        self._path = f"{run_dir}/exit.json"
        self._aside = f"{self._path}.new"
        self._started = time.time()
        self._cpu = _cpu_seconds()
        keep_exit_code(f"{run_dir}/exit.code")
        try:
            self._write(b" " * _RESERVE)
        except OSError:
            pass  # the disk is full; there may be room at the end

    def record(self, facts: dict[str, Any]) -> None:
        """Write the file completely or not at all. The first record counts."""
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
            say(f"the end of the run could not be written to {self._path} ({error.strerror})")

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
    """Find out, in an exit handler, what the exit code will be. Python does not pass it to exit handlers.

    An uncaught exception is in `sys.last_value`. `sys.exit` is wrapped to see its argument. The outermost frame shows
    whether the script ran to its end, so a caught SystemExit or an old traceback does not mislead.
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

    def result(self) -> dict[str, Any] | None:
        """Return the facts of the end; None after `raise SystemExit(…)` or without a script."""
        if self._script is None:
            return None
        if _returned(self._script):
            return ended_with(0)
        error = getattr(sys, "last_value", None)
        if error is not None:
            text = f"{type(error).__name__}: {error}"[:500]
            return ended_with(_INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1, error=text.rstrip(": "))
        if not self._called:
            return None
        if self._code is None or isinstance(self._code, int):
            return ended_with(int(self._code or 0) & 0xFF)
        return ended_with(1, error=str(self._code)[:500])


def _script_frame() -> FrameType | None:
    """Return the frame of the `__main__` script, or None in a notebook or at a prompt."""
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


def keep_exit_code(path: str) -> None:
    """Let the C library write the exit code of this process into that file, as its last action. Needs glibc.

    `on_exit` calls a function with the code, and `fputc` puts it into memory that is mapped to the file. A descriptor
    would not work: it may be closed, or belong to another file by then.
    """
    try:
        _keep_exit_code(path)
    except (ImportError, OSError, AttributeError):
        pass  # only the exit code of `raise SystemExit(…)` will not be known


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
    ctypes.memmove(memory, _NOT_YET, _SIZE)  # fmemopen wrote a zero
    on_exit(ctypes.cast(libc.fputc, pointer), stream)
    # A forked child has its own exit code, which must not be written: it gets other memory at that address.
    os.register_at_fork(after_in_child=lambda: libc.mmap(memory, _SIZE, _READ_WRITE, _IN_PLACE_OF_IT, -1, 0))
