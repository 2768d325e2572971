"""What an iteration measured, and whether that is more than seeds alone make a difference. Numbers come from runs."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.errors import NotFound
from labwright.domain.metrics.points import mean_of
from labwright.domain.run import Run, RunStatus
from labwright.domain.search.results import ConfigurationResult, differ
from labwright.domain.wild import Iteration, Wild
from labwright.planning.results.words import amount, spread
from labwright.services.runs import verbs as runs
from labwright.store import sweeps


def own_runs(lab: Lab, iteration: Iteration) -> list[tuple[int, Run]]:
    """With the seed of each; those that somebody deleted are gone."""
    found = []
    for seed, run_id in zip(iteration.seeds, iteration.run_ids, strict=True):
        try:
            found.append((seed, runs.get(lab, run_id)))
        except NotFound:
            continue
    return found


def all_ended(lab: Lab, iteration: Iteration) -> bool:
    return all(run.is_terminal for _seed, run in own_runs(lab, iteration))


def measured(lab: Lab, wild: Wild, iteration: Iteration) -> ConfigurationResult:
    """Mean and deviation over those of its runs that finished with a value."""
    values = sweeps.metric_values(lab.db.reader(), wild.sweep_id, wild.metric)
    found = ConfigurationResult(label=str(iteration.number), trial=None, params=dict(iteration.params))
    for seed, run in own_runs(lab, iteration):
        found.add(run.id, run.status, seed, run.ended_at, values.get(run.id))
    found.settle()
    return found


def without_value(lab: Lab, wild: Wild, iteration: Iteration) -> list[str]:
    """Why each of its runs that came to nothing did, in words."""
    found = measured(lab, wild, iteration)
    counted = set(found.run_ids[: found.n])
    return [_why(run, wild.metric["key"]) for _seed, run in own_runs(lab, iteration) if run.id not in counted]


def _why(run: Run, key: str) -> str:
    if run.status is RunStatus.FINISHED:
        logged = ", ".join(sorted(run.summary)[:10]) or "nothing"
        return f"{run.id} finished without a value of {key}; it logged {logged}"
    return f"{run.id} {run.status}: {run.error or run.status_reason or 'it says no more'}"


def is_better(one: float, other: float, goal: str) -> bool:
    return one > other if goal == "max" else one < other


def with_same_seeds(best: ConfigurationResult, found: ConfigurationResult) -> float:
    """What the best one gave with the seeds that the other had: a lucky or unlucky seed is not to decide."""
    assert best.mean is not None
    same = [values for seed, values in best.samples.items() if seed in found.samples]
    return mean_of([mean_of(values) for values in same]) if same else best.mean


def beats(found: ConfigurationResult, best: ConfigurationResult, goal: str) -> bool:
    """Better by more than noise, as far as the seeds that were asked for can tell."""
    assert found.mean is not None
    assert best.mean is not None
    return is_better(found.mean, best.mean, goal) and differ(found, best)


def facts(found: ConfigurationResult, number: int) -> dict[str, object]:
    """For the loop's record."""
    return {
        "run_id": found.run_ids[0],
        "params": found.params,
        "mean": found.mean,
        "std": found.std,
        "n": found.n,
        "number": number,
    }


def result(found: ConfigurationResult, key: str) -> dict[str, object]:
    """For the iteration's record: every number with the runs that it comes from."""
    text = f"{key} {spread(found)}: {', '.join(found.run_ids[: found.n])}" if found.n else f"no value of {key}"
    return {"mean": found.mean, "std": found.std, "n": found.n, "text": text}


def compared(found: ConfigurationResult, best: ConfigurationResult, goal: str) -> str:
    """The difference in words that claim no more than the runs bear."""
    assert found.mean is not None
    assert best.mean is not None
    rival = with_same_seeds(best, found)
    if not is_better(found.mean, rival, goal):
        shown = spread(best) if found.n >= best.n else f"{amount(rival)} with the same seed"
        gap = amount(abs(found.mean - rival))
        return f"no better than iteration {best.label} ({shown}){f': by {gap} worse' if found.mean != rival else ''}"
    gap = amount(abs(found.mean - best.mean))
    if found.n < 2 or best.n < 2:
        return f"by {gap} better than iteration {best.label} ({spread(best)}); with one run each, noise is not known"
    if differ(found, best):
        return f"by {gap} better than iteration {best.label} ({spread(best)}), beyond noise (Welch's t test, 95 %)"
    return f"by {gap} better than iteration {best.label} ({spread(best)}), which may be noise (Welch's t test, 95 %)"
