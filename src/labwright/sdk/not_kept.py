"""What scripts written for W&B record besides: tables, videos, artifacts. It is taken, and nothing is kept of it.

Training goes on. What a script wants an answer from (`Api`, `sweep`, `use_artifact`) is not taken: there is none.
"""

from __future__ import annotations

from labwright.sdk.say import say_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OF_RUNS = frozenset(
    {
        "finish_artifact",
        "link_artifact",
        "link_model",
        "log_artifact",
        "log_code",
        "log_model",
        "mark_preempting",
        "unwatch",
        "upsert_artifact",
    }
)
_classes: dict[str, type[NotKept]] = {}


class NotKept:
    """Made by any call, takes any call, also as a context, and says once that nothing comes of it."""

    def __init__(self, *_ignored: Any, **_also_ignored: Any) -> None:
        say_once(f"{type(self).__name__}() has no effect: it is taken, and nothing is kept of it")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._take

    def _take(self, *_ignored: Any, **_also_ignored: Any) -> NotKept:
        return self

    def __enter__(self) -> NotKept:
        return self

    def __exit__(self, *_ignored: Any) -> None:
        return None


def not_kept(name: str) -> Any:
    """What stands for W&B's class or function of this name; `plot` is neither, its functions are called."""
    if name not in _classes:
        _classes[name] = type(name, (NotKept,), {})
    return _classes[name]() if name == "plot" else _classes[name]
