"""The report of a loop as Markdown: what was tried, what failed, what is established. Every number has its runs."""

from __future__ import annotations

from collections.abc import Iterator

from labwright.agent.wild.criterion import is_met
from labwright.agent.wild.experiment import Experiment
from labwright.agent.wild.noise import compared, measured, own_runs
from labwright.compute.lab import Lab
from labwright.domain.clock import now
from labwright.domain.errors import LabwrightError
from labwright.domain.run import RunStatus
from labwright.domain.search.results import ConfigurationResult
from labwright.domain.wild import Iteration, IterationVerdict, Wild
from labwright.planning.results.words import amount, block, code, params_text, plain, spread, table
from labwright.services.runs import failures

_FAILED_SHOWN = 20


def write_report(lab: Lab, wild: Wild) -> str:
    return "\n".join(_Report(lab, wild).lines()) + "\n"


class _Report:
    def __init__(self, lab: Lab, wild: Wild) -> None:
        self._lab = lab
        self._wild = wild
        self._found = {one.number: measured(lab, wild, one) for one in wild.iterations if one.run_ids}

    def lines(self) -> Iterator[str]:
        yield from self._head()
        yield from self._established()
        yield from self._tried()
        yield from self._failed()
        yield from self._spent()
        yield from self._protected()

    def _head(self) -> Iterator[str]:
        wild = self._wild
        yield f"# Wild loop {wild.id}"
        yield ""
        yield from block(wild.goal)
        yield ""
        yield f"- **Outcome**: {wild.status}: {plain(wild.status_reason)}"
        yield f"- **Success criterion**: {plain(wild.criterion['text'])} — {self._criterion()}"
        yield f"- **Metric**: {code(wild.metric['key'])}, {'higher' if self._goal == 'max' else 'lower'} is better"
        yield f"- **Script**: {code(wild.script)}; runs in sweep {wild.sweep_id}"
        yield f"- **Proposed by**: {plain(wild.search)}; written at {now()}"
        yield from (f"- {plain(note)}" for note in wild.notes)
        yield ""

    @property
    def _goal(self) -> str:
        return str(self._wild.metric["goal"])

    def _criterion(self) -> str:
        wild = self._wild
        best = self._best
        if wild.criterion["threshold"] is None:
            return "no number was named"
        if best is None:
            return "not met: nothing was measured"
        met = is_met(wild.criterion, self._goal, best, len(wild.seeds))
        return f"{'met' if met else 'not met'}: the best is {spread(best)} ({_runs(best)})"

    @property
    def _best(self) -> ConfigurationResult | None:
        return self._found[self._wild.best["number"]] if self._wild.best else None

    def _established(self) -> Iterator[str]:
        """Only what several seeds bear out."""
        yield "## What is established"
        yield ""
        wild, best = self._wild, self._best
        if best is None or wild.baseline is None:
            yield "Nothing: the baseline has no value."
            yield ""
            return
        first = self._found[wild.baseline["number"]]
        yield f"- The baseline has {code(wild.metric['key'])} {spread(first)}: {_runs(first)}."
        yield from (
            self._kept(iteration) for iteration in wild.iterations if iteration.verdict is IterationVerdict.KEEP
        )
        if best is first:
            yield "- Nothing that was tried beats the baseline by more than noise."
        else:
            yield (
                f"- In all, the best is {plain(compared(best, first, self._goal))}. It was chosen among "
                f"{len(self._found)} by this very number: with fresh seeds the lead may be smaller."
            )
        yield ""
        yield "Reproduce the best run:"
        yield ""
        yield from block(self._command(best))
        yield ""

    def _kept(self, iteration: Iteration) -> str:
        found, why = self._found[iteration.number], (iteration.decision or {})["reason"]
        what = f"Iteration {iteration.number} ({code(params_text(iteration.change))})"
        return f"- {what}: {spread(found)}, {plain(why)}; {_runs(found)}."

    def _command(self, best: ConfigurationResult) -> str:
        try:
            return Experiment.of(self._lab, self._wild).command(best.params, self._wild.seeds[0])
        except LabwrightError as error:
            return error.message

    def _tried(self) -> Iterator[str]:
        yield "## What was tried"
        yield ""
        head = ["#", "from", "change", "idea", self._wild.metric["key"], "decision", "runs"]
        yield from table([plain(cell) for cell in head], [self._row(one) for one in self._wild.iterations])
        yield ""

    def _row(self, iteration: Iteration) -> list[str]:
        found = self._found.get(iteration.number)
        decision = iteration.decision or {"verdict": "open", "reason": "not decided yet"}
        return [
            str(iteration.number),
            "" if iteration.parent is None else str(iteration.parent),
            code(params_text(iteration.change)),
            plain(iteration.hypothesis)[:300],
            spread(found) if found else "–",
            f"**{decision['verdict']}**: {plain(decision['reason'])[:400]}",
            " ".join(iteration.run_ids[: iteration.made]),
        ]

    def _failed(self) -> Iterator[str]:
        yield "## What failed"
        yield ""
        lines = [*self._failed_runs(), *self._refused()]
        yield from lines[:_FAILED_SHOWN] or ["No run failed, and no proposal was refused."]
        if len(lines) > _FAILED_SHOWN:
            yield f"- … and {len(lines) - _FAILED_SHOWN} more."
        yield ""

    def _failed_runs(self) -> Iterator[str]:
        for iteration in self._wild.iterations:
            for _seed, run in own_runs(self._lab, iteration):
                if run.is_terminal and run.status is not RunStatus.FINISHED:
                    why = failures.signature_of(self._lab, run.id) or run.error or run.status_reason
                    yield f"- {run.id} (iteration {iteration.number}) {run.status}: {plain(why)[:400]}"

    def _refused(self) -> Iterator[str]:
        for iteration in self._wild.iterations:
            if iteration.was_refused and iteration.decision:
                words = plain(iteration.decision["reason"])
                yield f"- Iteration {iteration.number} ({code(params_text(iteration.change))}) was not run; {words}"

    def _spent(self) -> Iterator[str]:
        used, budget = self._wild.used, self._wild.budget
        yield "## What it took"
        yield ""
        for name, words in (("runs", "runs"), ("gpu_hours", "GPU-hours"), ("wall_seconds", "seconds at work")):
            limit = f" of {budget[name]:g}" if name in budget else ""
            yield f"- {amount(used.get(name, 0))}{limit} {words}"
        yield f"- {used.get('tokens', 0):,} tokens of language models"
        yield ""

    def _protected(self) -> Iterator[str]:
        yield "## Protected evaluation files"
        yield ""
        rows = [
            [code(entry["path"]), code(entry["sha256"][:16]), plain(entry["reason"])] for entry in self._wild.protected
        ]
        yield from table(["file", "sha256", "why"], rows) if rows else ["None was named, and none was recognised."]


def _runs(found: ConfigurationResult) -> str:
    return ", ".join(found.run_ids[: found.n])
