"""Objects that scripts written for W&B expect: the config and summary of a run, and stand-ins without effect."""

from __future__ import annotations

from abc import ABC, abstractmethod
from time import time

from labwright.sdk.lines import say_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_REMEMBERED = 100_000
IGNORED_RUN_METHODS = frozenset(
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


class RunValues(ABC):
    """A dict with attribute access, as in W&B."""

    _values: dict[str, Any]

    @abstractmethod
    def _changed(self, values: dict[str, Any]) -> None:
        """Handle new values."""

    def update(self, values: Any = None, allow_val_change: bool | None = None, **more: Any) -> None:  # noqa: ARG002
        fresh = {**as_dict(values), **more}
        self._values.update(fresh)
        if fresh:
            self._changed(fresh)

    def setdefaults(self, values: Any) -> None:
        self.update({key: value for key, value in as_dict(values).items() if key not in self._values})

    def get(self, key: str, default: Any = None) -> Any:
        return self._values.get(key, default)

    def keys(self) -> Any:
        return self._values.keys()

    def values(self) -> Any:
        return self._values.values()

    def items(self) -> Any:
        return self._values.items()

    def as_dict(self) -> dict[str, Any]:
        return dict(self._values)

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(name)
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            self.update({name: value})

    def __repr__(self) -> str:
        return repr(self._values)

    def __reduce__(self) -> Any:
        return dict, (dict(self._values),)


class RunConfig(RunValues):
    """The config. It starts with the parameters of the run; each change is recorded."""

    def __init__(self, record: Callable[[dict[str, Any]], None], values: dict[str, Any]) -> None:
        self._values = dict(values)
        self._record = record

    def clear(self) -> None:
        self._values.clear()

    def _changed(self, values: dict[str, Any]) -> None:
        self._record(values)


class RunSummary(RunValues):
    """The last number of each metric. Setting one logs it at the current step.

    `log` stores its lines here as text. They become numbers when they are read.
    """

    def __init__(self, record: Callable[[str, Any], None]) -> None:
        self._last_lines: dict[tuple[str, ...], tuple[float, list[str]]] = {}
        self._record = record

    @property
    def last_lines(self) -> dict[tuple[str, ...], tuple[float, list[str]]]:
        return self._last_lines

    def remember(self, key: str, text: str) -> None:
        if (key,) in self._last_lines or len(self._last_lines) < _REMEMBERED:
            self._last_lines[key,] = time(), [text]

    @property
    def _values(self) -> dict[str, Any]:  # type: ignore[override]
        lines = sorted((when, keys, texts) for keys, (when, texts) in list(self._last_lines.items()))
        return {key: float(text) for _, keys, texts in lines for key, text in zip(keys, texts)}  # noqa: B905

    def _changed(self, values: dict[str, Any]) -> None:
        for key, value in values.items():
            self._record(key, value)


def as_dict(values: Any) -> dict[str, Any]:
    """Return a dict from a dict, a Namespace, a dataclass or a mapping of another library."""
    if values is None:
        return {}
    if isinstance(values, dict):
        return values
    try:
        found = values.items() if hasattr(values, "items") else vars(values).items()
        return {str(key): value for key, value in found}
    except Exception:  # noqa: BLE001 - any other object is kept as its text
        return {"config": values}


_classes: dict[str, type[WandbStandIn]] = {}


class WandbStandIn:
    """Accept any call, also as a context manager, and report once that it has no effect.

    W&B calls that return an answer (`Api`, `sweep`, `use_artifact`) have no stand-in.
    """

    def __init__(self, *_ignored: Any, **_also_ignored: Any) -> None:
        say_once(f"{type(self).__name__}() has no effect: Labwright accepts the call and stores nothing")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._ignore

    def _ignore(self, *_ignored: Any, **_also_ignored: Any) -> WandbStandIn:
        return self

    def __enter__(self) -> WandbStandIn:
        return self

    def __exit__(self, *_ignored: Any) -> None:
        return None


def stand_in(name: str) -> Any:
    """Return the stand-in for W&B's class or function of this name. `plot` is an object with functions."""
    if name not in _classes:
        _classes[name] = type(name, (WandbStandIn,), {})
    return _classes[name]() if name == "plot" else _classes[name]
