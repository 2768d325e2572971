"""How steps and runs of a workflow ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from labwright.workflow.graph import Output, Workflow
from labwright.workflow.store import Stored
from labwright.workflow.tasks import WHOLE
from labwright.workflow.values import decode, digest_of, picked, text_of


@dataclass(frozen=True)
class Outcome:
    """`finished`, `failed`, `suspended`, or not begun: `skipped` or `waiting`, with the reason."""

    status: str
    reason: str = ""
    stored: tuple[Stored, ...] = ()  # one; of a fan-out, one for each combination
    fanned_out: bool = False
    reused: int = 0  # how many of them came from an earlier run

    def encoded(self, name: str) -> Any:
        parts = [part.encoded if name == WHOLE else picked(part.encoded, name) for part in self.stored]
        return parts if self.fanned_out else parts[0]

    def digest(self, name: str) -> str:
        if name == WHOLE and not self.fanned_out:
            return self.stored[0].digest
        return digest_of(text_of(self.encoded(name)))


@dataclass(frozen=True)
class RunResult:
    """`failed` if any step failed, else `suspended` if one waits for something outside, else `finished`."""

    workflow: Workflow
    steps: dict[str, Outcome] = field(default_factory=dict)

    @property
    def status(self) -> str:
        found = {outcome.status for outcome in self.steps.values()}
        return next((status for status in ("failed", "suspended") if status in found), "finished")

    def value(self, step: str, output: str = WHOLE) -> Any:
        """What a finished step gave."""
        outcome = self.steps[step]
        if outcome.status != "finished":
            raise LookupError(f"{step} {outcome.status}: {outcome.reason}")
        return decode(outcome.encoded(output))

    @property
    def results(self) -> dict[str, Any]:
        """The declared results whose steps finished."""
        declared: dict[str, Output] = self.workflow.results
        done = {name: out for name, out in declared.items() if self.steps[out.step].status == "finished"}
        return {name: self.value(out.step, out.name) for name, out in done.items()}
