"""The offline model for planning: rules read goals, and templates write code. It is not a language model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from labwright.domain.cluster import Cluster, ClusterType
from labwright.domain.plan_document.document import PlanSections
from labwright.domain.plan_document.reader import read
from labwright.llm import OfflineModel, Request
from labwright.llm.stand_ins import Rule
from labwright.planning.goals import Budget, GoalReading, MetricGoal, Question, Variation, read_goal
from labwright.planning.ir import templates
from labwright.planning.ir.document import BEFORE_THE_RUNS
from labwright.planning.ir.drafts import AskedQuestion, ExperimentDraft, PlannedParameter, ReportDigest, Scalar
from labwright.planning.ir.values import read_value
from labwright.planning.record.input import MOST_GOAL_CHARACTERS
from labwright.planning.record.request import BETWEEN_ANSWERS
from labwright.planning.scan import EntryPoint, ProjectScan, Role

_MOST_QUESTIONS = 3
_LONGEST_TITLE = 120
_ON_GPUS = {"torch", "tensorflow", "jax", "keras", "lightning", "pytorch_lightning", "transformers", "accelerate"}
_SCALES = {
    "log": "the goal's range, evenly spaced on a log scale",
    "linear": "the goal's range, evenly spaced",
    "switch": "the goal asks for on and off",
    "all": "the goal asks for all of it",
}


def offline_model() -> OfflineModel:
    return OfflineModel(RULES)


def digest(request: Request[ReportDigest]) -> ReportDigest:
    reading = _reading(request)
    questions = [*reading.questions, *_about_budget(reading), *_about_wishes(request, reading)][:_MOST_QUESTIONS]
    return ReportDigest(
        summary=_summary(reading),
        goal=reading.text.strip(),
        assumptions=_assumptions(request, reading),
        variables=tuple(variation.flag for variation in reading.variations),
        expected_outputs=(
            f"a table of {reading.goal.metric if reading.goal else 'the metric'} for each configuration",
            "the best configuration",
            "how it compares with the baseline",
        ),
        missing=tuple(AskedQuestion(**asdict(question)) for question in questions),
    )


def draft(request: Request[ExperimentDraft]) -> ExperimentDraft:
    reading, scan = _reading(request), request.given["scan"]
    entry = scan.entry_point(reading.script or "")
    assert entry is not None and reading.goal is not None  # else there were questions, and this node did not run
    seeds = reading.seeds if entry.flags_for(Role.SEED) else ()
    return ExperimentDraft(
        title=_title(request.given["plan"], reading),
        objective=_objective(reading),
        script=entry.name,
        parameters=tuple(
            PlannedParameter(
                flag=variation.flag,
                values=variation.values,
                rationale=variation.note or _SCALES.get(variation.scale, "the goal names these values"),
            )
            for variation in reading.variations
        ),
        fixed=reading.fixed,
        seeds=seeds,
        metric=reading.goal.metric,
        direction=reading.goal.direction,
        guards={guard.metric: guard.direction for guard in reading.guards},
        baseline=_baseline(reading),
        max_runs=reading.budget.runs,
        gpus=reading.budget.gpus or _gpus_by_rule(request.given["cluster"], entry),
        notes=_assumptions(request, reading),
    )


def _gpus_by_rule(cluster: Cluster, entry: EntryPoint) -> int:
    """Return how many GPUs to request. Slurm gives a job only those it requests; elsewhere a run gets one by itself."""
    on_gpus = bool(entry.cuda_only) or bool(_ON_GPUS & {*entry.imports, *entry.optional_imports})
    return 1 if cluster.type is ClusterType.SLURM and cluster.gpu_count and on_gpus else 0


def task_tests(request: Request[str]) -> str:
    return templates.task_test(request.given["ir"], request.given["task_id"])


def task_body(request: Request[str]) -> str:
    return templates.task_module(request.given["ir"], request.given["task_id"])


RULES: Mapping[str, Rule] = {
    "DraftReportDigest": digest,
    "DraftImplementationPlan": draft,
    "GenerateTaskTests": task_tests,
    "GenerateTaskImplementations": task_body,
}


def _reading(request: Request[Any]) -> GoalReading:
    scan: ProjectScan = request.given["scan"]
    text = _goal_text(request)
    plan: str = request.given["plan"]
    if plan:
        wishes = "\n".join(part for part in (request.feedback, request.given.get("wishes", "")) if part)
        return _read_saved_plan(read(plan).sections, text, wishes, scan)
    reading = read_goal(text, scan)
    if _needs_report(reading, request):
        reading = _with_report(reading, request)
    if reading.held is None:
        return reading
    # Only the seeds vary: the grid is the one configuration.
    fixed = {name: value for name, value in reading.fixed.items() if name != reading.held.flag}
    return replace(reading, variations=(reading.held,), fixed=fixed)


def _goal_text(request: Request[Any]) -> str:
    """Return the feedback followed by the goal. The rules prefer what comes first, so feedback overrides the goal."""
    goal = request.given["goal"][:MOST_GOAL_CHARACTERS]  # a report may serve as the goal
    return "\n".join(part for part in (request.feedback, goal) if part)


def _needs_report(reading: GoalReading, request: Request[Any]) -> bool:
    """Return whether the goal leaves something open or assumed, and there is a report beside it."""
    leaves_open = bool(reading.questions) or reading.goal is None or bool(reading.goal.assumed)
    return leaves_open and _is_beside_report(request)


def _is_beside_report(request: Request[Any]) -> bool:
    return bool(request.given["report"]) and request.given["goal"] not in request.given["report"]


def _with_report(reading: GoalReading, request: Request[Any]) -> GoalReading:
    """Read the goal and the report together. If the goal says what varies, nothing else varies."""
    both = read_goal(f"{_goal_text(request)}\n{request.given['report']}", request.given["scan"])
    varied = {variation.flag for variation in both.variations}
    own = {variation.flag: variation for variation in reading.variations if variation.flag in varied}
    if not own:
        return both
    flags = {*own, *(question.subject for question in reading.questions)}
    return replace(
        both,
        variations=tuple(
            own.get(variation.flag, variation) for variation in both.variations if variation.flag in flags
        ),
        baseline={flag: value for flag, value in both.baseline.items() if flag in flags},
        questions=tuple(
            question for question in both.questions if question.about != "values" or question.subject in flags
        ),
    )


def _read_saved_plan(sections: PlanSections, goal: str, wishes: str, scan: ProjectScan) -> GoalReading:
    """Read a saved plan. Its table is the grid, which wishes may change; the other facts come from its text."""
    approach = "\n".join(step.description for step in sections.approach if step.title not in BEFORE_THE_RUNS)
    rows = "\n".join(f"{row.name} {', '.join(row.values)}" for row in sections.parameters)
    metric = f"metric {sections.metrics.primary.name}" if sections.metrics.primary else ""
    reading = read_goal("\n".join((goal, approach, sections.estimated_effort.runs, rows, metric)), scan)
    entry = scan.entry_point(reading.script or "")
    table = tuple(_row(entry, row.name, row.values, row.rationale) for row in sections.parameters)
    variations = _apply_wishes(table, wishes, f"{rows}\n{reading.script or ''}", scan)
    if entry is None or not variations or any(entry.flag(variation.flag) is None for variation in variations):
        return reading
    baseline = {}
    for variation in variations:
        flag = entry.flag(variation.flag)
        baseline[variation.flag] = flag.default if flag else None
    request = f"{wishes}\n{reading.script}" if wishes.strip() else goal  # the plan's own sentences do not count
    return replace(
        reading,
        variations=variations,
        questions=tuple(question for question in reading.questions if question.about not in ("vary", "values")),
        baseline=baseline,
        text=goal,
        # "3 lr × 2 seeds" counts values; it fixes none.
        fixed={name: value for name, value in reading.fixed.items() if name not in baseline},
        unread=read_goal(request, scan).unread if request.strip() else (),
    )


def _apply_wishes(table: tuple[Variation, ...], wishes: str, text: str, scan: ProjectScan) -> tuple[Variation, ...]:
    """Return the table after the wishes: with other values, more flags, or fewer flags."""
    if not wishes.strip():
        return table
    before = {variation.flag: variation for variation in read_goal(text, scan).variations}
    after = {variation.flag: variation for variation in read_goal(f"{wishes}\n{text}", scan).variations}
    changed = {flag: new for flag, new in after.items() if flag not in before or new.values != before[flag].values}
    rows = [changed.pop(row.flag, row) for row in table if row.flag in after or row.flag not in before]
    return (*rows, *changed.values())


def _row(entry: EntryPoint | None, name: str, values: tuple[str, ...], rationale: str) -> Variation:
    flag = entry.flag(name) if entry else None
    return Variation(
        flag=flag.name if flag else name,
        values=tuple(read_value(value, flag.type if flag else "str") for value in values),
        note=rationale,
    )


def _about_budget(reading: GoalReading) -> list[Question]:
    limit = reading.budget.runs
    if limit is None or reading.run_count <= limit:
        return []
    text = f"The grid has {reading.run_count} runs; the goal allows {limit}. Which values or seeds should be left out?"
    return [Question(about="budget", text=text)]


def _about_wishes(request: Request[Any], reading: GoalReading) -> list[Question]:
    """Ask about wishes for a saved plan that no rule understands. Otherwise they would be ignored silently."""
    wishes: str = request.given.get("wishes", "")
    if not request.given["plan"] or not wishes.strip() or reading.script is None or reading.script in wishes:
        return []
    wished = read_goal(f"{wishes}\n{reading.script}", request.given["scan"])
    names_metric = wished.goal is not None and not wished.goal.assumed
    if wished.variations or wished.fixed or wished.held or wished.seeds or wished.budget != Budget() or names_metric:
        return []
    text = f"The rules found nothing new in “{wishes[:_LONGEST_TITLE]}”. What should be different from the saved plan?"
    return [Question(about="wishes", text=text)]


def _assumptions(request: Request[Any], reading: GoalReading) -> tuple[str, ...]:
    lines = [*reading.warnings]
    lines += _about_report(request, reading)
    if reading.goal and reading.goal.assumed:
        lines.append(f"{reading.goal.metric} decides: {reading.goal.assumed}.")
    if left_out := _left_out(request, reading):
        lines.append(f"Not understood and left out: {', '.join(left_out[:10])}.")
    return tuple(lines)


def _about_report(request: Request[Any], reading: GoalReading) -> Iterator[str]:
    report: str = request.given["report"]
    if not report:
        return
    if _is_beside_report(request) and not _needs_report(read_goal(_goal_text(request), request.given["scan"]), request):
        yield "Rules read the goal alone; the report is kept beside it, and nothing is taken from it."
        return
    if reading.fixed:  # the text may only describe earlier work
        held = ", ".join(f"{name} {value}" for name, value in reading.fixed.items())
        yield f"Held in every run, as goal or report names them: {held}."
    if len(report) > MOST_GOAL_CHARACTERS:
        yield f"Only the first {MOST_GOAL_CHARACTERS:,} characters of the report were read."


def _left_out(request: Request[Any], reading: GoalReading) -> list[str]:
    """Return words that no rule understands, even in their own part. A correction hides parts that were understood."""
    goal: str = request.given["goal"][:MOST_GOAL_CHARACTERS]
    goals = [goal] if goal in request.given["report"] else goal.split(BETWEEN_ANSWERS)  # a report has no corrections
    parts = [part for part in (*request.feedback.split(BETWEEN_ANSWERS), *goals) if part.strip()]
    if len(parts) < 2:
        return list(reading.unread)
    alone = {word for part in parts for word in read_goal(part, request.given["scan"]).unread}
    return [word for word in reading.unread if word in alone]


def _summary(reading: GoalReading) -> str:
    names = ", ".join(variation.flag for variation in reading.variations) or "something not named yet"
    script = reading.script or "a script not named yet"
    if reading.held:
        return f"Read by rules, not by a language model: repeat {script} with {len(reading.seeds)} seeds."
    return f"Read by rules, not by a language model: vary {names} in {script}."


def _title(plan: str, reading: GoalReading) -> str:
    saved = read(plan).sections.title if plan else ""
    names = " and ".join(variation.flag for variation in reading.variations)
    if reading.held:
        return f"Spread over {len(reading.seeds)} seeds in {reading.script}"[:_LONGEST_TITLE]
    return saved or f"Effect of {names} in {reading.script}"[:_LONGEST_TITLE]


def _objective(reading: GoalReading) -> str:
    goal = reading.goal or MetricGoal(metric="", direction="")
    names = " and ".join(variation.flag for variation in reading.variations)
    if reading.held:
        return f"Measure the mean and the spread of {goal.metric} over the seeds when running {reading.script}."
    way = "highest" if goal.direction == "maximize" else "lowest"
    return f"Find the {names} with the {way} {goal.metric} when running {reading.script}."


def _baseline(reading: GoalReading) -> dict[str, Any] | None:
    """Return the script's defaults; None if only seeds vary, a default is not one value, or the budget is too small."""
    defaults = reading.baseline.values()
    if reading.held or not defaults or not all(isinstance(value, Scalar) for value in defaults):
        return None
    in_grid = all(reading.baseline[variation.flag] in variation.values for variation in reading.variations)
    more = 0 if in_grid else max(1, len(reading.seeds))
    limit = reading.budget.runs
    return None if limit is not None and reading.run_count + more > limit else reading.baseline
