"""Read annotations as types: `list[float]`, `typing.List[float]`, `"X | None"` under postponed evaluation.

Text is parsed, not evaluated, so `list[float] | None` works in Python 3.8 too, and no code of the user runs.
"""

from __future__ import annotations

import ast
import builtins
import sys
import typing
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from typing import Any

from labwright.workflow.type_rules import ANY, NONE, Field, Type, of_class, union

_DEPTH_LIMIT = 12  # a TypedDict may contain itself
_TRANSPARENT = ("Annotated", "Required", "Final", "ClassVar", "ReadOnly")


class Unresolved(Exception):
    """A name in an annotation that cannot be resolved."""


class NameScope:
    """The names that an annotation may use."""

    def __init__(self, names: dict[str, Any], depth: int = 0) -> None:
        self.names = names
        self.depth = depth

    def find(self, name: str) -> Any:
        for place in (self.names, vars(builtins)):
            if name in place:
                return place[name]
        raise Unresolved(name)

    def of_module(self, name: str) -> NameScope:
        return NameScope(vars(sys.modules[name]) if name in sys.modules else {}, self.depth + 1)


def scope_of(function: Any) -> NameScope:
    """Return the globals of a function and the variables of its closure."""
    names = dict(getattr(function, "__globals__", {}))
    cells = getattr(function, "__closure__", None) or ()
    for index, name in enumerate(function.__code__.co_freevars if cells else ()):
        try:
            names[name] = cells[index].cell_contents
        except ValueError:  # not assigned yet
            continue
    return NameScope(names)


def read_annotation(annotation: Any, scope: NameScope) -> Type:
    """Return the annotated type; `unknown`, named by the text, if it cannot be resolved."""
    try:
        return _read(annotation, scope)
    except (Unresolved, SyntaxError, AttributeError, ValueError, IndexError, TypeError) as error:
        text = annotation if isinstance(annotation, str) else repr(annotation)
        return Type("unknown", f"{text} ({error})" if str(error) not in text else text)


def _read(annotation: Any, scope: NameScope) -> Type:
    if isinstance(annotation, str):
        return _read_node(ast.parse(annotation.strip(), mode="eval").body, scope)
    if isinstance(annotation, typing.ForwardRef):
        return _read(annotation.__forward_arg__, scope)
    if annotation is None or annotation is type(None):
        return NONE
    if annotation is Any or scope.depth > _DEPTH_LIMIT:
        return ANY
    if isinstance(annotation, typing.TypeVar):
        return _read(annotation.__bound__, scope) if annotation.__bound__ else ANY
    if hasattr(annotation, "__supertype__"):
        return _read(annotation.__supertype__, scope)
    if hasattr(annotation, "__metadata__"):
        return _read(annotation.__origin__, scope)
    origin = typing.get_origin(annotation)
    if origin is None:
        return _read_class(annotation, scope)
    args = typing.get_args(annotation)
    if _typing_name(origin) == "Literal":
        return Type("literal", "Literal", values=args)
    # None for the dots of `tuple[float, ...]` and for the arguments of a Callable.
    return _built(origin, [None if arg is ... or isinstance(arg, list) else _read(arg, scope) for arg in args])


def _read_class(cls: Any, scope: NameScope) -> Type:
    name = _typing_name(cls)
    if name in ("Union", "Optional", "Literal"):
        raise Unresolved(f"{name} without arguments")
    if not isinstance(cls, type):
        return Type("unknown", repr(cls))
    if not issubclass(cls, dict) or not hasattr(cls, "__total__"):
        return of_class(cls)
    module = scope.of_module(cls.__module__)
    inner = NameScope({**scope.names, **module.names}, module.depth)
    required_keys = getattr(cls, "__required_keys__", None)
    fields = []
    for key, annotation in cls.__annotations__.items():
        kind = _read(annotation, inner)
        required = cls.__total__ if required_keys is None else key in required_keys
        if kind.form == "not_required":
            kind, required = kind.args[0], False
        fields.append(Field(key, kind, required))
    return Type("typed_dict", cls.__name__, cls, fields=tuple(fields))


def _typing_name(thing: Any) -> str:
    """Return `Union` for `typing.Union`, `types.UnionType` and the like in `typing_extensions`."""
    module = getattr(thing, "__module__", "")
    name = str(getattr(thing, "_name", None) or getattr(thing, "__name__", ""))
    if module not in ("typing", "typing_extensions", "types"):
        return ""
    return "Union" if name == "UnionType" else name


def _built(head: Any, args: list[Type | None]) -> Type:
    known = [arg for arg in args if arg is not None]
    name = _typing_name(head)
    if name == "Optional":
        return union(*known, NONE)
    if name == "Union":
        return union(*known)
    if name == "NotRequired":
        return Type("not_required", args=(known[0],))
    if name in _TRANSPARENT:
        return known[0]
    origin = typing.get_origin(head) or head
    if origin is tuple and len(known) == len(args):
        return Type("tuple", "tuple", tuple, tuple(known))
    return of_class(origin, *known)


def _read_node(node: ast.AST, scope: NameScope) -> Type:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return union(_read_node(node.left, scope), _read_node(node.right, scope))
    if isinstance(node, ast.Constant):
        return _read(node.value, scope)
    if isinstance(node, ast.Subscript):
        return _read_subscript(node, scope)
    return _read(_object(node, scope), scope)


def _read_subscript(node: ast.Subscript, scope: NameScope) -> Type:
    head = _object(node.value, scope)
    inner: Any = node.slice
    inner = inner.value if type(inner).__name__ == "Index" else inner  # Python 3.8 wraps it
    nodes = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if _typing_name(head) == "Literal":
        # A literal is a constant or a member of an enum.
        values = [_object(item, scope) if isinstance(item, ast.Attribute) else ast.literal_eval(item) for item in nodes]
        return Type("literal", "Literal", values=tuple(values))
    if _typing_name(head) == "Annotated":
        nodes = nodes[:1]
    args: list[Type | None] = []
    for item in nodes:
        is_dots = isinstance(item, ast.Constant) and item.value is ...
        args.append(None if is_dots or isinstance(item, ast.List) else _read_node(item, scope))
    return _built(head, args)


def _object(node: ast.AST, scope: NameScope) -> Any:
    if isinstance(node, ast.Name):
        return scope.find(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_object(node.value, scope), node.attr)
    raise Unresolved(ast.dump(node))


def fields_of(kind: Type) -> tuple[Field, ...]:
    """Return the fields of a TypedDict, a dataclass or a NamedTuple. Each is a separate output."""
    if kind.form == "typed_dict":
        return kind.fields
    if kind.form != "class" or not isinstance(kind.cls, type):
        return ()
    if is_dataclass(kind.cls):
        parts = {part.name: part.type for part in dataclass_fields(kind.cls)}
    elif issubclass(kind.cls, tuple) and hasattr(kind.cls, "_fields"):
        parts = {name: kind.cls.__annotations__.get(name, Any) for name in kind.cls._fields}
    else:
        return ()
    scope = NameScope({}).of_module(kind.cls.__module__)
    return tuple(Field(name, read_annotation(part, scope)) for name, part in parts.items())
