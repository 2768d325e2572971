"""A task: a function, or a class with `run` or `__call__`, whose annotations declare its inputs and outputs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from labwright.workflow.annotations import NameScope, fields_of, read_annotation, scope_of
from labwright.workflow.type_rules import ANY, Type, optional

WHOLE = "result"  # the output that holds the whole return value
_MARK = "__labwright_task__"


@dataclass(frozen=True)
class Retry:
    """Retry up to `count` times, first after `delay` seconds, then `backoff` times as long each time."""

    count: int = 0
    delay: float = 0.0
    backoff: float = 1.0

    def wait_before(self, attempt: int) -> float:
        """Return the seconds to wait before the second attempt, the third, …"""
        return self.delay * self.backoff ** (attempt - 2)


@dataclass(frozen=True)
class Input:
    type: Type
    required: bool = True


@dataclass(frozen=True)
class Options:
    """The options of `@task(…)`."""

    retry: Retry = Retry()
    timeout: float | None = None  # seconds an attempt may take
    writes: tuple[str, ...] = ()  # artifacts: files that only this task writes


class Task:
    """One unit of Python work. Calling it calls the body, so a task is tested like a function."""

    def __init__(self, body: Callable[..., Any], name: str, options: Options) -> None:
        functools.update_wrapper(self, body)
        self.body = body
        self.name = name
        self.options = options
        self.is_async = inspect.iscoroutinefunction(body)
        self.faults: list[tuple[str, str]] = []  # (code, message), for `validate_contract`
        signature = inspect.signature(body)
        scope = scope_of(inspect.unwrap(getattr(body, "__func__", body)))
        self.inputs: dict[str, Input] = {}
        for parameter in signature.parameters.values():
            by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if not by_name:
                self._fault("unnamed_input", f"{parameter} cannot be given by name")
            kind = self._type(f"input {parameter.name!r}", parameter.annotation, scope)
            self.inputs[parameter.name] = Input(kind, parameter.default is parameter.empty and by_name)
        self.returns = self._type("the return value", signature.return_annotation, scope)
        parts = {part.name: part.type if part.required else optional(part.type) for part in fields_of(self.returns)}
        if WHOLE in parts:
            self._fault("reserved_output", f"{WHOLE!r} is the name of the whole return value; rename the field")
        self.outputs = {**parts, WHOLE: self.returns}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.body(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    @property
    def writes(self) -> tuple[str, ...]:
        return self.options.writes

    def _fault(self, code: str, message: str) -> None:
        self.faults.append((code, message))

    def _type(self, what: str, annotation: Any, scope: NameScope) -> Type:
        if annotation is inspect.Parameter.empty:
            self._fault("missing_annotation", f"{what} has no annotation")
            return ANY
        kind = read_annotation(annotation, scope)
        for unknown in _unknown_parts(kind):
            self._fault("unresolved_annotation", f"{what}: {unknown.name} cannot be resolved")
        return kind


def _unknown_parts(kind: Type) -> list[Type]:
    parts = [*kind.args, *(field.type for field in kind.fields)]
    return [kind] if kind.form == "unknown" else [found for part in parts for found in _unknown_parts(part)]


def task(
    body: Any = None,
    *,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,
    writes: Sequence[str] = (),
) -> Any:
    """Make a task of a function, or mark a class whose instances are tasks. Usable with or without arguments."""
    options = Options(retry or Retry(), timeout, tuple(writes))

    def decorate(target: Any) -> Any:
        if isinstance(target, type):
            setattr(target, _MARK, (name or target.__name__, options))
            return target
        return Task(target, name or str(target.__name__), options)

    return decorate if body is None else decorate(body)


def as_task(work: Any) -> Any:
    """Return the task for a task or an instance of a marked class; other objects unchanged."""
    if isinstance(work, type) and hasattr(work, _MARK):
        work = work()
    mark = getattr(type(work), _MARK, None)
    method = getattr(work, "run", None) or (work if callable(work) else None)
    if mark is None or method is None:
        return work
    body = method if inspect.ismethod(method) else work.__call__
    return Task(body, mark[0], mark[1])
