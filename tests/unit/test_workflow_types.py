"""Types on edges are compared, not named: generics, unions, postponed annotations."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NewType, Optional, TypedDict, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labwright.workflow import task
from labwright.workflow.annotations import NameScope, read_annotation
from labwright.workflow.type_rules import accepts, misfit


class Row(TypedDict):
    lr: float
    acc: float


class LooseRow(TypedDict, total=False):
    lr: float


class WiderRow(Row):
    note: str


@dataclass
class Base:
    x: float


@dataclass
class Derived(Base):
    y: float = 0.0


class Colour(Enum):
    RED = 1


Metres = NewType("Metres", float)


def kind(annotation: Any) -> Any:
    return read_annotation(annotation, NameScope(globals()))


@pytest.mark.parametrize(
    ("want", "have"),
    [
        ("float", "int"),
        ("int", "bool"),
        ("list[float]", "list[int]"),
        ("list[float]", typing.List[float]),  # noqa: UP006
        ("Sequence[float]", "list[float]"),
        ("Sequence[float]", "tuple[float, ...]"),
        ("Sequence[float]", "tuple[float, int]"),
        ("dict[str, list[float]]", "dict[str, list[int]]"),
        ("Optional[float]", "float"),
        ("float | None", "None"),
        ("int | str | None", Union[int, None]),  # noqa: UP007
        ("Any", "list[float]"),
        ("list[float]", "Any"),
        ("list[float]", "list"),
        ("Row", "WiderRow"),
        ("dict[str, float]", "Row"),
        ("LooseRow", "Row"),
        ("Base", "Derived"),
        ("str", "Literal['a', 'b']"),
        ("Literal['a', 'b']", "Literal['a']"),
        ("object", "Path"),
        ("float", "Metres"),
        ("typing.Mapping[str, float]", "dict[str, float]"),
    ],
)
def test_fits(want: Any, have: Any) -> None:
    assert accepts(kind(want), kind(have))


@pytest.mark.parametrize(
    ("want", "have"),
    [
        ("list[float]", "float"),
        ("float", "list[float]"),
        ("list[float]", "list[str]"),
        ("list[int]", "list[float]"),
        ("float", "float | None"),
        ("float", Optional[float]),  # noqa: UP045
        ("str", "Path"),
        ("Path", "str"),
        ("dict[str, list[float]]", "dict[str, float]"),
        ("dict[str, float]", "dict[int, float]"),
        ("Row", "dict[str, float]"),
        ("Row", "LooseRow"),
        ("WiderRow", "Row"),
        ("Derived", "Base"),
        ("Literal['a']", "str"),
        ("tuple[float, float]", "tuple[float]"),
        ("list[float]", "tuple[float, ...]"),
        ("int", "Literal['a']"),
        ("float", "None"),
        ("Sequence[float]", "str"),
        ("dict[str, str]", "Row"),
    ],
)
def test_does_not_fit(want: Any, have: Any) -> None:
    assert not accepts(kind(want), kind(have))


def test_both_spellings_of_a_type_are_one_type() -> None:
    assert kind("list[float]") == kind(list[float]) == kind(typing.List[float])  # noqa: UP006
    assert kind("float | None") == kind(Optional[float]) == kind("Union[float, None]")  # noqa: UP045
    assert str(kind("dict[str, list[float]] | None")) == "dict[str, list[float]] | None"


def test_an_unresolved_name_is_an_unknown_type() -> None:
    unknown = kind("list[NoSuchThing]")
    assert unknown.form == "unknown" and "NoSuchThing" in str(unknown)


@pytest.mark.parametrize("text", ["", "1 +", "list[", "Literal[float]", "Optional", "typing.nothing", "5"])
def test_nonsense_in_an_annotation_is_unknown(text: str) -> None:
    assert kind(text).form == "unknown"


def test_members_of_an_enum_may_be_literals() -> None:
    assert kind("Literal[Colour.RED]") == kind(Literal[Colour.RED])


def test_an_annotation_is_never_executed() -> None:
    assert kind("__import__('os').abort()").form == "unknown"


def test_the_fields_of_a_result_are_outputs() -> None:
    @task
    def measure(path: Path, tries: int = 3) -> Row:
        raise AssertionError(path, tries)

    assert {name: str(kind) for name, kind in measure.outputs.items()} == {
        "lr": "float",
        "acc": "float",
        "result": "Row",
    }
    assert {name: (str(given.type), given.required) for name, given in measure.inputs.items()} == {
        "path": ("Path", True),
        "tries": ("int", False),
    }


@pytest.mark.parametrize(
    ("value", "want", "words"),
    [
        ([1.0, "x"], "list[float]", "[1]: expected float, got str"),
        ({"lr": 0.1}, "Row", "lacks acc"),
        ({"lr": 0.1, "acc": 1, "extra": 2}, "Row", "undeclared extra"),
        ({"a": [1, None]}, "dict[str, list[float]]", "['a']: [1]: expected float, got NoneType"),
        ("c", "Literal['a', 'b']", "'c' is not one of"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_its_place(value: Any, want: str, words: str) -> None:
    assert words in misfit(value, kind(want))


_TYPES = st.recursive(
    st.sampled_from(["int", "float", "str", "bool", "None", "Path", "Row", "Base", "Any"]),
    lambda inner: st.one_of(
        inner.map("list[{}]".format),
        inner.map("dict[str, {}]".format),
        st.tuples(inner, inner).map(" | ".join),
        st.tuples(inner, inner).map(lambda pair: f"tuple[{', '.join(pair)}]"),
    ),
    max_leaves=6,
)


@given(_TYPES)
def test_every_type_feeds_itself_and_its_optional(text: str) -> None:
    assert accepts(kind(text), kind(text))
    assert accepts(kind(f"{text} | None"), kind(text))


@given(_TYPES)
def test_the_text_of_a_type_reads_back_as_the_type(text: str) -> None:
    assert kind(str(kind(text))) == kind(text)


_USED = (Sequence, Literal)
