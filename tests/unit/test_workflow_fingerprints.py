"""The content hash of a task: what changes it, what does not, and that every process agrees on it."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.workflow import fingerprint, task

TASKS = """
import math
from dataclasses import dataclass
from enum import Enum
from typing import TypedDict
from . import helpers
from .helpers import mean
from .shapes import Circle

@dataclass(frozen=True)
class Setup:
    rate: float = 0.5
    names: tuple = ("a", "b")

class Mode(Enum):
    FAST = "fast"
    SLOW = "slow"

class Row(TypedDict):
    x: float

RATE = 0.1
SETUP = Setup()
NAMES = {"b": [1, 2], "a": {3, 4, 5}}
KINDS = frozenset({"x", "y", "z"})

def own(x):
    return x * RATE + len(NAMES) + ("x" in KINDS) + SETUP.rate + len(Row(x=Mode.FAST))

def outer(factor):
    def inner(x: float) -> float:
        return own(x) * factor + math.pi
    return inner

scaled = outer(2)

def train(x: float, *, epochs: int = 3) -> float:
    return mean([own(x), helpers.square(x), epochs]) + Circle(x).area() + dispatch["a"](x)

def lazy(x: float) -> float:
    from .late import shift
    return shift(x)

dispatch = {"a": lambda x: x + 1}
"""
HELPERS = """
def mean(values):
    return sum(values) / count(values)

def count(values):
    return len(values)

def square(x):
    return x * x

def unused(x):
    return x
"""
SHAPES = """
class Circle:
    factor = 3
    def __init__(self, r):
        self.r = r
    def area(self):
        return self.factor * self.r
"""
LATE = """
def shift(x):
    return x + 1
"""


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = {"tasks": TASKS, "helpers": HELPERS, "shapes": SHAPES, "late": LATE, "__init__": ""}
        (root / "experiment_x").mkdir()

    def write(self) -> None:
        for name, text in self.files.items():
            (self.root / "experiment_x" / f"{name}.py").write_text(text)

    def hash(self, name: str = "train", change: tuple[str, str, str] | None = None) -> str:
        """In this process, imported anew; with one text replaced in one file."""
        before = dict(self.files)
        if change:
            file, old, new = change
            assert old in self.files[file]
            self.files[file] = self.files[file].replace(old, new)
        self.write()
        for module in [module for module in sys.modules if module.startswith("experiment_x")]:
            del sys.modules[module]
        importlib.invalidate_caches()
        found = fingerprint(getattr(importlib.import_module("experiment_x.tasks"), name))
        self.files = before
        return found


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Project(tmp_path)
    for module in [module for module in sys.modules if module.startswith("experiment_x")]:
        del sys.modules[module]


CHANGES = {
    "its own code": ("train", ("tasks", "+ Circle", "- Circle")),
    "a default": ("train", ("tasks", "epochs: int = 3", "epochs: int = 4")),
    "a callee": ("train", ("tasks", "return x * RATE", "return x / RATE")),
    "a callee in another module": ("train", ("helpers", "/ count", "* count")),
    "a callee of a callee": ("train", ("helpers", "return len(values)", "return len(values) + 1")),
    "a callee reached through its module": ("train", ("helpers", "return x * x", "return x ** 3")),
    "a constant of the module": ("train", ("tasks", "RATE = 0.1", "RATE = 0.2")),
    "a constant container": ("train", ("tasks", "{3, 4, 5}", "{3, 4, 6}")),
    "a method of a class it uses": ("train", ("shapes", "* self.r", "* self.r * 2")),
    "an attribute of a class it uses": ("train", ("shapes", "factor = 3", "factor = 4")),
    "a function in a table": ("train", ("tasks", "x: x + 1", "x: x + 2")),
    "a default of a dataclass it reads": ("train", ("tasks", "rate: float = 0.5", "rate: float = 0.6")),
    "a member of an enum it reads": ("train", ("tasks", '"slow"', '"slower"')),
    "a closed-over value": ("scaled", ("tasks", "outer(2)", "outer(3)")),
    "a callee of a closure": ("scaled", ("tasks", "RATE = 0.1", "RATE = 0.3")),
    "an import inside the body": ("lazy", ("late", "x + 1", "x + 2")),
}
NO_CHANGES = {
    "a comment": ("train", ("tasks", "RATE = 0.1", "# the rate\nRATE = 0.1  # as published")),
    "blank lines": ("train", ("tasks", "def train", "\n\n\n\ndef train")),
    "spaces": ("train", ("tasks", "x * RATE + len(NAMES)", "x*RATE  +  len( NAMES )")),
    "the order of a set": ("train", ("tasks", "{3, 4, 5}", "{5, 4, 3}")),
    "the order of a dict": ("train", ("tasks", '{"b": [1, 2], "a": {3, 4, 5}}', '{"a": {3, 4, 5}, "b": [1, 2]}')),
    "what it does not call": ("train", ("helpers", "def unused(x):\n    return x", "def unused(x):\n    return 7")),
    "another task": ("scaled", ("tasks", "+ Circle", "- Circle")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changes_with(project: Project, what: str) -> None:
    name, change = CHANGES[what]
    assert project.hash(name) != project.hash(name, change)


@pytest.mark.parametrize("what", NO_CHANGES)
def test_does_not_change_with(project: Project, what: str) -> None:
    name, change = NO_CHANGES[what]
    assert project.hash(name) == project.hash(name, change)


def test_every_process_agrees_whatever_its_hash_seed_and_whether_bytecode_was_cached(project: Project) -> None:
    project.write()
    code = (
        f"import sys; sys.path.insert(0, {str(project.root)!r})\n"
        "from experiment_x import tasks; from labwright.workflow import fingerprint\n"
        "print(fingerprint(tasks.train), fingerprint(tasks.scaled), fingerprint(tasks.lazy))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "12345", "random")
    }
    assert len(found) == 1


def test_the_environment_that_the_caller_gives_counts() -> None:
    def body(x: float) -> float:
        return x

    made = task(body)
    assert (
        fingerprint(made, {"torch": "2.1"})
        == fingerprint(made, {"torch": "2.1"})
        != fingerprint(made, {"torch": "2.2"})
    )
    assert fingerprint(made) == fingerprint(body)


def test_functions_that_call_each_other_are_read_once() -> None:
    assert fingerprint(_even) == fingerprint(_even)
    assert fingerprint(_even) != fingerprint(_odd)


def _even(x: int) -> bool:
    return x == 0 or _odd(x - 1)


def _odd(x: int) -> bool:
    return x != 0 and _even(x - 1)


_ITSELF: list[Any] = []
_ITSELF.append(_ITSELF)


def test_a_constant_that_contains_itself_is_read() -> None:
    def reads() -> int:
        return len(_ITSELF)

    assert fingerprint(reads)


class _Anything:
    def __getattr__(self, name: str) -> Any:
        return _Anything()


_ANYTHING = _Anything()


def test_an_object_with_every_attribute_is_read() -> None:
    def reads() -> Any:
        return _ANYTHING

    assert fingerprint(reads)
