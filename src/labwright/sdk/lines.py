"""The text of what is logged: numbers, keys and facts as JSON, without I/O. And `say`, for messages to the user."""

from __future__ import annotations

import sys
from _collections_abc import MutableSequence  # not from `collections.abc`, which takes long to import

try:
    from _json import encode_basestring_ascii  # not from `json`, which would be half of our import time
except ImportError:
    from json.encoder import encode_basestring_ascii

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

KEY_LIMIT = 1024
LINE_LIMIT = 1 << 18  # a log() of very many keys becomes several lines in one write
_DEPTH_LIMIT = 20
_TEXT_LIMIT = 10_000
_EXACT = 1 << 53  # every whole number below it has an exact float
_REMEMBERED = 1000

_said: set[str] = set()
float_text = float.__repr__


def say(text: str) -> None:
    """Print a message on stderr. It never raises."""
    try:
        sys.stderr.write(f"labwright: {text}\n")
        sys.stderr.flush()
    except Exception:  # noqa: BLE001, S110 - stderr may be closed or replaced; training goes on
        pass


def say_once(text: str) -> None:
    if text not in _said and len(_said) < _REMEMBERED:
        _said.add(text)
        say(text)


class NotLoggable(Exception):
    """A value that cannot be logged, with the reason."""


def number_text(value: Any) -> str:
    """Return the number as JSON, with NaN and infinity spelled as in Python's own JSON."""
    if value.__class__ is bool:
        return "1" if value else "0"
    exact = float(value) if value.__class__ is int and -_EXACT < value < _EXACT else _number(value)
    if exact - exact == 0.0:
        return float_text(exact)
    return "NaN" if exact != exact else "Infinity" if exact > 0 else "-Infinity"


def _number(value: Any) -> float:
    """Return the value as a float. Scalars of NumPy, PyTorch and JAX work without importing these libraries."""
    if isinstance(value, (str, bytes, bytearray)):
        raise NotLoggable("text, not a number")
    if value is None:
        raise NotLoggable("None, not a number")
    if not isinstance(value, (int, float)) and callable(getattr(value, "item", None)):
        try:
            value = value.item()
        except Exception as error:  # noqa: BLE001 - each library raises its own
            raise NotLoggable(f"{type(value).__name__} with more than one number ({error})") from None
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except OverflowError:
        raise NotLoggable("too large for a float") from None
    except Exception:  # noqa: BLE001 - a foreign type; what it raises does not matter
        raise NotLoggable(f"{type(value).__name__}, not a number") from None


def key_text(key: str) -> str:
    """Return the key as JSON, with invalid characters replaced."""
    if not key:
        raise NotLoggable("an empty key")
    if len(key) > KEY_LIMIT:
        raise NotLoggable(f"a key of {len(key)} characters; the limit is {KEY_LIMIT}")
    return encode_basestring_ascii(clean(key))


def clean(text: str) -> str:
    """Return the text without lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def flattened(data: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield `{"train": {"loss": 1}}` as `train/loss`."""
    for key, value in list(data.items()):
        name = f"{prefix}{key}"
        if isinstance(value, dict) and depth < _DEPTH_LIMIT:
            yield from flattened(value, f"{name}/", depth + 1)
        else:
            yield name, value


def template(keys: Iterable[str]) -> str:
    """Return the line for these keys as a `%` format of step, time and the texts of the values."""
    pairs = ",".join(f"{key_text(key).replace('%', '%%')}:%s" for key in keys)
    return f'{{"s":%d,"t":%.3f,"m":{{{pairs}}}}}\n'


def metric_lines(step: int, time: float, pairs: list[str]) -> bytes:
    """Return one line, or several of the same step if one would be too long."""
    lines = []
    block: list[str] = []
    size = 0
    for pair in pairs:
        if size > LINE_LIMIT:
            lines.append(_metric_line(step, time, block))
            block, size = [], 0
        block.append(pair)
        size += len(pair) + 1
    lines.append(_metric_line(step, time, block))
    return "".join(lines).encode()


def _metric_line(step: int, time: float, pairs: list[str]) -> str:
    return f'{{"s":{step},"t":{time:.3f},"m":{{{",".join(pairs)}}}}}\n'


def fact_line(facts: dict[str, Any]) -> bytes:
    """Return a line of facts. Values of the user must have gone through `plain`."""
    import json

    return json.dumps(facts, separators=(",", ":")).encode() + b"\n"


def plain(value: Any, depth: int = 0) -> Any:
    """Return the value in a form that JSON can hold; other types become their text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(str(value)[:_TEXT_LIMIT])
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 63 else hex(value)[:_TEXT_LIMIT]
    if isinstance(value, float):
        return float(value) if value - value == 0.0 else str(float(value))  # standard JSON has no NaN
    if depth < _DEPTH_LIMIT:
        if isinstance(value, (tuple, set, frozenset, MutableSequence)):  # lists, including those of OmegaConf
            return [plain(item, depth + 1) for item in value]
        if hasattr(value, "items"):
            return {clean(str(key)[:KEY_LIMIT]): plain(item, depth + 1) for key, item in value.items()}
        if callable(getattr(value, "item", None)) and getattr(value, "size", 1) == 1:
            return plain(value.item(), depth + 1)
    return clean(str(value)[:_TEXT_LIMIT])
