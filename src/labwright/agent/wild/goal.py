"""From the words of a goal to what a loop does: which script, which metric, what is searched, when it is met."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from labwright.agent.wild.criterion import Names, Wanted, criterion_of, one_sided, read_criterion
from labwright.agent.wild.experiment import Experiment
from labwright.agent.wild.space import space_of
from labwright.agent.wild.wanted import NewWild
from labwright.domain.errors import Invalid
from labwright.domain.metrics.direction import MAXIMIZE
from labwright.domain.search.space import parse_space
from labwright.planning.goals import GoalReading, Question, Variation, read_goal
from labwright.planning.goals.metric import ONLY_ONE
from labwright.planning.goals.names import flag_names
from labwright.planning.scan import EntryPoint, ProjectScan

_SEEDS = 3  # fewer tell little of the noise
_FOR_A_SEARCH = ("vary", "values")  # planning asks about these; a search goes on with ranges of its own
_FIELDS = ("script", "metric")  # what can be said beside the goal
_MOST_UNREAD = 10
_IMPROVING = re.compile(r"\b(improv\w*|better|best|tun(e|ing)|optimi[sz]\w*|maximi[sz]e|minimi[sz]e|search)\b", re.I)
_ANYTHING = r"(?:whatever|anything|flags|knobs|options)"  # as good as nothing: all flags are searched
_TUNED = re.compile(rf"\b(?:tun(?:e|ing)|vary(?:ing)?)\s+(?:the\s+|its\s+)?(?!{_ANYTHING}\b)([\w-]+)", re.I)
_WITH_EXPONENT = re.compile(r"[-+]?[\d.]+e[-+]?\d+", re.I)
_NO_AIM = "Nothing in that says what is to be reached or improved."
_EXAMPLE = "Name a metric, what to reach and what to vary: reach val_acc 0.9 by tuning lr."


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    script: str
    metric: dict[str, Any]
    criterion: dict[str, Any]
    parameters: dict[str, Any]
    fixed: dict[str, Any]
    seeds: tuple[int, ...]
    budget: dict[str, Any]
    gpus: int | None
    parallel: int | None
    notes: tuple[str, ...]


def understand(wanted: NewWild, scan: ProjectScan) -> Understood:
    """Raises Invalid with the first question that only a person can answer."""
    names = _names_in(scan)
    _check_ranges(wanted.goal, names, "goal")
    aim = _criterion(wanted.goal, names)
    reading = read_goal(_with_script(aim.rest if aim else wanted.goal, wanted.script), scan)
    if aim is None and not _aims(reading, wanted):
        raise Invalid(_NO_AIM, hint=_EXAMPLE, field=("goal",))
    _ask(reading, wanted)
    if aim is not None and not wanted.metric and reading.goal is not None and reading.goal.assumed == ONLY_ONE:
        raise Invalid(
            f"“{aim.words}” names no metric that {reading.script} seems to report; it reports {reading.goal.metric}.",
            hint="Name that, or send the right one as `metric`.",
            field=("goal",),
        )
    entry = scan.entry_point(reading.script or "")
    assert entry is not None  # else it was asked for
    _check_numbers(reading)
    metric = _metric(wanted, reading, aim.way if aim else "")
    parameters = wanted.parameters or space_of(reading, entry)
    parse_space(parameters)
    experiment = Experiment.in_scan(scan, entry.name, reading.fixed, frozenset(parameters))
    if fault := _unknown(experiment, parameters):
        raise Invalid(fault, hint="Name flags of the script.", field=("parameters",))
    return Understood(
        script=entry.name,
        metric=metric,
        criterion=criterion_of(aim, metric),
        parameters=parameters,
        fixed=reading.fixed,
        seeds=wanted.seeds or reading.seeds or tuple(range(_SEEDS)),
        budget=_budget(reading),
        gpus=wanted.gpus if wanted.gpus is not None else reading.budget.gpus,
        parallel=wanted.parallel or reading.budget.parallel,
        notes=_notes(reading, experiment),
    )


def _names_in(scan: ProjectScan) -> Names:
    metrics = {metric.name.lower() for entry in scan.entry_points for metric in entry.metrics}
    metrics |= {name.replace("_", " ") for name in metrics}
    flags = {" ".join(phrase.words).lower() for entry in scan.entry_points for phrase in flag_names(entry)}
    return Names(flags=frozenset(flags - metrics), metrics=frozenset(metrics))


def _check_ranges(words: str, names: Names, field: str) -> None:
    """A limit that is not kept would be worse than one that is asked about."""
    if limit := one_sided(words, names):
        raise Invalid(
            f"“{limit}” names one end of a range.",
            hint="Name both ends, as in: lr between 0.01 and 0.1; or the values to try: lr 0.05.",
            field=(field,),
        )


def _criterion(goal: str, names: Names) -> Wanted | None:
    """Of two, one alone would be held against the runs, and the goal be called met."""
    aim = read_criterion(goal, names)
    also = read_criterion(aim.rest, names) if aim else None
    if aim and also and names.is_metric(also.name):
        raise Invalid(
            f"The goal names two criteria, “{aim.words}” and “{also.words}”; a loop follows one.",
            hint="Leave one of them out.",
            field=("goal",),
        )
    return aim


def _with_script(goal: str, script: str | None) -> str:
    return f"{goal} ({script})" if script else goal


def _aims(reading: GoalReading, wanted: NewWild) -> bool:
    """Whether there is anything in it that an experiment could follow from."""
    told = reading.goal is not None and not reading.goal.assumed
    named = reading.variations or reading.fixed or _opened(reading) or wanted.metric or wanted.parameters
    return bool(told or named or _IMPROVING.search(wanted.goal))


def _ask(reading: GoalReading, wanted: NewWild) -> None:
    answered = {*_FOR_A_SEARCH, *(("metric",) if wanted.metric else ())}
    left = [q for q in reading.questions if q.about not in answered or (_misses(q) and not wanted.parameters)]
    if reading.script is None or left:
        raise _asked(left[0])
    tuned = _TUNED.search(wanted.goal)
    if (
        tuned
        and tuned[1].lower() in reading.unread
        and not (_opened(reading) or reading.variations or wanted.parameters)
    ):
        raise Invalid(
            f"{reading.script} has no flag for {tuned[1]}.", hint="Name flags of the script, or none.", field=("goal",)
        )


def _misses(question: Question) -> bool:
    """What is to be varied was named, and is not there: to search something else is not what was asked for."""
    return question.about == "vary" and bool(question.subject)


def _asked(question: Question) -> Invalid:
    known = f" For example: {', '.join(question.suggestions)}." if question.suggestions else ""
    also = f", or send it as `{question.about}`" if question.about in _FIELDS else ""
    words = f"The goal leaves a question open. {question.text}{known}"
    return Invalid(words, hint=f"Say it in the goal{also}.", field=("goal",))


def _metric(wanted: NewWild, reading: GoalReading, way: str) -> dict[str, Any]:
    if wanted.metric:
        return {"use": "last", **wanted.metric}
    assert reading.goal is not None  # else it was asked for
    goal = way or ("max" if reading.goal.direction == MAXIMIZE else "min")
    return {"key": reading.goal.metric, "goal": goal, "use": "last"}


def _unknown(experiment: Experiment, parameters: dict[str, Any]) -> str:
    seed = experiment.seed_flag.name if experiment.seed_flag else ""
    missing = [name for name in parameters if name not in experiment.changeable or name == seed]
    known = ", ".join(experiment.changeable)
    return f"{experiment.entry.path} has no flag {missing[0]} to search. It has: {known}." if missing else ""


def _budget(reading: GoalReading) -> dict[str, Any]:
    told = {"runs": reading.budget.runs, "wall_seconds": reading.budget.seconds}
    return {name: value for name, value in told.items() if value is not None}


def _notes(reading: GoalReading, experiment: Experiment) -> tuple[str, ...]:
    found = [*reading.warnings]
    if reading.goal and reading.goal.assumed:
        found.append(f"{reading.goal.metric} decides: {reading.goal.assumed}.")
    if reading.unread:
        found.append(f"Not understood by rules: {', '.join(reading.unread[:_MOST_UNREAD])}.")
    if experiment.seed_flag is None:
        found.append(f"{experiment.entry.path} has no seed flag: repetitions of the same command show the noise.")
    return tuple(found)


def _check_numbers(reading: GoalReading) -> None:
    """`lr 1e400` names a number that no script could take and no record could hold: left out, it would be missed."""
    beyond = [word for word in reading.unread if _WITH_EXPONENT.fullmatch(word)]
    if beyond:
        raise Invalid(f"{beyond[0]} is beyond what a number can be here.", hint="Write another one.", field=("goal",))


def steered(text: str, scan: ProjectScan, script: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What rules take from a person's words on the way: ranges to search from now on, and values to try next."""
    _check_ranges(text, _names_in(scan), "text")
    reading = replace(read_goal(_with_script(text, script), scan), script=script)
    _check_numbers(reading)
    entry = scan.entry_point(script)
    if entry is None or not (reading.variations or reading.fixed or _opened(reading)):
        raise Invalid(
            "Rules found no flag and no value in that, so it would change nothing.",
            hint="Name a flag with values, as in: try lr between 0.01 and 0.1; or: lr 0.05.",
            field=("text",),
        )
    single = {v.flag: v.values[1] for v in reading.variations if _is_one_value(v, entry)}
    left = tuple(v for v in reading.variations if v.flag not in single)
    reading = replace(reading, variations=left, fixed={**reading.fixed, **single})
    searched = space_of(reading, entry) if reading.variations or _opened(reading) else {}
    if searched:
        parse_space(searched)
    return searched, reading.fixed


def _is_one_value(variation: Variation, entry: EntryPoint) -> bool:
    """`lr 0.25` is read as that beside the default, which a loop has tried as its baseline."""
    flag = entry.flag(variation.flag)
    return flag is not None and len(variation.values) == 2 and variation.values[0] == flag.default


def _opened(reading: GoalReading) -> bool:
    return any(question.about == "values" and question.subject for question in reading.questions)
