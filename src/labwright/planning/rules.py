"""What the offline model answers for planning: the rules for goals, and templates for code. No language model."""

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
        expected_outputs=_outputs(reading),
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
        parameters=tuple(_parameter(variation) for variation in reading.variations),
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
    """Slurm gives a job the GPUs that it asks for and no other; elsewhere a run has one where there are any."""
    on_gpus = bool(entry.cuda_only) or bool(_ON_GPUS & set(entry.imports))
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
    words = _words(request)
    plan: str = request.given["plan"]
    if not plan:
        told = read_goal(words, scan)
        return _with_held(_with_report(told, request) if _needs_report(told, request) else told)
    wishes = "\n".join(part for part in (request.feedback, request.given.get("wishes", "")) if part)
    return _of_saved_plan(read(plan).sections, words, wishes, scan)


def _words(request: Request[Any]) -> str:
    """Feedback is read like more words of the goal, said first: of two numbers of seeds, the rules take the first."""
    goal = request.given["goal"][:MOST_GOAL_CHARACTERS]  # a report that stands for the goal: its beginning
    return "\n".join(part for part in (request.feedback, goal) if part)


def _needs_report(told: GoalReading, request: Request[Any]) -> bool:
    """The goal leaves something open, or to be assumed, and there is a report beside it."""
    leaves_open = bool(told.questions) or told.goal is None or bool(told.goal.assumed)
    return leaves_open and _is_beside_report(request)


def _is_beside_report(request: Request[Any]) -> bool:
    return bool(request.given["report"]) and request.given["goal"] not in request.given["report"]


def _with_report(told: GoalReading, request: Request[Any]) -> GoalReading:
    """Read from both, the goal first. Where the goal itself says what varies, that is all that varies."""
    both = read_goal(f"{_words(request)}\n{request.given['report']}", request.given["scan"])
    varied = {variation.flag for variation in both.variations}
    own = {variation.flag: variation for variation in told.variations if variation.flag in varied}
    if not own:
        return both
    wanted = {*own, *(question.subject for question in told.questions)}
    return replace(
        both,
        variations=tuple(own.get(found.flag, found) for found in both.variations if found.flag in wanted),
        baseline={flag: value for flag, value in both.baseline.items() if flag in wanted},
        questions=tuple(asked for asked in both.questions if asked.about != "values" or asked.subject in wanted),
    )


def _with_held(reading: GoalReading) -> GoalReading:
    """Where only seeds vary, the grid is the one configuration."""
    if reading.held is None:
        return reading
    fixed = {name: value for name, value in reading.fixed.items() if name != reading.held.flag}
    return replace(reading, variations=(reading.held,), fixed=fixed)


def _of_saved_plan(sections: PlanSections, words: str, wishes: str, scan: ProjectScan) -> GoalReading:
    """The table of a saved plan is its grid, but for wishes; the other facts are read from its words."""
    approach = "\n".join(step.description for step in sections.approach if step.title not in BEFORE_THE_RUNS)
    rows = "\n".join(f"{row.name} {', '.join(row.values)}" for row in sections.parameters)
    metric = f"metric {sections.metrics.primary.name}" if sections.metrics.primary else ""
    reading = read_goal("\n".join((words, approach, sections.estimated_effort.runs, rows, metric)), scan)
    entry = scan.entry_point(reading.script or "")
    table = tuple(_row(entry, row.name, row.values, row.rationale) for row in sections.parameters)
    variations = _as_wished(table, wishes, f"{rows}\n{reading.script or ''}", scan)
    if entry is None or not variations or any(entry.flag(variation.flag) is None for variation in variations):
        return reading
    asked = tuple(question for question in reading.questions if question.about not in ("vary", "values"))
    baseline = {variation.flag: _default(entry, variation.flag) for variation in variations}
    # "3 lr × 2 seeds" counts values; it fixes none
    fixed = {name: value for name, value in reading.fixed.items() if name not in baseline}
    said = f"{wishes}\n{reading.script}" if wishes.strip() else words  # a plan's own sentences are no wishes
    unread = read_goal(said, scan).unread if said.strip() else ()
    found = replace(reading, variations=variations, questions=asked, baseline=baseline, text=words)
    return replace(found, fixed=fixed, unread=unread)


