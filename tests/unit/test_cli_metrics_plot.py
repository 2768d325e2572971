"""Curves as characters: they fit, they show gaps, and their axes are correct."""

from __future__ import annotations

import math

import pytest

from labwright.cli.formatting import width
from labwright.cli.metrics.plot import Line, PlotCurve, draw, short_count, sparkline

NAN = math.nan


def text(line: Line) -> str:
    return "".join(cell if isinstance(cell, str) else cell[0] for cell in line)


def drawn(*curves: PlotCurve, columns: int = 60, rows: int = 10, log: bool = False) -> list[str]:
    return [text(line) for line in draw(curves, columns, rows, log=log)]


@pytest.mark.parametrize("columns", [30, 80, 140])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "ys",
    [
        [1.0],
        [2.0, 2.0, 2.0],
        [0.0, -5.0, 1e-9],
        [1e300, -1e300, 5.0],
        [1e308, -1e308, 0.0],
        [1.7976931348623157e308],
        [5e-324, 0.0],
        [1e-300, 1e300],
        [NAN, 1.0, math.inf, 2.0, -math.inf],
        [float(i % 7) for i in range(5000)],
        [1e15 + i for i in range(3)],
    ],
)
def test_plot_fits_its_columns_whatever_the_values(ys: list[float], columns: int, log: bool) -> None:
    lines = drawn(PlotCurve(xs=list(range(len(ys))), ys=ys), columns=columns, log=log)
    assert max(width(line) for line in lines) <= columns
    assert len(lines) in (1, 12)


@pytest.mark.parametrize("x", [2**63 - 1, -(2**63), 1e30, 1e308])
def test_single_point_is_drawn_or_reported_at_any_position(x: float) -> None:
    assert len(drawn(PlotCurve(xs=[x], ys=[1.0]))) in (1, 12)
    assert len(drawn(PlotCurve(xs=[0, x], ys=[1.0, 2.0]))) == 12


def test_axis_of_huge_numbers_names_them() -> None:
    lines = drawn(PlotCurve(xs=[0, 1], ys=[-1e308, 1e308]), rows=9)
    assert lines[0].strip().startswith("1e+308 ┤") and lines[8].strip().startswith("-1e+308 ┤")
    assert sparkline([-1e308, 0.0, 1e308], 3) == "▁▅█"


def test_series_of_only_nan_is_reported() -> None:
    assert drawn(PlotCurve(xs=[1, 2], ys=[NAN, math.inf])) == ["(no values to draw)"]


def test_gap_stays_empty_and_a_single_point_is_visible() -> None:
    ys = [1.0] * 40 + [NAN] * 20 + [1.0] + [NAN] * 20 + [1.0] * 19
    row = next(
        line for line in drawn(PlotCurve(xs=list(range(100)), ys=ys), columns=106, rows=1) if "⠤" in line or "⠒" in line
    )
    body = row.split("┤" if "┤" in row else "│")[1]
    groups = [part for part in body.split(" ") if part]
    assert [len(part) > 2 for part in groups] == [True, False, True]


def test_axis_labels_round_numbers_at_their_position() -> None:
    lines = drawn(PlotCurve(xs=[0, 1000], ys=[0.0, 1.0]), rows=9)
    assert lines[0].strip().startswith("1 ┤") and lines[8].strip().startswith("0 ┤")
    assert lines[-1].split()[0] == "0" and lines[-1].split()[-1] == "1,000"


@pytest.mark.parametrize("last", [3, 9, 20])
def test_step_axis_uses_whole_numbers(last: int) -> None:
    lines = drawn(PlotCurve(xs=[1, last], ys=[1.0, 2.0]), columns=120)
    assert len(lines[-1].split()) > 1
    assert all(label.isdigit() for label in lines[-1].split()), lines[-1]


def test_neighbouring_ticks_never_have_the_same_label() -> None:
    lines = drawn(PlotCurve(xs=[0, 1], ys=[77.5, 77.51]), rows=9)
    labels = [line.split("┤")[0].strip() for line in lines if "┤" in line]
    assert labels == ["77.51", "77.505", "77.5"]


def test_logarithmic_axis_is_logarithmic() -> None:
    lines = drawn(PlotCurve(xs=[0, 1, 2], ys=[0.001, 1.0, 1000.0]), rows=13, log=True)
    labels = [line.split("┤")[0].strip() for line in lines if "┤" in line]
    assert labels == ["1000", "100", "10", "1", "0.1", "0.01", "0.001"]


def test_each_curve_has_a_mark_that_needs_no_colour() -> None:
    curves = [PlotCurve(xs=[0, 1, 2], ys=[0.0, 1.0, float(i)], mark=mark) for i, mark in enumerate("●▲")]
    joined = "\n".join(drawn(*curves))
    assert "●" in joined and "▲" in joined


def test_counts_are_short() -> None:
    assert [short_count(value) for value in (0, 999, 1200, 45_000, 1.5e6, 0.25)] == [
        "0",
        "999",
        "1,200",
        "45k",
        "1.5M",
        "0.25",
    ]


def test_sparkline_rises_with_its_values() -> None:
    assert sparkline([0.0, 1.0, 2.0, 3.0], 4) == "▁▃▆█"
    assert sparkline([0.0, NAN, 1.0], 3) == "▁ █"
    assert sparkline([NAN], 3) == ""
