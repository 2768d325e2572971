"""The plan document as values, and the text that expresses them in the exact format. `reader.read` parses it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from labwright.domain.cluster import ClusterType

TITLE = "## 📋 Plan:"


class Header(StrEnum):
    """The headers in their required order."""

    OBJECTIVE = "### Objective"
    COMPUTE_SETUP = "### Compute Setup"
    APPROACH = "### Approach"
    PARAMETERS = "### Parameters to Sweep"
    METRICS = "### Metrics"
    SUCCESS_CRITERIA = "### Success Criteria"
    RISKS = "### Risks & Mitigations"
    EFFORT = "### Estimated Effort"
    IMPROVEMENTS = "### 💡 Workflow Improvements"


OPTIONAL = frozenset({Header.PARAMETERS})
TABLE_COLUMNS = ("Parameter", "Values", "Rationale")


class Gpuwrap(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"


class PlanEnvironment(StrEnum):
    VENV = "venv"
    CONDA = "conda"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeSetup:
    """The compute setup. An unreadable value is None."""

    cluster_type: ClusterType | None = None
    gpu_count: int | None = None
    gpuwrap: Gpuwrap | None = None
    environment: PlanEnvironment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproachStep:
    title: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptParameter:
    name: str
    values: tuple[str, ...]
    rationale: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMetric:
    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    primary: PlannedMetric | None = None
    secondary: tuple[PlannedMetric, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    text: str
    met: bool = False


LOOK_IN_REVIEW = "look at it in the review"  # the mitigation of an uncertain reading of the goal


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    risk: str
    mitigation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    runs: str = ""
    time: str = ""
    resources: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSections:
    title: str = ""
    objective: str = ""
    compute_setup: ComputeSetup = ComputeSetup()
    approach: tuple[ApproachStep, ...] = ()
    parameters: tuple[SweptParameter, ...] = ()
    metrics: Metrics = Metrics()
    success_criteria: tuple[Criterion, ...] = ()
    risks: tuple[Risk, ...] = ()
    estimated_effort: Effort = Effort()
    workflow_improvements: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFault:
    """One place where a text does not have the exact format, and how to fix it."""

    line: int
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """A header and the exact text below it. The first block may have no header."""

    line: int
    header: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDocument:
    blocks: tuple[DocumentBlock, ...]
    sections: PlanSections
    faults: tuple[DocumentFault, ...]

    @property
    def valid(self) -> bool:
        return not self.faults

    def write(self) -> str:
        """Return the original text, byte for byte."""
        return "".join(f"{block.header}{block.body}" for block in self.blocks)


def compose(sections: PlanSections) -> str:
    """Return the text in the exact format. `reader.read` finds values that do not fit into it."""
    parts: list[tuple[str, Iterable[str]]] = [
        (f"{TITLE} {sections.title}", ()),
        (Header.OBJECTIVE, [sections.objective]),
        (Header.COMPUTE_SETUP, _setup_lines(sections.compute_setup)),
        (Header.APPROACH, (_step_line(number, step) for number, step in enumerate(sections.approach, 1))),
        *([(Header.PARAMETERS.value, _table_lines(sections.parameters))] if sections.parameters else []),
        (Header.METRICS, _metric_lines(sections.metrics)),
        (Header.SUCCESS_CRITERIA, (_criterion_line(criterion) for criterion in sections.success_criteria)),
        (Header.RISKS, (_item(f"**Risk**: {r.risk} → **Mitigation**: {r.mitigation}") for r in sections.risks)),
        (Header.EFFORT, _effort_lines(sections.estimated_effort)),
        (Header.IMPROVEMENTS, map(_item, sections.workflow_improvements)),
    ]
    return "\n".join("".join(f"{line}\n" for line in (header, *lines)) for header, lines in parts)


def _setup_lines(setup: ComputeSetup) -> Iterable[str]:
    yield f"- Cluster type: {setup.cluster_type}"
    yield f"- GPU count: {setup.gpu_count}"
    yield f"- gpuwrap: {setup.gpuwrap}"
    yield f"- Environment: {setup.environment}"


def _step_line(number: int, step: ApproachStep) -> str:
    return _indented(f"{number}. **{step.title}** — {step.description}", "   ")


def _table_lines(parameters: Iterable[SweptParameter]) -> Iterable[str]:
    yield f"| {' | '.join(TABLE_COLUMNS)} |"
    yield f"|{'|'.join('---' for _ in TABLE_COLUMNS)}|"
    for parameter in parameters:
        cells = (parameter.name, ", ".join(parameter.values), parameter.rationale)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _metric_lines(metrics: Metrics) -> Iterable[str]:
    if metrics.primary:
        yield _item(f"**Primary**: {metrics.primary.name} — {metrics.primary.why}")
    for metric in metrics.secondary:
        yield _item(f"**Secondary**: {metric.name} — {metric.why}")


def _criterion_line(criterion: Criterion) -> str:
    return _item(f"[{'x' if criterion.met else ' '}] {criterion.text}")


def _effort_lines(effort: Effort) -> Iterable[str]:
    yield _item(f"**Runs**: {effort.runs}")
    yield _item(f"**Time**: {effort.time}")
    yield _item(f"**Resources**: {effort.resources}")


def _item(text: str) -> str:
    return _indented(f"- {text}", "  ")


def _indented(text: str, by: str) -> str:
    """Indent the further lines of an item, so that they belong to it."""
    return f"\n{by}".join(text.split("\n"))