def _as_wished(table: tuple[Variation, ...], wishes: str, text: str, scan: ProjectScan) -> tuple[Variation, ...]:
    """The table with what wishes change in it: other values, further flags, and flags that are not varied any more."""
    if not wishes.strip():
        return table
    before = {variation.flag: variation for variation in read_goal(text, scan).variations}
    after = {variation.flag: variation for variation in read_goal(f"{wishes}\n{text}", scan).variations}
    changed = {
        flag: found for flag, found in after.items() if flag not in before or found.values != before[flag].values
    }
    rows = [changed.pop(row.flag, row) for row in table if row.flag in after or row.flag not in before]
    return (*rows, *changed.values())


def _row(entry: EntryPoint | None, name: str, values: tuple[str, ...], rationale: str) -> Variation:
    flag = entry.flag(name) if entry else None
    return Variation(
        flag=flag.name if flag else name,
        values=tuple(read_value(value, flag.type if flag else "str") for value in values),
        note=rationale,
    )


def _default(entry: EntryPoint, name: str) -> Any:
    flag = entry.flag(name)
    return flag.default if flag else None


def _about_budget(reading: GoalReading) -> list[Question]:
    limit = reading.budget.runs
    if limit is None or reading.run_count <= limit:
        return []
    text = f"The grid has {reading.run_count} runs; the goal allows {limit}. Which values or seeds should be left out?"
    return [Question(about="budget", text=text)]


def _about_wishes(request: Request[Any], reading: GoalReading) -> list[Question]:
    """Words about a saved text that no rule can read would be passed over in silence."""
    wishes: str = request.given.get("wishes", "")
    if not request.given["plan"] or not wishes.strip() or reading.script is None or reading.script in wishes:
        return []
    told = read_goal(f"{wishes}\n{reading.script}", request.given["scan"])
    names_metric = told.goal is not None and not told.goal.assumed
    if told.variations or told.fixed or told.held or told.seeds or told.budget != Budget() or names_metric:
        return []
    text = f"The rules found nothing new in “{wishes[:_LONGEST_TITLE]}”. What should be different from the saved plan?"
    return [Question(about="wishes", text=text)]


def _assumptions(request: Request[Any], reading: GoalReading) -> tuple[str, ...]:
    found = [*reading.warnings]
    found += _about_report(request, reading)
    if reading.goal and reading.goal.assumed:
        found.append(f"{reading.goal.metric} decides: {reading.goal.assumed}.")
    if left_out := _left_out(request, reading):
        found.append(f"Not understood and left out: {', '.join(left_out[:10])}.")
    return tuple(found)


def _about_report(request: Request[Any], reading: GoalReading) -> Iterator[str]:
    report: str = request.given["report"]
    if not report:
        return
    if _is_beside_report(request) and not _needs_report(read_goal(_words(request), request.given["scan"]), request):
        yield "Rules read the goal alone; the report is kept beside it, and nothing is taken from it."
        return
    if reading.fixed:  # perhaps only told of what was done before
        held = ", ".join(f"{name} {value}" for name, value in reading.fixed.items())
        yield f"Held in every run, as goal or report names them: {held}."
    if len(report) > MOST_GOAL_CHARACTERS:
        yield f"Only the first {MOST_GOAL_CHARACTERS:,} characters of the report were read."


def _left_out(request: Request[Any], reading: GoalReading) -> list[str]:
    """Words that no rule reads where they stand alone either: what a correction replaces was understood."""
    goal: str = request.given["goal"][:MOST_GOAL_CHARACTERS]
    said = [goal] if goal in request.given["report"] else goal.split(BETWEEN_ANSWERS)  # a report corrects nothing
    parts = [part for part in (*request.feedback.split(BETWEEN_ANSWERS), *said) if part.strip()]
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


def _outputs(reading: GoalReading) -> tuple[str, ...]:
    metric = reading.goal.metric if reading.goal else "the metric"
    return (
        f"a table of {metric} for each configuration",
        "the best configuration",
        "how it compares with the baseline",
    )


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


def _parameter(variation: Variation) -> PlannedParameter:
    rationale = variation.note or _SCALES.get(variation.scale, "the goal names these values")
    return PlannedParameter(flag=variation.flag, values=variation.values, rationale=rationale)


def _baseline(reading: GoalReading) -> dict[str, Any] | None:
    """The script as it is; none where only seeds vary, a default is none or a list, or it would go over the budget."""
    defaults = reading.baseline.values()
    if reading.held or not defaults or not all(isinstance(value, Scalar) for value in defaults):
        return None
    in_grid = all(reading.baseline[variation.flag] in variation.values for variation in reading.variations)
    more = 0 if in_grid else max(1, len(reading.seeds))
    limit = reading.budget.runs
    return None if limit is not None and reading.run_count + more > limit else reading.baseline
