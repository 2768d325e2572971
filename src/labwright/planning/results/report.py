"""The report of a plan as Markdown. Every number stands beside the runs that it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from labwright.domain.plan_document.document import PlanSections
from labwright.domain.run import Run, RunStatus
from labwright.domain.search.results import ConfigurationResult
from labwright.planning.results.comparison import Comparison
from labwright.planning.results.criteria import Judged
from labwright.planning.results.findings import Findings
from labwright.planning.results.pictures import Picture
from labwright.planning.results.words import (
    amount,
    block,
    code,
    mean_and_std,
    params_text,
    plain,
    spread,
    table,
    value_text,
)
from labwright.workflow import Experiment, Outcome, RunResult

_RUNS_SHOWN = 200
_CONFIGURATIONS_SHOWN = 50
_FAILED_SHOWN = 10
_MARKS = {True: "[x]", False: "[ ]", None: "[ ]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One experiment with what is said of it."""

    findings: Findings
    comparison: Comparison
    pictures: list[Picture]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    plan_id: str
    digest: str
    written_at: str
    sections: PlanSections
    parts: list[Part]
    judged: list[Judged]
    result: RunResult
    carriers: dict[str, list[str]]  # by step: the sweeps or the run that carried it out, the newest last

    @property
    def failed_steps(self) -> dict[str, Outcome]:
        return {
            name: outcome for name, outcome in self.result.steps.items() if outcome.status in ("failed", "suspended")
        }

    @property
    def _has_runs_to_make_again(self) -> bool:
        """Of the bytes that are approved now; what was taken over from earlier ones stays as it is."""
        found = (one.run for part in self.parts for one in part.findings.failed)
        return any(run.status is not RunStatus.FINISHED and run.approved == self.digest for run in found)

    def markdown(self) -> str:
        lines = [
            f"# {plain(self.sections.title) or self.plan_id}",
            "",
            plain(self.sections.objective),
            "",
            f"Plan {code(self.plan_id)}, approved as {code(self.digest[:12])}; written {self.written_at}.",
            "",
            *self._failures(),
        ]
        for part in self.parts:
            lines += _experiment(part, several=len(self.parts) > 1)
        lines += [*self._criteria(), *self._failed_runs(), *self._steps(), *_all_runs(self.parts)]
        return "\n".join(lines).rstrip() + "\n"

    def _failures(self) -> Iterator[str]:
        if not self.failed_steps:
            return
        yield from ("## What failed, and what to do", "")
        for name, outcome in self.failed_steps.items():
            yield f"- {code(name)}: {plain(outcome.reason)}"
            yield f"  {self._advice(name, self.carriers.get(name, [''])[-1])}"
        yield ""

    def _advice(self, name: str, carrier: str) -> str:
        step = next(step for step in self.result.workflow.steps if step.id == name)
        if isinstance(step.work, Experiment):
            if not carrier:
                return "Nothing of it was started."
            again = f"`labwright plan execute {self.plan_id}` makes again what did not finish."
            return f"See `labwright sweep show {carrier}` for its runs. {again}"
        logs = f"`labwright logs {carrier}` has all it said. " if carrier else ""
        mend = "Mend the task and approve the plan again: what finished is not repeated."
        return f"{logs}{self._about_failed_runs()}{mend}"

    def _about_failed_runs(self) -> str:
        """A step may fail for want of what runs would have given."""
        if not any(part.findings.failed for part in self.parts):
            return ""
        lacks = "It may lack what the failed runs below would have given"
        if self._has_runs_to_make_again:
            lacks += f", and `labwright plan execute {self.plan_id}` makes them again"
        return f"{lacks}; if not: "

    def _criteria(self) -> Iterator[str]:
        yield from ("## Success criteria", "")
        for judged in self.judged:
            open_words = " (open)" if judged.met is None else ""
            yield f"- {_MARKS[judged.met]} {plain(judged.text)}{open_words}"
            yield f"  - {plain(judged.evidence)}"
        yield from ([""] if self.judged else ["The plan names none.", ""])

    def _failed_runs(self) -> Iterator[str]:
        failed = [failed for part in self.parts for failed in part.findings.failed]
        if not failed:
            return
        yield from ("## Failed runs", "")
        if self._has_runs_to_make_again:
            yield from (f"{code(f'labwright plan execute {self.plan_id}')} makes again those that did not finish.", "")
        for one in failed[:_FAILED_SHOWN]:
            yield f"- {code(one.run.id)} ({_run_words(one.run)}) {one.run.status}{_exit_words(one.run)}:"
            yield from ("", *block(one.said), "")
        if len(failed) > _FAILED_SHOWN:
            yield from (f"{len(failed) - _FAILED_SHOWN} more are in `results.json`.", "")

    def _steps(self) -> Iterator[str]:
        yield from ("## Steps", "")
        rows = []
        for name, outcome in self.result.steps.items():
            carriers = ", ".join(map(code, self.carriers.get(name, []))) or "–"
            rows.append([code(name), outcome.status, carriers, plain(outcome.reason)[:200]])
        yield from table(["step", "status", "carried out by", "reason"], rows)
        yield ""


