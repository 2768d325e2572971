"""Encode values on edges as JSON: JSON types, tuples, sets, bytes, paths, enums, dataclasses and NamedTuples.

Other values are refused, not pickled: a pickle runs code when it is read, breaks when a class moves, and hides
megabytes. A model or a dataset is passed as the path of its file.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

_HASHED_UP_TO = 64 << 20  # larger files are identified by size and time: reading them would take longer than most tasks
_FINITE_TYPES = (str, int, bool, type(None))
_DEPTH_LIMIT = 200
LARGEST = 64 << 20


class NotEncodable(TypeError):
    """This value cannot be passed between tasks."""


class Sealed:
    """An encoded value that is passed on without decoding, so none of its classes is needed."""

    def __init__(self, encoded: Any) -> None:
        self.encoded = encoded

    def __iter__(self) -> Iterator[Sealed]:
        """Yield the items of a list, a tuple or a set. Other values have no fan-out."""
        encoded = self.encoded
        items = encoded if isinstance(encoded, list) else encoded.get("items", encoded.get("$set"))
        return iter([Sealed(item) for item in items])

    def __bool__(self) -> bool:
        return bool(self.encoded)


def encode(value: Any, depth: int = 0) -> Any:
    """Return the value in a form that JSON can hold. Tags start with `$`."""
    if type(value) in _FINITE_TYPES:
        return value
    if type(value) is Sealed:
        return value.encoded
    if depth > _DEPTH_LIMIT:
        raise NotEncodable(f"it is nested more than {_DEPTH_LIMIT} levels deep, or contains itself")
    if type(value) is list:
        return [encode(item, depth + 1) for item in value]
    if type(value) is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: encode(item, depth + 1) for key, item in value.items()}
        return {"$dict": [[encode(key, depth + 1), encode(item, depth + 1)] for key, item in value.items()]}
    if type(value) is float:
        return value if value - value == 0.0 else {"$float": repr(value)}
    return _encode_other(value, depth)


def _encode_other(value: Any, depth: int) -> Any:
    if isinstance(value, Enum):
        return {"$enum": _class_name(type(value)), "name": value.name}
    if isinstance(value, PurePath):
        return {"$path": str(value), **file_facts(str(value))}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = [encode(item, depth + 1) for item in value]
        return {"$tuple": _class_name(type(value)), "items": items, "fields": list(value._fields)}
    if isinstance(value, tuple):
        return {"$tuple": "", "items": [encode(item, depth + 1) for item in value]}
    if isinstance(value, (set, frozenset)):
        items = sorted((encode(item, depth + 1) for item in value), key=text_of)
        return {"$set": items, "frozen": isinstance(value, frozenset)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {part.name: encode(getattr(value, part.name), depth + 1) for part in dataclasses.fields(value)}
        return {"$dataclass": _class_name(type(value)), "fields": fields}
    plain: Any
    for plain in (int, float, str, list, dict):  # a subclass of it, such as an OrderedDict or a float64
        if isinstance(value, plain):
            return encode(plain(value), depth + 1)
    if callable(getattr(value, "item", None)) and getattr(value, "ndim", 1) == 0:  # a scalar of NumPy or PyTorch
        return encode(value.item(), depth + 1)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise NotEncodable(
        f"{kind} cannot be passed between tasks; return plain values, or write a file and return its Path"
    )


def _class_name(cls: type) -> str:
    if "<locals>" in cls.__qualname__:
        raise NotEncodable(f"{cls.__qualname__} is defined inside a function, so its values cannot be read back")
    return f"{cls.__module__}:{cls.__qualname__}"


def decode(encoded: Any) -> Any:
    """Return a new copy each time, so that no task can change the input of another."""
    if isinstance(encoded, list):
        return [decode(item) for item in encoded]
    if not isinstance(encoded, dict):
        return encoded
    for tag, make in _DECODERS.items():
        if tag in encoded:
            return make(encoded)
    return {key: decode(item) for key, item in encoded.items()}


def _find_class(name: str) -> Any:
    module, _, path = name.partition(":")
    if module not in sys.modules:
        __import__(module)
    found: Any = sys.modules[module]
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _decode_tuple(encoded: dict[str, Any]) -> Any:
    items = [decode(item) for item in encoded["items"]]
    return _find_class(encoded["$tuple"])(*items) if encoded["$tuple"] else tuple(items)


def _decode_dataclass(encoded: dict[str, Any]) -> Any:
    """Restore the fields without `__init__`, which may have side effects."""
    cls = _find_class(encoded["$dataclass"])
    made = object.__new__(cls)
    for name, item in encoded["fields"].items():
        object.__setattr__(made, name, decode(item))
    return made


_DECODERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "$float": lambda encoded: float(encoded["$float"]),
    "$path": lambda encoded: Path(encoded["$path"]),
    "$tuple": _decode_tuple,
    "$dict": lambda encoded: {decode(key): decode(item) for key, item in encoded["$dict"]},
    "$set": lambda encoded: (frozenset if encoded["frozen"] else set)(decode(item) for item in encoded["$set"]),
    "$bytes": lambda encoded: base64.b64decode(encoded["$bytes"]),
    "$enum": lambda encoded: _find_class(encoded["$enum"])[encoded["name"]],
    "$dataclass": _decode_dataclass,
}


_write = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def text_of(encoded: Any) -> str:
    return _write(encoded)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_facts(path: str) -> dict[str, Any]:
    """Return size and hash (or time) of a file; nothing for a folder or a missing file."""
    try:
        status = os.stat(path)
        if not os.path.isfile(path):
            return {}
        if status.st_size > _HASHED_UP_TO:
            return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
        with open(path, "rb") as file:
            return {"size": status.st_size, "sha256": hashlib.sha256(file.read()).hexdigest()}
    except OSError:
        return {}


def files_unchanged(encoded: Any) -> bool:
    """Return whether every file in a stored value still has the same content."""
    if isinstance(encoded, list):
        return all(files_unchanged(item) for item in encoded)
    if not isinstance(encoded, dict):
        return True
    if "$path" in encoded:
        known = {key: fact for key, fact in encoded.items() if key != "$path"}
        return not known or file_facts(encoded["$path"]) == known
    return all(files_unchanged(item) for item in encoded.values())


def picked(encoded: Any, name: str) -> Any:
    """Return one output of an encoded result without decoding the rest."""
    if isinstance(encoded, dict) and "$dataclass" in encoded:
        return encoded["fields"][name]
    if isinstance(encoded, dict) and "$tuple" in encoded:
        return encoded["items"][encoded["fields"].index(name)]
    return encoded.get(name)
