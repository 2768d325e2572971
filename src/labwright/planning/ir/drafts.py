"""What the first nodes agree on before there is any IR: the digest of a request, and the experiment that is meant."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Scalar = bool | int | float | str


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AskedQuestion(Strict):
    about: str
    text: str
    suggestions: tuple[str, ...] = ()
    subject: str = ""  # the flag whose values are asked for: an answer need not name it again


class ReportDigest(Strict):
    summary: str
    goal: str
    assumptions: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    missing: tuple[AskedQuestion, ...] = ()  # asked, never invented; three at most


class Repair(Strict):
    """An answer to failed checks of one task: whose fault it is, then the new text of that and of nothing else."""

    diagnosis: str = Field(min_length=1)
    fault: Literal["body", "test", "both"]
    body: str = ""
    test: str = ""


class PlannedParameter(Strict):
    flag: str  # as the project calls it: optimizer.lr
    values: tuple[Scalar, ...]
    rationale: str


class ExperimentDraft(Strict):
    """The facts of which the plan document and the IR are two forms."""

    title: str
    objective: str
    script: str
    parameters: tuple[PlannedParameter, ...]
    fixed: dict[str, Any] = {}
    seeds: tuple[int, ...] = ()
    metric: str
    direction: str
    guards: dict[str, str] = {}  # further metrics that must not get worse, with their direction
    baseline: dict[str, Scalar] | None = None
    max_runs: int | None = None
    gpus: int = 0
    builds_on: tuple[str, ...] = ()  # sweeps and runs that were made before, with their ids
    overlaps: tuple[str, ...] = ()  # plans that vary the same
    notes: tuple[str, ...] = ()  # assumptions and warnings that the reader of the plan must see
