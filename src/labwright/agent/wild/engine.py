"""The loop: what is under way is seen to, then it is asked whether it is over, then the next try is proposed.

`Engine.advance` takes steps until there is something to wait for. A step is chosen by what the record holds, and each
ends in one transaction, so a loop that was cut off by a kill goes on where it was.
"""

from __future__ import annotations

import contextlib
from typing import Any

from labwright.agent.wild import model_search, offline_search
from labwright.agent.wild.criterion import is_met, met_in_words
from labwright.agent.wild.dead_ends import dead_end
from labwright.agent.wild.iterations import judge, make_runs, with_runs
from labwright.agent.wild.news import decided_in_words
from labwright.agent.wild.noise import all_ended, measured
from labwright.agent.wild.proposal import NothingLeft, Proposal
from labwright.agent.wild.proposers import Proposers
from labwright.agent.wild.protect import Guard
from labwright.agent.wild.records import CONTINUE, FAULT_RULE, STOP, TOKENS, Loop, NotAtWork
from labwright.agent.wild.spending import Purse, seconds_left
from labwright.agent.wild.verbs import RULES
from labwright.compute.lab import Lab
from labwright.compute.scheduler import capacity_of
from labwright.domain.clock import now
from labwright.domain.sweep import SweepStatus
from labwright.domain.wild import AT_WORK, Iteration, IterationVerdict, Wild, WildStatus
from labwright.llm.faults import ModelFault
from labwright.llm.ledger import BudgetReached
from labwright.planning.scan.project import HELD_OUT
from labwright.store import sweeps

_PATIENCE = 15  # tries in a row that improve nothing beyond noise end the loop: the search draws its first ten
_PATIENCE_WITH_A_MODEL = 6
_REFUSED = 10  # so do proposals in a row that are dead ends
_MOST_ITERATIONS = 500
_WIDEST = 8  # searches side by side: wider ones learn little from each other


