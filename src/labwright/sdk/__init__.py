"""The SDK for training scripts: `init`, `log`, `alert`, `finish`. Standard library only, Python 3.8 or newer.

It runs in the project's own interpreter, where Labwright is not installed, so it imports nothing else of Labwright.
Logging never raises into the training loop and never blocks. A value that cannot be logged is reported once.
"""

from __future__ import annotations

from labwright.sdk import calls as _calls
from labwright.sdk.calls import alert, config, define_metric, finish, init, log, login, save, summary, watch
from labwright.sdk.media import Histogram, Image
from labwright.sdk.tracked import AlertLevel, Run

TYPE_CHECKING = False  # importing `typing` would take a good part of our import time
if TYPE_CHECKING:
    run: Run | None

__all__ = [
    "AlertLevel",
    "Histogram",
    "Image",
    "Run",
    "alert",
    "config",
    "define_metric",
    "finish",
    "init",
    "log",
    "login",
    "run",
    "save",
    "summary",
    "watch",
]


def __getattr__(name: str) -> object:
    """`run` is looked up each time: None before `init` and after `finish`, else the current run."""
    if name == "run":
        return _calls.current()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
