"""One try: its runs are made, first one seed, then the others if it looks better; and then it is judged."""

from __future__ import annotations

from labwright.agent.wild.criterion import reaches
from labwright.agent.wild.news import decided_in_words
from labwright.agent.wild.noise import (
    beats,
    compared,
    facts,
    is_better,
    measured,
    result,
    with_same_seeds,
    without_value,
)
from labwright.agent.wild.records import Loop
from labwright.agent.wild.spending import Purse
from labwright.domain.clock import now
from labwright.domain.ids import RUN, id_of
from labwright.domain.run import WILD_TAG
from labwright.domain.search.results import ConfigurationResult
from labwright.domain.wild import Iteration, IterationStatus, IterationVerdict, Wild, WildStatus
from labwright.services.runs import verbs as run_verbs
from labwright.services.runs.new_run import NewRun


def with_runs(wild: Wild, iteration: Iteration, seeds: tuple[int, ...]) -> Iteration:
    """Their ids follow from the loop, the iteration and the seed: asked for twice, a run is made once."""
    ids = tuple(id_of(RUN, f"{wild.id} {iteration.number} {seed}".encode()) for seed in seeds)
    return iteration.evolve(seeds=seeds, run_ids=ids)


def make_runs(loop: Loop, iteration: Iteration, window: int) -> bool:
    """As many as the budget has room for; `window` of them are to find room beside each other."""
    missing = len(iteration.run_ids) - iteration.made
    allowed = Purse(loop.lab, loop.wild).allow(missing, window)
    if allowed.short:
        return loop.ask_for_more(*allowed.short)
    count = iteration.made + allowed.runs
    for place in range(iteration.made, count):
        _make_run(loop, iteration, place, allowed.seconds)
    made = iteration.evolve(
        made=count,
        seeds=iteration.seeds[:count],
        run_ids=iteration.run_ids[:count],
        status=IterationStatus.RUNNING,
    )
    loop.write(lambda found: found.with_iteration(made))
    return True


def _make_run(loop: Loop, iteration: Iteration, place: int, seconds: float | None) -> None:
    seed = iteration.seeds[place]
    wanted = NewRun(
        id=iteration.run_ids[place],
        name=f"wild {iteration.number} seed {seed}",
        command=loop.experiment.command(iteration.params, seed),
        sweep_id=loop.wild.sweep_id,
        chat_session_id=loop.wild.session_id,
        params=dict(iteration.params),
        seed=seed,
        gpus=loop.wild.gpus,
        time_limit_seconds=seconds,
        tags=(WILD_TAG,),
        auto_start=True,
    )
    run_verbs.create(loop.lab, wanted, loop.actor)


def judge(loop: Loop, iteration: Iteration) -> bool:
    """All of its runs have ended."""
    wild = loop.wild
    found, faults = measured(loop.lab, wild, iteration), without_value(loop.lab, wild, iteration)
    if wild.best is None:
        return _judge_baseline(loop, iteration, found, faults)
    best = measured(loop.lab, wild, wild.iteration(wild.best["number"]))
    if faults or found.mean is None:
        return _decide(loop, iteration, found, IterationVerdict.DROP, "; ".join(faults) or "its runs are gone")
    if _is_promising(wild, iteration, found, best):
        wider = with_runs(wild, iteration, wild.seeds)
        loop.write(lambda current: current.with_iteration(wider))
        return True
    goal = wild.metric["goal"]
    verdict = IterationVerdict.KEEP if beats(found, best, goal) else IterationVerdict.DROP
    return _decide(loop, iteration, found, verdict, compared(found, best, goal))


def _judge_baseline(loop: Loop, iteration: Iteration, found: ConfigurationResult, faults: list[str]) -> bool:
    if found.mean is None:
        words = "; ".join(faults) or "its runs are gone"
        return loop.end(WildStatus.FAILED, f"the script as it is gives nothing to compare with: {words}")
    words = "the script as it is; the spread of its seeds is the noise"
    return _decide(loop, iteration, found, IterationVerdict.BASELINE, "; ".join([words, *faults]))


def _is_promising(wild: Wild, iteration: Iteration, found: ConfigurationResult, best: ConfigurationResult) -> bool:
    """Worth the other seeds: one run that is better may be luck."""
    assert found.mean is not None
    goal = wild.metric["goal"]
    good = is_better(found.mean, with_same_seeds(best, found), goal) or reaches(wild.criterion, goal, found.mean)
    return good and len(iteration.seeds) < len(wild.seeds)


def _decide(
    loop: Loop, iteration: Iteration, found: ConfigurationResult, verdict: IterationVerdict, words: str
) -> bool:
    key = loop.wild.metric["key"]
    done = iteration.decided(verdict, words, now(), result(found, key))
    known = facts(found, iteration.number)
    first = {"baseline": known, "best": known} if verdict is IterationVerdict.BASELINE else {}
    leads = {"best": known} if verdict is IterationVerdict.KEEP else first
    loop.write(lambda current: current.with_iteration(done).evolve(**leads), decided_in_words(done, key))
    return True
