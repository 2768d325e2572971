"""The bodies of the analysis tasks and their tests: Python over what an experiment gives."""

from __future__ import annotations

_IMPORTS = "from __future__ import annotations\n\n"
BODIES = {
    "summarise": '"""Mean and spread of the metric for each configuration, over its seeds."""\n\n' + _IMPORTS + '''\
import json
import statistics

from experiment.records import Row
from labwright.workflow import ExperimentRun, task


@task
def summarise(runs: list[ExperimentRun], metric: str) -> list[Row]:
    if not runs:
        raise ValueError("there are no runs to summarise")
    groups = {}
    for run in runs:
        groups.setdefault(json.dumps(run["params"], sort_keys=True), []).append(run)
    return [row_of(group, metric) for group in groups.values()]


def row_of(group, metric):
    values = [run["metrics"][metric] for run in group if run["status"] == "finished" and metric in run["metrics"]]
    mean = statistics.fmean(values) if values else float("nan")
    std = statistics.stdev(values) if len(values) > 1 else 0.0
    params = dict(group[0]["params"])
    return {"params": params, "mean": mean, "std": std, "finished": len(values), "failed": len(group) - len(values)}
''',
    "choose_best": '"""The configuration with the best mean."""\n\n' + _IMPORTS + '''\
from experiment.records import Best, Row
from labwright.workflow import task


@task
def choose_best(rows: list[Row], direction: str) -> Best:
    usable = [row for row in rows if row["finished"]]
    if not usable:
        raise ValueError("no configuration has a finished run")
    pick = max if direction == "maximize" else min
    best = pick(usable, key=lambda row: row["mean"])
    return {"params": best["params"], "mean": best["mean"], "std": best["std"], "finished": best["finished"]}
''',
    "compare_with_baseline": '"""Whether the best exceeds the baseline by more than noise."""\n\n' + _IMPORTS + '''\
import math

from experiment.records import Best, Comparison, Row
from labwright.workflow import task

BASELINE = @BASELINE@


@task
def compare_with_baseline(rows: list[Row], best: Best, direction: str) -> Comparison:
    found = [row for row in rows if row["params"] == BASELINE and row["finished"]]
    if not found:
        raise ValueError("the baseline has no finished run")
    base = found[0]
    gain = best["mean"] - base["mean"] if direction == "maximize" else base["mean"] - best["mean"]
    noise = math.sqrt(base["std"] ** 2 / base["finished"] + best["std"] ** 2 / best["finished"])
    beyond = noise > 0 and gain > 2 * noise
    return {"baseline": base["mean"], "best": best["mean"], "gain": gain, "noise": noise, "exceeds_noise": beyond}
''',
    "parameter_effects": '"""How much each parameter matters."""\n\n' + _IMPORTS + '''\
import statistics

from experiment.records import Effect, Row
from labwright.workflow import task

GRID = @GRID@


@task
def parameter_effects(rows: list[Row], direction: str) -> list[Effect]:
    usable = [row for row in rows if row["finished"] and in_grid(row["params"])]
    if not usable:
        raise ValueError("no configuration of the grid has a finished run")
    return sorted((effect_of(name, usable, direction) for name in GRID), key=lambda effect: -effect["spread"])


def in_grid(params):
    """A baseline beside the grid has values that were tried with nothing else."""
    return all(params.get(name) in values for name, values in GRID.items())


def effect_of(name, rows, direction):
    groups = {}
    for row in rows:
        groups.setdefault(row["params"][name], []).append(row["mean"])
    means = {value: statistics.fmean(found) for value, found in groups.items()}
    pick = max if direction == "maximize" else min
    spread = max(means.values()) - min(means.values())
    return {"parameter": name, "best_value": pick(means, key=lambda value: means[value]), "spread": spread}
''',
    "write_table": '"""The results as a Markdown table, best first."""\n\n' + _IMPORTS + '''\
from experiment.records import Row
from labwright.workflow import task


@task
def write_table(rows: list[Row], metric: str, direction: str) -> str:
    if not rows:
        raise ValueError("there are no rows")
    sign = -1 if direction == "maximize" else 1
    ordered = sorted(rows, key=lambda row: (not row["finished"], sign * row["mean"] if row["finished"] else 0))
    names = sorted({name for row in rows for name in row["params"]})
    head = [*names, metric, "std", "runs"]
    lines = [head, ["---"] * len(head)]
    for row in ordered:
        cells = [str(row["params"].get(name, "")) for name in names]
        lines.append([*cells, f"{row['mean']:.6g}", f"{row['std']:.3g}", str(row["finished"])])
    return "\\n".join("| " + " | ".join(line) + " |" for line in lines)
''',
}  # fmt: skip
TESTS = {
    "summarise": '"""Summaries."""\n\n' + _IMPORTS + '''\
from experiment.tasks.summarise import summarise


def run(lr, seed, value, status="finished"):
    return {"run_id": "r", "params": {"lr": lr}, "seed": seed, "status": status, "metrics": {"m": value}}


def test_a_configuration_is_one_row_with_its_mean_and_spread():
    rows = summarise([run(0.1, 0, 1.0), run(0.1, 1, 3.0), run(0.2, 0, 5.0)], "m")
    assert [(row["mean"], row["finished"]) for row in rows] == [(2.0, 2), (5.0, 1)]
    assert round(rows[0]["std"], 4) == 1.4142


def test_a_failed_run_is_counted_and_does_not_spoil_the_mean():
    (row,) = summarise([run(0.1, 0, 1.0), run(0.1, 1, 99.0, "failed")], "m")
    assert (row["mean"], row["finished"], row["failed"]) == (1.0, 1, 1)
''',
    "choose_best": '"""Choosing."""\n\n' + _IMPORTS + '''\
from experiment.tasks.choose_best import choose_best


def row(lr, mean, finished=1):
    return {"params": {"lr": lr}, "mean": mean, "std": 0.0, "finished": finished, "failed": 0}


def test_the_direction_decides():
    rows = [row(0.1, 1.0), row(0.2, 2.0)]
    assert choose_best(rows, "maximize")["params"] == {"lr": 0.2}
    assert choose_best(rows, "minimize")["params"] == {"lr": 0.1}


def test_a_configuration_without_a_finished_run_is_not_chosen():
    assert choose_best([row(0.1, 9.0, 0), row(0.2, 1.0)], "maximize")["params"] == {"lr": 0.2}
''',
    "compare_with_baseline": '"""Comparing with the baseline."""\n\n' + _IMPORTS + '''\
from experiment.tasks.compare_with_baseline import compare_with_baseline

BASELINE = @BASELINE@


def compared(best, direction):
    row = {"params": BASELINE, "mean": 1.0, "std": 0.1, "finished": 4, "failed": 0}
    return compare_with_baseline([row], {"params": {}, "mean": best, "std": 0.1, "finished": 4}, direction)


def test_a_clear_gain_exceeds_the_noise():
    assert compared(2.0, "maximize")["exceeds_noise"] is True
    assert compared(2.0, "minimize")["exceeds_noise"] is False


def test_a_gain_within_the_noise_does_not():
    assert compared(1.05, "maximize")["exceeds_noise"] is False
''',
    "parameter_effects": '"""Weighing parameters."""\n\n' + _IMPORTS + '''\
import itertools

from experiment.tasks.parameter_effects import GRID, parameter_effects

MOST = max(GRID, key=lambda name: len(GRID[name]))


def rows():
    """The parameter with the most values adds ten for each of them, the others add nothing."""
    found = [dict(zip(GRID, values)) for values in itertools.product(*GRID.values())]
    return [row(params, 10.0 * GRID[MOST].index(params[MOST])) for params in found]


def row(params, mean):
    return {"params": params, "mean": mean, "std": 0.0, "finished": 1, "failed": 0}


def test_the_one_that_matters_comes_first():
    first, *others = parameter_effects(rows(), "maximize")
    assert (first["parameter"], first["spread"]) == (MOST, 10.0 * (len(GRID[MOST]) - 1))
    assert [effect["spread"] for effect in others] == [0.0] * (len(GRID) - 1)


def test_the_direction_says_which_value_is_best():
    assert parameter_effects(rows(), "maximize")[0]["best_value"] == GRID[MOST][-1]
    assert parameter_effects(rows(), "minimize")[0]["best_value"] == GRID[MOST][0]


def test_what_is_not_of_the_grid_does_not_count():
    beside = row({name: "other" for name in GRID}, 99.0)
    assert parameter_effects([*rows(), beside], "maximize") == parameter_effects(rows(), "maximize")
''',
    "write_table": '"""The table."""\n\n' + _IMPORTS + '''\
from experiment.tasks.write_table import write_table


def test_the_best_comes_first():
    rows = [{"params": {"lr": lr}, "mean": lr, "std": 0.0, "finished": 1, "failed": 0} for lr in (0.1, 0.3, 0.2)]
    lines = write_table(rows, "m", "maximize").splitlines()
    assert lines[0] == "| lr | m | std | runs |"
    assert [line.split()[1] for line in lines[2:]] == ["0.3", "0.2", "0.1"]
''',
}  # fmt: skip
