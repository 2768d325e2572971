"""The content hash of code: a function, what it calls, its closure, its defaults and the constants it reads.

It is taken from bytecode, which comments and blank lines do not change. Own code is followed: code in the same
top-level package, or outside the standard library and `site-packages`. Other code counts by its name; its version
belongs in the environment that the caller passes. Not seen: `getattr` with a computed name, files that are read, and
state that changes at run time.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_FOREIGN = tuple({os.path.realpath(sysconfig.get_paths()[name]) + os.sep for name in ("stdlib", "platstdlib")})
_INSTALLED = ("site-packages", "dist-packages")
_SIMPLE = (str, bytes, int, float, complex, bool, type(None), type(...))
_CLASS_NOISE = frozenset(
    {"__module__", "__dict__", "__weakref__", "__doc__", "__qualname__", "__firstlineno__", "__static_attributes__",
     "__annotate__", "__annotate_func__", "__annotations_cache__", "__abstractmethods__", "_abc_impl"}
)  # fmt: skip


def fingerprint(work: Any, environment: Mapping[str, str] | None = None) -> str:
    """Return the fingerprint of a task. `environment` holds versions and all else that the result depends on."""
    return Fingerprints(environment).of(work)


class Fingerprints:
    """Fingerprints in one environment. Each body is read once."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self.environment = dict(environment or {})
        self._known: dict[int, tuple[Any, str]] = {}  # by id, with the object, so that the id is not reused

    def of(self, work: Any) -> str:
        body = getattr(work, "body", work)
        if id(body) not in self._known:
            reader = _CodeReader(getattr(body, "__module__", "") or "")
            reader.read(body)
            python = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
            reader.read({"python": python, **self.environment})
            self._known[id(body)] = (body, reader.digest.hexdigest())
        return self._known[id(body)][1]


class _CodeReader:
    """Feed a digest with every reachable object, each once."""

    def __init__(self, module: str) -> None:
        self.digest = hashlib.sha256()
        self._package = module.split(".")[0]
        self._seen: dict[int, int] = {}
        self._open: set[int] = set()  # containers being read: one may contain itself
        self._alive: list[Any] = []

    def read(self, value: Any) -> None:
        if isinstance(value, _SIMPLE):
            self._write("value", type(value).__name__, repr(value))
            return
        if isinstance(value, (list, tuple, set, frozenset, Mapping)):
            self._read_container(value)
            return
        if id(value) in self._seen:
            self._write("again", str(self._seen[id(value)]))
            return
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)  # an id may be reused once its object is deleted
        if isinstance(value, FunctionType):
            self._read_function(value)
        elif isinstance(value, CodeType):
            self._read_code(value, {})
        elif isinstance(value, type):
            self._read_class(value)
        elif isinstance(value, (PurePath, Enum)):
            self._write("value", type(value).__name__, str(value))
        else:
            self._read_wrapped(value)

    def _write(self, *words: str) -> None:
        for word in words:
            content = word.encode("utf-8", "backslashreplace")
            self.digest.update(b"%d:" % len(content) + content)

    def _read_container(self, value: Any) -> None:
        """Read by content only: whether equal constants are one object depends on how the code was loaded."""
        self._write(type(value).__name__, str(len(value)))
        if id(value) in self._open:
            return
        self._open.add(id(value))
        items = sorted(value, key=repr) if isinstance(value, (set, frozenset, Mapping)) else value
        for item in items:
            self.read(item)
            if isinstance(value, Mapping):
                self.read(value[item])
        self._open.discard(id(value))

    def _read_wrapped(self, value: Any) -> None:
        """Read a bound method, a partial, a property, a decorated function or an object of own code."""
        if isinstance(value, MethodType):
            parts: list[Any] = [value.__func__, value.__self__]
        elif isinstance(value, functools.partial):
            parts = [value.func, value.args, value.keywords]
        elif isinstance(value, (staticmethod, classmethod)):
            parts = [value.__func__]
        elif isinstance(value, property):
            parts = [value.fget, value.fset]
        elif isinstance(value, (ModuleType, BuiltinFunctionType)):
            self._write("named", str(getattr(value, "__module__", "")), value.__name__)
            return
        else:
            state = dict(getattr(value, "__dict__", {}))
            if "__wrapped__" in state:  # looked up in the dict: some objects have every attribute
                parts = [state["__wrapped__"]]
            else:
                parts = [type(value), state] if self._is_own(type(value)) else [type(value)]
        self._write(type(value).__name__)
        for part in parts:
            self.read(part)

    def _read_function(self, function: FunctionType) -> None:
        self._write("function", function.__qualname__)
        if not self._is_own(function):
            self._write(function.__module__ or "")
            return
        self.read(function.__defaults__)
        self.read(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                self.read(cell.cell_contents)
            except ValueError:  # not assigned yet
                self._write("empty cell")
        self._read_code(function.__code__, function.__globals__)

    def _read_code(self, code: CodeType, names: Mapping[str, Any]) -> None:
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self._write("code", repr(shape), code.co_code.hex(), repr(code.co_names), repr(code.co_varnames))
        self._write(repr(code.co_freevars), repr(code.co_cellvars), getattr(code, "co_exceptiontable", b"").hex())
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._read_code(constant, names)
            else:
                self.read(constant)
        for name in code.co_names:
            value = names.get(name)
            if not isinstance(value, ModuleType):
                if name in names:
                    self.read(value)
            elif self._is_own(value):
                for member in code.co_names:
                    if member in vars(value):
                        self.read(vars(value)[member])
        for module in _imports(code, str(names.get("__package__") or "")):
            if module.split(".")[0] == self._package:
                self.read(_code_of(module))

    def _read_class(self, cls: type) -> None:
        self._write("class", cls.__module__, cls.__qualname__)
        if not self._is_own(cls):
            return
        for base in cls.__bases__:
            self.read(base)
        for name in sorted(vars(cls)):
            if name not in _CLASS_NOISE:
                self._write(name)
                self.read(vars(cls)[name])

    def _is_own(self, thing: Any) -> bool:
        name = (thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", None)) or ""
        package = name.split(".")[0]
        if package == "labwright" and (self._package != package or name.startswith("labwright.workflow")):
            return False  # a task uses it, but it is not part of the task
        if package == self._package:
            return True
        file = getattr(sys.modules.get(name), "__file__", None)
        path = os.path.realpath(file) if file else ""
        return bool(path) and not path.startswith(_FOREIGN) and not any(part in path for part in _INSTALLED)


def _imports(code: CodeType, package: str) -> Iterator[str]:
    """Yield the modules that are imported inside a function; with `from . import x`, also x."""
    loaded: list[Any] = [0, None]
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith("LOAD_"):
            loaded = [loaded[-1], instruction.argval]
        elif instruction.opname == "IMPORT_NAME":
            level, names = loaded
            base = package.rsplit(".", level - 1)[0] if level > 1 else package
            module = f"{base}.{instruction.argval}".rstrip(".") if level else str(instruction.argval)
            yield module
            if level and not instruction.argval:
                yield from (f"{module}.{name}" for name in names or ())


def _code_of(module: str) -> CodeType | str:
    """Return the code of a whole module without importing it. Its parent packages are imported."""
    try:
        spec = importlib.util.find_spec(module)
        loader = spec.loader if spec else None
        code = loader.get_code(module) if loader is not None and hasattr(loader, "get_code") else None
    except (ImportError, ValueError, SyntaxError):
        code = None
    return code if isinstance(code, CodeType) else f"unknown module {module}"
