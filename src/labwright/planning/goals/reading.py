"""Reading a goal by rules. This is no language model: what no rule takes is handed back as unread, not guessed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from labwright.domain.metrics.direction import words_of
from labwright.planning.goals import pairs, questions
from labwright.planning.goals.facts import Budget, Goal, GoalReading, Question, Variation
from labwright.planning.goals.filler import FILLER, is_english
from labwright.planning.goals.limits import Seeds, read_budget, read_seeds
from labwright.planning.goals.metric_wish import Wanted, read_metric
from labwright.planning.goals.repetition import held_value, repeats_one
from labwright.planning.goals.script import Script, read_script
from labwright.planning.goals.variations import compare_with_default, read_variations
from labwright.planning.goals.varied import Varied
from labwright.planning.goals.words import LONGEST, Words, split
from labwright.planning.scan import EntryPoint, ProjectScan, Role

_ORDERS = re.compile(
    r"\b(ignore|disregard|forget|override|bypass)\b[^.\n]{0,60}\b(rules?|instructions?|prompts?|polic(?:y|ies)|checks?|safety|limits?|review)\b"
    r"|\brm\s+-rf?\b|\bsudo\b|\bcurl\b[^\n]{0,200}\|\s*(?:ba)?sh\b|\bsystem prompt\b",
    re.IGNORECASE,
)
_MOST_UNREAD = 40
ONLY_ONE = "the only one that fits"  # a metric that the goal does not name
_HELD_OUT = {"val", "valid", "validation", "dev", "eval", "test"}


@dataclass(slots=True)
class _Parts:
    entry: EntryPoint | None = None
    varied: Varied = field(default_factory=Varied)
    held: Variation | None = None
    wanted: Wanted = field(default_factory=Wanted)
    seeds: Seeds = field(default_factory=Seeds)
    budget: Budget = field(default_factory=Budget)
    questions: list[Question] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_goal(text: str, scan: ProjectScan) -> GoalReading:
    words = split(text)
    parts = _Parts()
    script = read_script(words, scan)
    parts.entry = script.entry
    parts.warnings += _warnings_of_text(words)
    if script.entry:
        _read_for(script.entry, words, parts)
    else:
        parts.questions += questions.about_script(script)
    return _reading(words, script, parts)


def _read_for(entry: EntryPoint, words: Words, parts: _Parts) -> None:
    parts.seeds = read_seeds(words)
    parts.budget = read_budget(words)
    parts.wanted = read_metric(words, entry)
    parts.varied = read_variations(words, entry)
    if repeats_one(words):
        parts.held = held_value(entry, parts.varied, parts.seeds)
    if not parts.held:
        compare_with_default(entry, parts.varied)
    _assume_metric(entry, parts.wanted)
    parts.warnings += [*parts.wanted.warnings, *_warnings_of_flags(entry, parts)]
    if not is_english(words):
        known = "Only plain English is read here."
        parts.questions.append(
            Question(about="language", text=f"{known} What is to be varied, over which values, by which metric?")
        )
    if not parts.held:
        parts.questions += questions.about_variations(parts.varied, entry)
        parts.questions += pairs.about_pairs(parts.varied) or pairs.about_loose_values(words, parts.varied)
    parts.questions += questions.about_metric(parts.wanted, entry)
    parts.questions += questions.about_seeds(parts.seeds)


def _assume_metric(entry: EntryPoint, wanted: Wanted) -> None:
    """The only metric, or the only one on held-out data, needs no question."""
    if wanted.goal or wanted.ambiguous or wanted.absent:
        return
    told = [metric for metric in entry.metrics if metric.direction and "*" not in metric.name]
    held_out = [metric for metric in told if set(words_of(metric.name)) & _HELD_OUT]
    only = told if len(told) == 1 else held_out if len(held_out) == 1 else []
    if only:
        wanted.goal = Goal(metric=only[0].name, direction=only[0].direction or "", assumed=ONLY_ONE)


def _warnings_of_text(words: Words) -> list[str]:
    found = []
    if words.cut:
        found.append(f"Only the first {LONGEST} characters were read.")
    if _ORDERS.search(words.text):
        found.append("The goal gives orders beside an experiment; they were not followed.")
    return found


def _warnings_of_flags(entry: EntryPoint, parts: _Parts) -> list[str]:
    found = [f"{flag.name} is fixed at {flag.where}: not settable from outside." for flag in parts.varied.unsettable]
    found += [f"{entry.path} has no flag for {name}." for name in parts.varied.absent]
    found += [f"{v.flag}: {v.note}." for v in parts.varied.variations if v.note and v.scale == "linear"]
    found += [
        f"{name} is not tried with {', '.join(map(str, values))}, as the goal says; what {entry.path} has itself stays."
        for name, values in parts.varied.denied.items()
    ]
    settled = {variation.flag for variation in parts.varied.variations} | set(parts.varied.fixed)
    settled |= {flag.name for flag, _count in parts.varied.open}
    bare = dict.fromkeys(flag.name for flag in parts.varied.named_only if flag.name not in settled)
    found += [f"{name} is named without a value: it stays as {entry.path} has it." for name in bare]
    if len(parts.seeds.values) > 1 and not entry.flags_for(Role.SEED):
        found.append(f"{entry.path} has no seed flag: its seeds cannot be set from outside.")
    return found


def _reading(words: Words, script: Script, parts: _Parts) -> GoalReading:
    varied = parts.varied
    reading = GoalReading(
        text=words.text,
        script=script.entry.name if script.entry else None,
        variations=tuple(varied.variations),
        fixed=varied.fixed,
        held=parts.held,
        seeds=parts.seeds.values,
        goal=parts.wanted.goal,
        guards=tuple(parts.wanted.guards),
        baseline=_baseline(varied, script.entry),
        budget=parts.budget,
        questions=tuple(parts.questions[: questions.MOST]),
        warnings=tuple(parts.warnings),
        unread=tuple(_unread(words)),
    )
    limit = parts.budget.runs
    if limit and reading.run_count > limit:
        return _too_many(reading, limit)
    return reading


def _too_many(reading: GoalReading, limit: int) -> GoalReading:
    note = f"{reading.run_count} runs are more than the {limit} that the goal allows."
    return replace(reading, warnings=(*reading.warnings, note))


def _baseline(varied: Varied, entry: EntryPoint | None) -> dict[str, Any]:
    """The script as it is: the default of each flag that varies."""
    if entry is None:
        return {}
    defaults = {flag.name: flag.default for flag in entry.flags}
    return {variation.flag: defaults.get(variation.flag) for variation in varied.variations}


def _unread(words: Words) -> list[str]:
    left = [token for token in words.unread() if token.is_word or token.number is not None]
    return [token.shown[:60] for token in left if token.text not in FILLER][:_MOST_UNREAD]
