"""Which pictures a report has: the metric against each swept parameter, and how the best and the baseline learned."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.search.results import ConfigurationResult
from labwright.planning.results.findings import Findings
from labwright.planning.results.scales import of_numbers, of_parameter
from labwright.planning.results.svg import Chart, Line, Point
from labwright.planning.results.words import params_text
from labwright.services.metrics.compare import mean_curve

_LINES = 6  # beyond so many nobody tells them apart: points then, without lines
_CURVE_POINTS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    file: str
    about: str
    svg: str


def pictures_of(lab: Lab, findings: Findings) -> list[Picture]:
    return [*_by_parameter(findings), *_curves(lab, findings)]


def _by_parameter(findings: Findings) -> Iterator[Picture]:
    valued = [found for found in findings.configurations if found.mean is not None]
    for index, name in enumerate(findings.grid):
        having = [found for found in valued if name in found.params]
        if len({json.dumps(found.params[name]) for found in having}) > 1:
            file = f"{findings.step}-by-{_file_name(name)}-{index + 1}.svg"
            yield Picture(
                file=file,
                about=f"{findings.metric.name} against {name}",
                svg=_parameter_chart(findings, name, having).svg(),
            )


def _parameter_chart(findings: Findings, name: str, having: list[ConfigurationResult]) -> Chart:
    tried = _in_order({json.dumps(found.params[name]): found.params[name] for found in having}, findings.grid[name])
    scale, places = of_parameter(tried)
    place = {json.dumps(value): places[index] for index, value in enumerate(tried)}
    groups: dict[str, list[ConfigurationResult]] = {}
    for found in sorted(having, key=lambda found: found.trial or 0):
        others = {other: value for other, value in found.params.items() if other != name}
        groups.setdefault(json.dumps(others, sort_keys=True), []).append(found)
    many = len(groups) > _LINES
    lines = [
        Line(
            name="" if many or len(groups) == 1 else params_text(json.loads(others)),
            points=_points(findings, members, name, place),
            joined=not many,
        )
        for others, members in groups.items()
    ]
    if many:  # one colour: which point is which, the table says
        lines = [Line(name="", points=[point for line in lines for point in line.points], joined=False)]
    return Chart(
        title=f"{findings.metric.name} against {name}{_over_seeds(having)}",
        x_name=name,
        y_name=findings.metric.name,
        x=scale,
        y=of_numbers([*_extent(lines), *_baseline_value(findings)]),
        lines=lines,
        level=_level(findings),
    )


def _points(findings: Findings, members: list[ConfigurationResult], name: str, place: dict[str, float]) -> list[Point]:
    found = [
        Point(
            x=place[json.dumps(member.params[name])],
            y=member.mean or 0.0,
            spread=member.std or 0.0,
            best=member is findings.best,
        )
        for member in members
    ]
    return sorted(found, key=lambda point: point.x)


def _in_order(tried: dict[str, Any], planned: list[Any]) -> list[Any]:
    """As the plan has them; the baseline's own value where it fits, or at the end."""
    order = {json.dumps(value): index for index, value in enumerate(planned)}
    return sorted(tried.values(), key=lambda value: order.get(json.dumps(value), len(order)))


def _over_seeds(having: list[ConfigurationResult]) -> str:
    return ": mean ± std over seeds" if any(found.std for found in having) else ""


def _extent(lines: list[Line]) -> list[float]:
    return [end for line in lines for p in line.points for end in (p.y - p.spread, p.y + p.spread)]


def _baseline_value(findings: Findings) -> list[float]:
    baseline = findings.baseline
    return [] if baseline is None or baseline.mean is None else [baseline.mean]


def _level(findings: Findings) -> tuple[str, float] | None:
    values = _baseline_value(findings)
    return ("the baseline", values[0]) if values else None


def _curves(lab: Lab, findings: Findings) -> Iterator[Picture]:
    named = [("the best", findings.best), ("the baseline", findings.baseline)]
    same = findings.best is findings.baseline
    lines = []
    for who, found in named[:1] if same else named:
        if found is not None:
            curve = _curve(lab, findings, found)
            if len(curve) > 1:
                words = f"{who}{' (the baseline)' if same else ''}: {params_text(found.params)}"
                lines.append(Line(name=words, points=curve, band=True, dashed=who == "the baseline"))
    if not lines:
        return
    chart = Chart(
        title=f"{findings.metric.name} while learning" + (", mean and std over seeds" if _has_spread(lines) else ""),
        x_name="step",
        y_name=findings.metric.name,
        x=of_numbers([point.x for line in lines for point in line.points], padding=0.02),
        y=of_numbers(_extent(lines)),
        lines=lines,
    )
    about = f"{findings.metric.name} while learning, the best and the baseline"
    yield Picture(file=f"{findings.step}-curves.svg", about=about, svg=chart.svg())


def _has_spread(lines: list[Line]) -> bool:
    return any(point.spread for line in lines for point in line.points)


def _curve(lab: Lab, findings: Findings, found: ConfigurationResult) -> list[Point]:
    """Its runs may lie in several sweeps, and may tell of more parameters than the plan gave them."""
    finished = [run_id for run_id in found.run_ids if run_id in findings.values]
    if not finished:
        return []
    curve = mean_curve(lab, finished, findings.metric.name, _CURVE_POINTS)
    numbers = zip(curve["steps"], curve["mean"], curve["std"], strict=True)
    return [Point(x=x, y=mean, spread=_drawable(std)) for x, mean, std in numbers if isinstance(mean, int | float)]


def _drawable(deviation: float | str | None) -> float:
    """One seed alone has none, and of huge numbers it may be infinite."""
    return deviation if isinstance(deviation, int | float) else 0.0


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "parameter"