def _experiment(part: Part, *, several: bool) -> Iterator[str]:
    findings, best = part.findings, part.findings.best
    way = "more is better" if findings.goal == "max" else "less is better"
    yield from (f"## Results{f' of {code(findings.step)}' if several else ''}", "")
    word = "Sweeps" if len(findings.sweep_ids) > 1 else "Sweep"
    sweeps = " and ".join(map(code, findings.sweep_ids))
    yield f"Metric: {code(findings.metric.name)} ({way}), the last value that each run logged. {word} {sweeps}."
    yield ""
    if best is None:
        yield f"No run finished with a value of {code(findings.metric.name)}."
    else:
        yield f"**Best:** {code(params_text(best.params))} with {spread(best)}{_ties(findings, best)}."
    yield from ("", f"**Against the baseline:** {plain(part.comparison.text)}", "")
    yield from _configuration_table(findings)
    for picture in part.pictures:
        yield from (f"![{plain(picture.about)}]({picture.file})", "")


def _ties(findings: Findings, best: ConfigurationResult) -> str:
    others = sum(1 for found in findings.configurations if found is not best and found.mean == best.mean)
    return f", the same as {others} other{'s' if others > 1 else ''}" if others else ""


def _configuration_table(findings: Findings) -> Iterator[str]:
    names = list(dict.fromkeys(name for found in findings.configurations for name in found.params))
    head = [*map(code, names), f"{code(findings.metric.name)}, mean ± std over seeds", "n", "failed", ""]
    shown = findings.configurations[:_CONFIGURATIONS_SHOWN]
    yield from table(head, [_configuration_row(findings, found, names) for found in shown])
    if len(findings.configurations) > len(shown):
        yield f"\n{len(findings.configurations) - len(shown)} more are in `results.json`."
    yield ""


def _configuration_row(findings: Findings, found: ConfigurationResult, names: list[str]) -> list[str]:
    marks = [word for word, other in (("best", findings.best), ("baseline", findings.baseline)) if found is other]
    values = [code(value_text(found.params[name])) if name in found.params else "–" for name in names]
    failed = sum(found.progress.values()) - len([run_id for run_id in found.run_ids if run_id in findings.values])
    return [*values, mean_and_std(found), str(found.n), str(failed), ", ".join(marks)]


def _run_words(run: Run) -> str:
    seed = "" if run.seed is None else f", seed {run.seed}"
    return code(f"{params_text(run.params)}{seed}")


def _exit_words(run: Run) -> str:
    return f" with exit code {run.exit_code}" if run.exit_code else ""


def _all_runs(parts: list[Part]) -> Iterator[str]:
    yield from ("## Runs", "")
    rows = [
        [code(run.id), _run_words(run), str(run.status), amount(part.findings.values.get(run.id))]
        for part in parts
        for run in part.findings.runs
    ]
    yield from table(["run", "configuration", "status", "value"], rows[:_RUNS_SHOWN])
    if len(rows) > _RUNS_SHOWN:
        yield f"\n{len(rows) - _RUNS_SHOWN} more are in `results.json`."
