"""Search spaces: refusals with locations, numbers of configurations, and repeatable draws."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labwright.domain.errors import Invalid
from labwright.domain.search.configurations import config_hash, count_grid, draw_many, grid
from labwright.domain.search.space import parse_space

CONDITIONAL = {
    "optimizer": ["adam", "sgd"],
    "momentum": {"values": [0.8, 0.9, 0.99], "when": {"optimizer": "sgd"}},
    "nesterov": {"values": [True, False], "when": {"momentum": [0.9, 0.99]}},
    "lr": {"min": 1.0, "max": 3.0, "step": 1.0},
}


def test_grid_has_every_combination_once() -> None:
    found = list(grid(parse_space({"a": [1, 2], "b": ["x", "y", "z"], "c": 7})))
    assert found == [{"a": a, "b": b, "c": 7} for a in (1, 2) for b in "xyz"]
    assert len({config_hash(config) for config in found}) == 6


def test_conditional_parameter_has_a_value_only_if_its_condition_holds() -> None:
    space = parse_space(CONDITIONAL)
    found = list(grid(space))
    assert len(found) == count_grid(space) == (1 + 1 + 2 + 2) * 3
    assert all(("momentum" in config) == (config["optimizer"] == "sgd") for config in found)
    assert all(("nesterov" in config) == (config.get("momentum", 0) >= 0.9) for config in found)


def test_grid_is_counted_without_being_built() -> None:
    assert count_grid(parse_space({f"p{n}": list(range(100)) for n in range(10)})) == 100**10


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ({"min": 0.1, "max": 0.5, "step": 0.1}, [0.1, 0.2, 0.3, 0.4, 0.5]),
        ({"min": 16, "max": 64, "step": 16}, [16, 32, 48, 64]),
        ({"min": 1, "max": 3, "int": True}, [1, 2, 3]),
        ({"min": 0.001, "max": 0.1, "log": True, "count": 3}, [0.001, 0.01, 0.1]),
        ({"min": 0, "max": 1, "count": 3}, [0.0, 0.5, 1.0]),
        ([None, "a"], [None, "a"]),
        ({"value": 3}, [3]),
        ("cosine", ["cosine"]),
    ],
)
def test_grid_values_are_what_one_would_type(spec: Any, values: list[Any]) -> None:
    found = [config["x"] for config in grid(parse_space({"x": spec}))]
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("parameters", "field", "words"),
    [
        ({}, ("parameters",), "no parameters"),
        ({"lr": []}, ("parameters", "lr"), "empty list"),
        ({"lr": ["a", "b\0"]}, ("parameters", "lr", 1), "NUL"),
        ({"lr": {"values": []}}, ("parameters", "lr", "values"), "empty list"),
        ({"lr": {"min": 2, "max": 1}}, ("parameters", "lr", "min"), "min 2 and max 1"),
        ({"lr": {"min": 1}}, ("parameters", "lr"), "no max"),
        ({"lr": {"min": "1e-4", "max": 1}}, ("parameters", "lr", "min"), "must be a number"),
        ({"lr": {"min": 0, "max": 1, "log": True}}, ("parameters", "lr", "min"), "must start above 0"),
        ({"lr": {"min": 0, "max": 1, "log": "yes"}}, ("parameters", "lr", "log"), "true or false"),
        ({"lr": {"min": 0, "max": 1, "maximum": 2}}, ("parameters", "lr", "maximum"), "not a field here"),
        ({"lr": {"min": 0, "max": 1, "step": -1}}, ("parameters", "lr", "step"), "cannot be the step"),
        ({"lr": {"min": 0, "max": 1, "count": 1}}, ("parameters", "lr", "count"), "cannot be the count"),
        ({"lr": {"min": 0.5, "max": 2, "int": True}}, ("parameters", "lr"), "is not whole"),
        ({"lr": {"value": 1, "extra": 1}}, ("parameters", "lr"), "not clear"),
        ({"lr": [1, 1.0]}, ("parameters", "lr", 1), "twice"),
        ({"a b": [1]}, ("parameters", "a b"), "cannot be the name"),
        ({"a": {"values": [1], "when": {"b": 1}}}, ("parameters", "a", "when", "b"), "not another parameter"),
        ({"a": {"values": [1], "when": {"b": 3}}, "b": [1]}, ("parameters", "a", "when", "b"), "is never 3"),
        (
            {"a": {"values": [1], "when": {"b": 1}}, "b": {"values": [1], "when": {"a": 1}}},
            ("parameters", "a", "when"),
            "depend on each other",
        ),
        (
            {"a": {"values": [1], "when": {"b": 1}}, "b": {"min": 0, "max": 2}},
            ("parameters", "a", "when", "b"),
            "is a range",
        ),
    ],
)
def test_fault_is_named_with_its_location(parameters: dict[str, Any], field: tuple[str, ...], words: str) -> None:
    with pytest.raises(Invalid, match=words) as caught:
        parse_space(parameters)
    assert caught.value.field == field
    assert caught.value.hint


@pytest.mark.parametrize(
    ("low", "hint"),
    [("1e-4", "Write 0.0001 without quotes"), (".nan", "finite"), ("few", "finite"), (True, "finite")],
)
def test_value_that_is_not_a_number_is_refused_with_a_hint(low: Any, hint: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_space({"lr": {"min": low, "max": 1}})
    assert hint in caught.value.hint


def test_grid_refuses_a_range_without_steps() -> None:
    with pytest.raises(Invalid, match="lr is a continuous range"):
        count_grid(parse_space({"lr": {"min": 0, "max": 1}}))


@given(seed=st.integers(0, 2**32), count=st.integers(1, 60))
def test_draws_repeat_are_in_the_space_and_unique(seed: int, count: int) -> None:
    space = parse_space(
        {
            **CONDITIONAL,
            "lr": {"min": 1e-5, "max": 0.1, "log": True},
            "units": {"min": 8, "max": 256, "int": True},
            "drop": {"min": 0, "max": 0.5, "step": 0.1},
        }
    )
    found = draw_many(space, seed, count, ())
    assert found == draw_many(space, seed, count, ())
    assert len({config_hash(config) for config in found}) == count
    for config in found:
        assert 1e-5 <= config["lr"] <= 0.1
        assert 8 <= config["units"] <= 256
        assert round(config["drop"] * 10) == pytest.approx(config["drop"] * 10)
        assert ("momentum" in config) == (config["optimizer"] == "sgd")


def test_small_space_is_exhausted_and_not_repeated() -> None:
    space = parse_space({"a": [1, 2, 3], "b": {"min": 1, "max": 4, "int": True}})
    found = draw_many(space, 7, 100, ())
    assert len(found) == len({config_hash(config) for config in found}) == 12


def test_further_draws_continue_after_the_first() -> None:
    space = parse_space({"x": {"min": 0, "max": 1}})
    first = draw_many(space, 3, 10, ())
    known = {config_hash(config) for config in first}
    assert first + draw_many(space, 3, 5, known) == draw_many(space, 3, 15, ())


def test_hash_depends_on_values_but_not_on_order_or_seed() -> None:
    assert config_hash({"a": 1, "b": 2.0}) == config_hash({"b": 2, "a": 1.0, "seed": 5})
    assert config_hash({"a": 1}) != config_hash({"a": True})
    assert config_hash({"a": "1"}) != config_hash({"a": 1})
