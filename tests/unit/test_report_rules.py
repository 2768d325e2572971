"""What a report may claim, which criteria it ticks, and that foreign text stays text."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from labwright.domain.plan_document.document import Criterion
from labwright.domain.run import Run, RunStatus
from labwright.domain.search.results import ConfigurationResult
from labwright.planning.results.comparison import compared
from labwright.planning.results.criteria import judge
from labwright.planning.results.findings import FailedRun, Findings
from labwright.planning.results.scales import of_numbers, of_parameter
from labwright.planning.results.svg import HEIGHT, Chart, Line, Point
from labwright.planning.results.words import block, code, plain, spread, table
from labwright.workflow import Metric

HOSTILE = '</text><script>alert(1)</script>|`x` ](javascript:1) "\u202e\x07'


def configuration(lr: float, *values: float) -> ConfigurationResult:
    found = ConfigurationResult(label=str(lr), trial=0, params={"lr": lr})
    for seed, value in enumerate(values):
        found.add(f"run-{lr}-{seed}", RunStatus.FINISHED, seed, "t", value)
    found.settle()
    return found


def kind(best: ConfigurationResult | None, baseline: ConfigurationResult | None, goal: str = "max") -> str:
    return compared(best, baseline, goal, "acc", 2).kind


def test_claimed_difference_is_supported_by_the_numbers() -> None:
    base = configuration(0.1, 0.50, 0.51, 0.49)
    assert kind(configuration(0.2, 0.90, 0.91, 0.89), base) == "beyond_noise"
    assert kind(configuration(0.2, 0.52, 0.40, 0.62), base) == "within_noise"
    assert kind(configuration(0.2, 0.9), base) == "unknown"
    assert kind(base, base) == "same"
    assert kind(base, None) == "no_baseline"
    assert kind(None, base) == kind(base, configuration(0.3)) == "no_value"


def test_with_one_run_no_noise_is_claimed() -> None:
    words = compared(configuration(0.2, 0.9), configuration(0.1, 0.5), "max", "acc", 2).text
    assert "no noise can be told" in words and "more than the noise" not in words


def test_identical_seed_results_say_nothing_about_noise() -> None:
    assert kind(configuration(0.2, 0.9, 0.9), configuration(0.1, 0.5, 0.5)) == "no_noise"


def test_lower_is_better_if_that_is_the_goal() -> None:
    found = compared(configuration(0.2, 0.1, 0.11), configuration(0.1, 0.5, 0.51), "min", "loss", 2)
    assert found.gain == pytest.approx(0.4) and found.kind == "beyond_noise"


def test_best_of_many_is_reported_as_chosen() -> None:
    best, base = configuration(0.2, 0.90, 0.91, 0.89), configuration(0.1, 0.50, 0.51, 0.49)
    assert "chosen among 9" in compared(best, base, "max", "acc", 9).text


def test_mean_has_the_digits_that_its_deviation_supports() -> None:
    assert spread(configuration(0.1, 0.85692, 0.84111, 0.86)) == "0.853 ± 0.010 (n 3)"
    assert spread(configuration(0.1, 0.5)) == "0.5 (1 run)"
    assert spread(configuration(0.1)) == "–"


def run(lr: float, seed: int, status: RunStatus = RunStatus.FINISHED, **metrics: float) -> Run:
    summary = {name: {"last": value} for name, value in metrics.items()}
    facts: dict[str, Any] = {"params": {"lr": lr}, "seed": seed, "status": status, "summary": summary}
    return Run(id=f"run-{lr}-{seed}", name="r", command="c", workdir="/", created_at="", created_by="", **facts)


def findings(failed: int = 0) -> Findings:
    best, base = configuration(0.2, 0.90, 0.91), configuration(0.1, 0.50, 0.52)
    runs = [run(0.2, 0, val_acc=0.90, val_loss=0.30), run(0.2, 1, val_acc=0.91, val_loss=0.31)]
    runs += [run(0.1, 0, val_acc=0.50, val_loss=0.20), run(0.1, 1, val_acc=0.52, val_loss=0.21)]
    lost = [run(0.3, seed, RunStatus.FAILED) for seed in range(failed)]
    return Findings(
        step="train",
        sweep_ids=["sweep-1"],
        metric=Metric("val_acc", "maximize"),
        grid={"lr": [0.1, 0.2]},
        runs=[*runs, *lost],
        values={one.id: float(one.summary["val_acc"]["last"]) for one in runs},
        configurations=[best, base],
        baseline=base,
        failed=[FailedRun(run=one, said="no") for one in lost],
    )


@pytest.mark.parametrize(
    ("text", "met", "evidence"),
    [
        ("Every run ends and reports val_acc", True, "4 of 4 runs of sweep-1"),
        ("The best configuration is compared with the baseline by val_acc", True, "run-0.2-1"),
        ("val_loss is not worse than the baseline's", False, "val_loss"),
        ("val_acc is at least 0.9", True, "0.905"),
        ("val_acc above 95%", False, "limit 0.95"),
        ("`val_loss` < 0.35", True, "0.305"),
        ("The best beats the baseline", True, "more than the noise"),
        ("The team is happy", None, "takes a person"),
    ],
)
def test_criterion_is_ticked_by_the_numbers_and_shows_them(text: str, met: bool | None, evidence: str) -> None:
    found = findings()
    comparison = compared(found.best, found.baseline, found.goal, "val_acc", 2)
    (judged,) = judge((Criterion(text=text),), found, comparison)
    assert judged.met is met
    assert evidence in judged.evidence


def test_failed_run_leaves_the_criterion_for_every_run_open() -> None:
    found = findings(failed=1)
    (judged,) = judge(
        (Criterion(text="Every run ends and reports val_acc"),), found, compared(None, None, "max", "", 0)
    )
    assert judged.met is False and "run-0.3-0" in judged.evidence


def test_without_any_run_nothing_is_ticked() -> None:
    (judged,) = judge((Criterion(text="Every run ends"),), None, compared(None, None, "max", "", 0))
    assert judged.met is False


def test_foreign_text_stays_text_in_markdown() -> None:
    assert "<script>" not in plain(HOSTILE).replace("\\<", "")
    assert "\n" not in plain("a\nb") and "\u202e" not in plain(HOSTILE)
    cell = code(HOSTILE)
    assert cell.count("`") == 2 and "|" not in cell
    (_head, _line, row) = table(["a"], [[code("x|y\n| z |")]])
    assert row.count("|") == 2
    assert all(line.startswith("    ") for line in block("```\n# no\n\x1b[31mred"))


def chart(**facts: Any) -> Chart:
    lines = [Line(name=HOSTILE, points=[Point(x=1, y=2, spread=0.5, best=True), Point(x=2, y=3)])]
    given = {"title": HOSTILE, "x_name": HOSTILE, "y_name": HOSTILE, "lines": lines, "level": (HOSTILE, 2.5)}
    return Chart(**{**given, "x": of_numbers([1, 2]), "y": of_numbers([1, 4]), **facts})


def test_foreign_text_stays_text_in_a_picture() -> None:
    root = ElementTree.fromstring(chart().svg())
    tags = {element.tag.split("}")[1] for element in root.iter()}
    assert tags <= {"svg", "title", "rect", "text", "path", "polyline", "polygon", "circle", "g"}
    assert any("<script>" in (element.text or "") for element in root.iter())


def test_picture_of_one_or_equal_values_can_be_drawn() -> None:
    for values in ([5.0], [5.0, 5.0], [0.0, 0.0], [1e-30, 1e30]):
        ElementTree.fromstring(chart(y=of_numbers(values)).svg())


@pytest.mark.parametrize("lines", [1, 4, 8])
def test_legend_is_above_the_plot_however_many_lines_it_has(lines: int) -> None:
    points = [Point(x=1, y=4), Point(x=2, y=4, best=True)]
    names = [f"model_width {index}, optim_lr 0.001" for index in range(lines)]
    root = ElementTree.fromstring(chart(lines=[Line(name=name, points=points) for name in names]).svg())
    legend = [float(text.get("y", 0)) for text in root.findall("{*}text")]
    (plot,) = (group for group in root.findall("{*}g") if group.find("{*}polyline") is not None)
    down = float(plot.get("transform", "").split()[1].rstrip(")"))
    highest = min(float(circle.get("cy", 0)) for circle in plot.findall("{*}circle"))
    assert max(legend) < down + highest
    assert float(root.get("height", 0)) == HEIGHT + down


def test_ratio_scaled_numbers_get_a_log_axis_and_words_are_categories() -> None:
    scale, _places = of_parameter([0.001, 0.01, 1.0])
    assert scale.log and [words for _value, words in scale.ticks] == ["0.001", "0.01", "1"]
    assert not of_parameter([1, 2, 3])[0].log
    assert of_parameter([0.001, 0.003, 0.01])[0].log and of_parameter([128, 32, 64])[0].log
    assert not of_parameter([0.0, 0.1, 1.0])[0].log and not of_parameter([2, 4])[0].log
    scale, places = of_parameter(["adam", "sgd"])
    assert [scale.at(place) for place in places.values()] == [0.25, 0.75]
    assert [words for _value, words in of_parameter([True, False])[0].ticks] == ["on", "off"]
