"""Types as values: which type may feed which, and whether a value has a type.

Values on edges are copied, so every container is covariant: a `list[int]` may feed a `list[float]`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

_WIDER = {bool: (int, float, complex), int: (float, complex), float: (complex,)}


@dataclass(frozen=True)
class Field:
    """One key of a TypedDict, or one field of a dataclass or NamedTuple."""

    name: str
    type: Type
    required: bool = True


@dataclass(frozen=True)
class Type:
    """An annotated type. `form` decides which of the other fields matter."""

    form: str  # any | none | class | tuple (fixed length) | union | literal | typed_dict | unknown
    name: str = ""
    cls: Any = None
    args: tuple[Type, ...] = ()
    values: tuple[Any, ...] = ()
    fields: tuple[Field, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        if self.form == "union":
            return " | ".join(str(arg) for arg in self.args)
        if self.form == "literal":
            return f"Literal[{', '.join(map(repr, self.values))}]"
        if self.form == "class" and self.cls is tuple and self.args:
            return f"tuple[{self.args[0]}, ...]"
        arguments = ", ".join(str(arg) for arg in self.args)
        return f"{self.name}[{arguments}]" if arguments else self.name


ANY = Type("any", "Any")
NONE = Type("none", "None", type(None))


def of_class(cls: Any, *args: Type) -> Type:
    return Type("class", getattr(cls, "__name__", str(cls)), cls, args)


def union(*members: Type) -> Type:
    """Return a flat union without repetition; for one member, that member."""
    flat: list[Type] = []
    for member in members:
        flat += [part for part in (member.args if member.form == "union" else (member,)) if part not in flat]
    return flat[0] if len(flat) == 1 else Type("union", "Union", args=tuple(flat))


def optional(member: Type) -> Type:
    return union(member, NONE)


def list_of(element: Type) -> Type:
    return of_class(list, element)


def element_of(container: Type) -> Type | None:
    """Return the type of one item in a fan-out over this type; None if it has no items."""
    if container.form in ("any", "unknown"):
        return ANY
    if container.form == "tuple":
        return union(*container.args) if container.args else ANY
    if container.form == "class" and _is_subclass(container.cls, Collection):
        if _is_subclass(container.cls, (str, bytes, Mapping)):
            return None
        return container.args[0] if container.args else ANY
    return None


def accepts(want: Type, have: Type) -> bool:
    """Return whether every value of type `have` is valid where `want` is required."""
    if "any" in (want.form, have.form) or "unknown" in (want.form, have.form) or want.cls is object:
        return True
    if have.form == "union":
        return all(accepts(want, member) for member in have.args)
    if want.form == "union":
        return any(accepts(member, have) for member in want.args)
    if have.form == "literal" and want.form == "literal":
        return all(any(_same(value, other) for other in want.values) for value in have.values)
    if have.form == "literal":
        return all(not misfit(value, want) for value in have.values)
    if want.form == "typed_dict":
        return have.form == "typed_dict" and _typed_dict_fits(want, have)
    if want.form == "tuple":
        same_length = have.form == "tuple" and len(want.args) == len(have.args)
        return same_length and all(map(accepts, want.args, have.args))
    return want.form == have.form == "none" or (want.form == "class" and _class_fits(want, _as_class(have)))


def _same(value: object, other: object) -> bool:
    return type(value) is type(other) and value == other


def _typed_dict_fits(want: Type, have: Type) -> bool:
    """Compare by structure: the fields are copied, so the name of the class does not matter."""
    given = {field.name: field for field in have.fields}
    return all(
        (
            field.name in given
            and given[field.name].required >= field.required
            and accepts(field.type, given[field.name].type)
        )
        or (not field.required and field.name not in given)
        for field in want.fields
    )


def _as_class(have: Type) -> Type:
    """Return a TypedDict as a dict type and a fixed tuple as a tuple type; other types unchanged."""
    if have.form == "typed_dict":
        values = union(*(field.type for field in have.fields)) if have.fields else ANY
        return of_class(dict, of_class(str), values)
    if have.form == "tuple":
        return of_class(tuple, union(*have.args)) if have.args else of_class(tuple)
    return have


def _class_fits(want: Type, have: Type) -> bool:
    if have.form != "class":
        return False
    if want.cls in _WIDER.get(have.cls, ()):
        return True
    if not _is_subclass(have.cls, want.cls):
        return False
    given = have.args or ((have,) if have.cls is str else ())
    if not want.args or not given:
        return True
    return all(map(accepts, want.args, given))  # for a mapping as an iterable, the keys count


def _is_subclass(cls: Any, parent: Any) -> bool:
    try:
        return issubclass(cls, parent)
    except TypeError:  # a protocol without runtime checks, or not a class: it cannot be refused
        return not isinstance(cls, type) or not isinstance(parent, tuple)


def misfit(value: Any, want: Type) -> str:
    """Return why this value does not have that type; empty if it has."""
    if want.form == "class":
        return _class_misfit(value, want)
    if want.form == "typed_dict":
        return _typed_dict_misfit(value, want)
    if want.form == "none":
        return "" if value is None else _expected(value, want)
    if want.form == "union":
        return "" if any(not misfit(value, member) for member in want.args) else _expected(value, want)
    if want.form == "literal":
        return "" if any(_same(value, other) for other in want.values) else f"{value!r} is not one of {want}"
    if want.form == "tuple":
        if not isinstance(value, tuple) or len(value) != len(want.args):
            return _expected(value, want) + (f" of {len(value)}" if isinstance(value, tuple) else "")
        return _first_misfit([(f"[{index}]", item, want.args[index]) for index, item in enumerate(value)])
    return ""


def _expected(value: Any, want: Type) -> str:
    return f"expected {want}, got {type(value).__name__}"


def _class_misfit(value: Any, want: Type) -> str:
    try:
        fits = isinstance(value, want.cls) or want.cls in _WIDER.get(type(value), ())
    except TypeError:  # a protocol without runtime checks
        return ""
    if not fits:
        return _expected(value, want)
    if not want.args or isinstance(value, (str, bytes)):
        return ""
    if isinstance(value, Mapping):
        keys = [(f"key {key!r}", key, want.args[0]) for key in value]
        items = [(f"[{key!r}]", item, want.args[1]) for key, item in value.items()] if len(want.args) > 1 else []
        return _first_misfit([*keys, *items])
    if isinstance(value, Collection) and len(want.args) == 1:
        return _first_misfit([(f"[{index}]", item, want.args[0]) for index, item in enumerate(value)])
    return ""


def _typed_dict_misfit(value: Any, want: Type) -> str:
    if not isinstance(value, dict):
        return _expected(value, want)
    known = {field.name: field for field in want.fields}
    missing = [name for name, field in known.items() if field.required and name not in value]
    extra = [str(key) for key in value if key not in known]
    if missing or extra:
        faults = [f"lacks {', '.join(missing)}"] if missing else []
        return " and ".join([*faults, *([f"has undeclared {', '.join(extra)}"] if extra else [])])
    return _first_misfit([(f"[{key!r}]", item, known[key].type) for key, item in value.items()])


def _first_misfit(parts: list[tuple[str, Any, Type]]) -> str:
    for place, item, want in parts:
        fault = misfit(item, want)
        if fault:
            return f"{place}: {fault}"
    return ""