class Engine:
    def __init__(self, lab: Lab, proposers: Proposers) -> None:
        self._lab = lab
        self._proposers = proposers
        self._guard = Guard(lab.paths.project)

    def advance(self, wild_id: str) -> None:
        """Called again it finds nothing left."""
        loop = Loop(self._lab, wild_id)
        with contextlib.suppress(NotAtWork):
            while self._step(loop):
                loop.look_again()

    def _step(self, loop: Loop) -> bool:
        """Whether there is another to come."""
        wild = loop.wild
        if wild.status not in AT_WORK or self._is_halted(loop) or self._is_out_of_time(loop):
            return False
        for iteration in wild.open_iterations:
            if iteration.made < len(iteration.run_ids):
                return make_runs(loop, iteration, self._window(wild) if wild.baseline else 1)
            if all_ended(self._lab, iteration):
                return judge(loop, iteration)
        if reason := self._why_over(wild):
            return loop.end(WildStatus.COMPLETED, reason)
        return self._propose(loop)

    def _is_halted(self, loop: Loop) -> bool:
        wild = loop.wild
        if sweeps.get(self._lab.db.reader(), wild.sweep_id).status is SweepStatus.STOPPED:
            return not loop.end(WildStatus.STOPPED, "its sweep was stopped")
        changed = self._guard.changed(wild.protected)
        if not changed:
            return False
        if wild.baseline is None and _are_outputs(wild, changed):
            note = f"{', '.join(changed)}: written by the script itself, so not protected."
            kept = tuple(entry for entry in wild.protected if entry["path"] not in changed)
            loop.write(lambda found: found.evolve(protected=kept, notes=(*found.notes, note)))
            return False
        loop.halt(f"evaluation files were changed: {', '.join(changed)}; results after that do not count")
        return True

    def _is_out_of_time(self, loop: Loop) -> bool:
        left = seconds_left(loop.wild)
        if left is None or left > 0:
            return False
        loop.stop_runs()
        limit = loop.wild.budget["wall_seconds"]
        loop.ask_for_more("wall_seconds", f"it has been at work for all of its {limit:g} s")
        return True

    def _why_over(self, wild: Wild) -> str:
        if wild.best is None:
            return ""
        best = measured(self._lab, wild, wild.iteration(wild.best["number"]))
        if is_met(wild.criterion, wild.metric["goal"], best, len(wild.seeds)):
            return met_in_words(wild.criterion, wild.metric["key"], best)
        since = _since_best(wild)
        if _tried(since) >= _patience(wild) and not wild.open_iterations:
            return f"nothing improved beyond noise in the last {_tried(since)} tries"
        if len(since) >= _REFUSED and all(one.was_refused for one in since[-_REFUSED:]):
            return f"the last {_REFUSED} proposals were all dead ends"
        return f"{_MOST_ITERATIONS} iterations are enough" if len(wild.iterations) >= _MOST_ITERATIONS else ""

    def _propose(self, loop: Loop) -> bool:
        wild = loop.wild
        if not wild.iterations:
            return self._plan(loop, _baseline(loop), wild.seeds)
        full = len(wild.open_iterations) >= self._window(wild)
        if wild.best is None or full or _tried(_since_best(wild)) >= _patience(wild):
            return loop.wait()
        allowed = Purse(self._lab, wild).allow(1, self._window(wild))
        if allowed.short:
            return loop.ask_for_more(*allowed.short)
        try:
            proposal = self._ask(loop)
        except BudgetReached as reached:
            return loop.ask_for_more(TOKENS, reached.message)
        except ModelFault as fault:
            return loop.pause(fault.message, FAULT_RULE, (CONTINUE, STOP))
        if isinstance(proposal, Proposal):
            return self._plan(loop, proposal, wild.seeds[:1])
        return loop.wait() if wild.open_iterations else loop.end(WildStatus.COMPLETED, proposal.reason)

    def _ask(self, loop: Loop) -> Proposal | NothingLeft:
        if loop.wild.search == RULES:
            return offline_search.next_proposal(self._lab, loop.wild, loop.experiment)
        model = self._proposers.model(loop.wild.id)
        if model is None:
            raise ModelFault(f"{loop.wild.search}, which proposed until now, is not configured any more")
        proposal = model_search.next_proposal(model, loop.wild, loop.experiment)
        tokens, cost = self._proposers.spent(loop.wild.id)
        loop.write(lambda found: found.evolve(used={**found.used, "tokens": tokens, "cost": cost}))
        return proposal

    def _plan(self, loop: Loop, proposal: Proposal, seeds: tuple[int, ...]) -> bool:
        """Recorded before anything runs; one that is refused is recorded too."""
        wild, number = loop.wild, len(loop.wild.iterations) + 1
        idea = {name: getattr(proposal, name) for name in ("hypothesis", "change", "params", "parent")}
        planned = Iteration(number=number, started_at=now(), **idea)
        refused = proposal.fault or _dead_end(loop, proposal)
        if refused:
            planned = planned.decided(IterationVerdict.DROP, f"refused: {refused}", now())
        else:
            planned = with_runs(wild, planned, seeds)

        def written(found: Wild) -> Wild:
            steering = _taken(found.steering, proposal.taken, number)
            return found.with_iteration(planned).evolve(
                steering=steering, parameters=proposal.parameters or found.parameters
            )

        loop.write(written, decided_in_words(planned, wild.metric["key"]))
        return True

    def _window(self, wild: Wild) -> int:
        """A model reflects on each result; a search by rules uses the machine."""
        if wild.search != RULES:
            return 1
        capacity = capacity_of(self._lab.cluster.current, self._lab.settings.max_parallel)
        room = capacity.fitting(Purse(self._lab, wild).gpus)
        return max(1, min(wild.parallel or room, room, _WIDEST))


def _baseline(loop: Loop) -> Proposal:
    wild = loop.wild
    words = f"{wild.script} as it is, with {len(wild.seeds)} seeds: what there is to beat, and how much is noise"
    return Proposal(hypothesis=words, change={}, params=loop.experiment.defaults(wild.parameters), parent=None)


def _dead_end(loop: Loop, proposal: Proposal) -> str:
    """A baseline is none, whatever failed before: it has to be known."""
    if not loop.wild.iterations:
        return ""
    return dead_end(loop.lab, loop.wild, loop.experiment, proposal.params)


def _patience(wild: Wild) -> int:
    return _PATIENCE if wild.search == RULES else _PATIENCE_WITH_A_MODEL


def _since_best(wild: Wild) -> list[Iteration]:
    last = wild.best["number"] if wild.best else 0
    return [iteration for iteration in wild.iterations if iteration.number > last]


def _tried(iterations: list[Iteration]) -> int:
    """Refused ones are none: nothing was run for them."""
    return sum(not iteration.was_refused for iteration in iterations)


def _taken(steering: tuple[dict[str, Any], ...], count: int, number: int) -> tuple[dict[str, Any], ...]:
    """The first words that nobody has taken into account yet are, now."""
    waiting = [place for place, said in enumerate(steering) if said["taken_in"] is None][:count]
    return tuple({**said, "taken_in": number} if place in waiting else said for place, said in enumerate(steering))


def _are_outputs(wild: Wild, changed: list[str]) -> bool:
    """Only called held-out data by their names, and written while nothing but the script as it is has run."""
    recognised = {entry["path"] for entry in wild.protected if entry["reason"] == HELD_OUT}
    return bool(wild.iterations) and recognised >= set(changed)
