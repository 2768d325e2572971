"""Read a goal by rules against the flags and metrics of the scan. docs/reference/goals.md describes the grammar.

This is not a language model. Text that no rule understands is reported as unread, and an unclear goal is asked about.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from labwright.planning.goals import questions
from labwright.planning.goals.facts import GoalReading, Question, Variation
from labwright.planning.goals.limits import Seeds, read_budget, read_seeds
from labwright.planning.goals.metric import MetricReading, read_metric
from labwright.planning.goals.parameters import Parameters, compare_with_default, read_parameters
from labwright.planning.goals.script import read_script
from labwright.planning.goals.tokens import LONGEST, Tokens, split
from labwright.planning.scan import EntryPoint, ProjectScan, Role

_ORDERS = re.compile(
    r"\b(ignore|disregard|forget|override|bypass)\b[^.\n]{0,60}\b(rules?|instructions?|prompts?|polic(?:y|ies)|checks?|safety|limits?|review)\b"
    r"|\brm\s+-rf?\b|\bsudo\b|\bcurl\b[^\n]{0,200}\|\s*(?:ba)?sh\b|\bsystem prompt\b",
    re.IGNORECASE,
)
_MOST_UNREAD = 40
_REPEATING = ("reproduc", "replicat", "repeat", "rerun", "re-run")
_ONLY = frozenset({"only", "just", "but", "except"})  # vary only the seeds
_SEARCHING = frozenset({
    "vary", "varying", "sweep", "tune", "tuning", "tuned", "search", "explore", "best", "better", "improve", "optimal",
    "optimize", "optimise", "compare", "comparing", "ablate", "which", "each", "every", "maximize", "minimize",
})  # fmt: skip


def read_goal(text: str, scan: ProjectScan) -> GoalReading:
    tokens = split(text)
    warnings = []
    if tokens.was_cut:
        warnings.append(f"Only the first {LONGEST} characters were read.")
    if _ORDERS.search(tokens.text):
        warnings.append("The goal contains orders that are not about an experiment; they were not followed.")
    script = read_script(tokens, scan)
    if script.entry is None:
        asked = (questions.about_script(script),)
        return GoalReading(text=tokens.text, questions=asked, warnings=tuple(warnings), unread=_unread(tokens))
    return _read_for(script.entry, tokens, warnings)


def _read_for(entry: EntryPoint, tokens: Tokens, warnings: list[str]) -> GoalReading:
    seeds, budget = read_seeds(tokens), read_budget(tokens)
    metric = read_metric(tokens, entry)
    parameters = read_parameters(tokens, entry)
    held = _held_value(entry, parameters, seeds) if _repeats_one(tokens) else None
    if held is None:
        compare_with_default(entry, parameters)
    asked: list[Question] = [] if held else questions.about_parameters(parameters, entry)
    asked += questions.about_metric(metric, entry)
    asked += questions.about_seeds(seeds)
    defaults = {flag.name: flag.default for flag in entry.flags}
    reading = GoalReading(
        text=tokens.text,
        script=entry.name,
        variations=tuple(parameters.variations),
        fixed=parameters.fixed,
        held=held,
        seeds=seeds.values,
        goal=metric.goal,
        guards=tuple(metric.guards),
        baseline={variation.flag: defaults.get(variation.flag) for variation in parameters.variations},
        budget=budget,
        questions=tuple(asked[: questions.MOST]),
        unread=_unread(tokens),
    )
    warnings = [*warnings, *_warnings(entry, parameters, metric, seeds)]
    if budget.runs and reading.run_count > budget.runs:
        warnings.append(f"The grid has {reading.run_count} runs; the goal allows {budget.runs}.")
    return replace(reading, warnings=tuple(warnings))


def _warnings(entry: EntryPoint, parameters: Parameters, metric: MetricReading, seeds: Seeds) -> list[str]:
    warnings = list(metric.warnings)
    warnings += [
        f"{flag.name} is fixed at {flag.where}; it cannot be set from outside." for flag in parameters.unsettable
    ]
    warnings += [f"{entry.path} has no flag for {name}." for name in parameters.missing]
    warnings += [f"{item.flag}: {item.note}." for item in parameters.variations if item.note and item.scale == "linear"]
    decided = (
        parameters.settled
        | {flag.name for flag, _count in parameters.open}
        | {item.flag.name for item in parameters.unclear}
    )
    bare = dict.fromkeys(flag.name for flag in parameters.named_only if flag.name not in decided)
    warnings += [f"{name} is named without a value, so it keeps its default in {entry.path}." for name in bare]
    if len(seeds.values) > 1 and not entry.flags_for(Role.SEED):
        warnings.append(f"{entry.path} has no seed flag, so its seeds cannot be set from outside.")
    return warnings


def _repeats_one(tokens: Tokens) -> bool:
    """Return whether the goal only repeats one configuration: `run train.py 10 times`, `reproduce lr=0.1`."""
    words = {token.text for token in tokens.tokens}
    before = {tokens.at(tokens.before(place, frozenset({"the"}))) for place in tokens.find(("seeds",))}
    if before & _ONLY:
        return True
    repeats = "times" in words or "different" in before or any(word.startswith(_REPEATING) for word in words)
    return repeats and not words & _SEARCHING


def _held_value(entry: EntryPoint, parameters: Parameters, seeds: Seeds) -> Variation | None:
    """Return one flag with one value, which makes the single configuration a grid of one."""
    is_open = (
        parameters.variations or parameters.open or parameters.unclear or parameters.missing or parameters.unsettable
    )
    if is_open or len(seeds.values) < 2 or not entry.flags_for(Role.SEED):
        return None
    own: dict[str, Any] = {flag.name: flag.default for flag in entry.flags if flag.is_settable and flag.role is None}
    fixed = {name: value for name, value in parameters.fixed.items() if name in own}
    values = {name: value for name, value in (fixed or own).items() if value is not None}
    name = next(iter(values), None)
    return None if name is None else Variation(flag=name, values=(values[name],), note="held: only the seeds vary")


def _unread(tokens: Tokens) -> tuple[str, ...]:
    return tuple(text[:60] for text in tokens.unread()[:_MOST_UNREAD])
