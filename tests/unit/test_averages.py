"""Numbers near the end of what a float holds: every run and every project must survive them."""

from __future__ import annotations

import math
import sys

import pytest

from labwright.domain.averages import deviation_of, mean_of, total_of
from labwright.domain.metric import mean_and_spread

HUGE = [1.7e308, 1.7e308, 1.6e308]


def test_ordinary_numbers_are_summed_exactly() -> None:
    assert total_of([0.1] * 10) == 1.0
    assert mean_of([1.0, 2.0, 4.5]) == 2.5
    assert deviation_of([1.0, 2.0, 3.0], 2.0) == pytest.approx(1.0)


def test_sums_beyond_the_largest_float_are_the_largest_float() -> None:
    assert total_of(HUGE) == sys.float_info.max
    assert total_of([-value for value in HUGE]) == -sys.float_info.max
    assert mean_of(HUGE) == pytest.approx(5 / 3 * 1e308)


@pytest.mark.parametrize("column", [HUGE, [1e200, -1e200], [1.7e308, -1.7e308]])
def test_the_spread_of_huge_numbers_is_no_error(column: list[float]) -> None:
    ((mean, spread, count),) = mean_and_spread([column])
    assert math.isfinite(mean) and spread > 0 and count == len(column)
