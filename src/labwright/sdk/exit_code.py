"""The exit code of this process, written by the C library as the last thing it does: no Python handler is told it.

`on_exit` calls a function with the code, and `fputc` puts it into memory that is a file. Memory, not a descriptor:
those may be closed and their numbers be somebody else's by then. Of Python nothing is left, nor needed, at that time.
"""

from __future__ import annotations

import os

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
