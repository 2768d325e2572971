"""Hold a secret where code of the same user does not find it: no other process reads this one's memory."""

from __future__ import annotations

_PR_SET_DUMPABLE = 4  # of Linux: without it, /proc/<pid>/mem, environ and fd belong to root, and nobody may trace


def hide_memory() -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")
