"""Numbers near the limits of a float: every run and every project survives them."""

from __future__ import annotations

import math
from array import array

import pytest

from labwright.domain.metrics.points import Points, Statistics, deviation_of, mean_and_spread, mean_of, total_of
from labwright.domain.run import RunStatus
from labwright.domain.search.results import ConfigurationResult, differ

HUGE = [1.7e308, 1.7e308, 1.6e308]


def test_ordinary_numbers_are_summed_exactly() -> None:
    assert total_of([0.1] * 10) == 1.0
    assert mean_of([1.0, 2.0, 4.5]) == 2.5
    assert deviation_of([1.0, 2.0, 3.0], 2.0) == pytest.approx(1.0)


def test_sums_beyond_the_largest_float_are_the_largest_float() -> None:
    assert total_of(HUGE) == math.inf
    assert total_of([-value for value in HUGE]) == -math.inf
    assert total_of([*HUGE, *(-value for value in HUGE), 1e308]) == pytest.approx(1e308)
    assert mean_of(HUGE) == pytest.approx(5 / 3 * 1e308)


@pytest.mark.parametrize("column", [HUGE, [1e200, -1e200], [1.7e308, -1.7e308]])
def test_spread_of_huge_numbers_is_not_an_error(column: list[float]) -> None:
    ((mean, spread, count),) = mean_and_spread([column])
    assert math.isfinite(mean) and spread is not None and spread > 0 and count == len(column)


@pytest.mark.parametrize("value", [0.1, 0.7, 1e-300, 1.7e308])
@pytest.mark.parametrize("count", [3, 6, 7])
def test_equal_values_have_no_deviation_whatever_the_rounding(value: float, count: int) -> None:
    assert mean_and_spread([[value] * count]) == [(value, 0.0, count)]
    assert (configuration([value] * count).mean, configuration([value] * count).std) == (value, 0.0)


def test_single_value_has_no_deviation() -> None:
    assert mean_and_spread([[2.0, math.nan], [3.0, 3.0]]) == [(2.0, None, 1), (3.0, 0.0, 2)]


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e80, 1e300])
def test_significance_does_not_depend_on_the_unit(scale: float) -> None:
    near, far = (configuration([value * scale for value in values]) for values in ([1.0, 1.1, 1.2], [5.0, 5.1, 5.2]))
    assert differ(near, far)
    assert not differ(near, configuration([value * scale for value in [0.9, 1.2, 1.3]]))


@pytest.mark.parametrize(
    ("one", "other", "are_different"),
    [
        ([0.00, 0.04], [0.199, 0.243], True),  # p = 0.022, with 1.98 degrees of freedom
        ([0.00, 0.04], [0.099, 0.143], False),  # p = 0.078
        ([0.0, 0.1, 0.2], [0.23, 0.34, 0.45], True),  # p = 0.0495, with 3.96
        ([0.0, 0.1, 0.2], [0.21, 0.32, 0.43], False),  # p = 0.063
        ([0.0, 0.001], [0.0, 0.3], False),
        ([0.0, 0.001], [-1.7e308, 1.7e308], False),  # no float can hold the spread
    ],
)
def test_fractional_degrees_of_freedom_are_not_rounded(
    one: list[float], other: list[float], are_different: bool
) -> None:
    assert differ(configuration(one), configuration(other)) == are_different


def configuration(values: list[float]) -> ConfigurationResult:
    found = ConfigurationResult(label="c", trial=None)
    for seed, value in enumerate(values):
        found.add(f"run-{seed}", RunStatus.FINISHED, seed, None, value)
    found.settle()
    return found


def test_series_with_an_overflowing_sum_has_no_mean() -> None:
    known = Statistics()
    for values in ([1.0, 2.0], HUGE, [-value for value in HUGE], [3.0]):
        known.add(Points(array("q", range(len(values))), array("d", [0.0] * len(values)), array("d", values)))
        assert known.mean == (1.5 if values == [1.0, 2.0] else None)
    assert (known.low, known.high, known.last) == (-1.7e308, 1.7e308, 3.0)
