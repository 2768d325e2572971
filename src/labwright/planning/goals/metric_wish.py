"""By which metric a goal judges, in which direction, and what must not get worse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from labwright.domain.metrics.direction import MAXIMIZE, MINIMIZE, direction_of, words_of
from labwright.planning.goals.facts import Goal
from labwright.planning.goals.words import Words
from labwright.planning.goals.words import split as split_words
from labwright.planning.scan import EntryPoint, LoggedMetric

_SAME = [
    {"acc", "accuracy"}, {"val", "valid", "validation", "dev", "eval"}, {"ppl", "perplexity"}, {"err", "error"},
    {"train", "training"}, {"test", "held-out", "heldout"}, {"return", "returns", "reward", "rewards"},
    {"mse", "squared"}, {"auc", "auroc"},
]  # fmt: skip
_UP = {
    "maximize",
    "maximise",
    "highest",
    "maximum",
    "increase",
    "raise",
    "improve",
    "higher",
    "max",
    "largest",
    "greatest",
}
_DOWN = {"minimize", "minimise", "lowest", "minimum", "reduce", "decrease", "lower", "smallest", "least", "min"}
_GUARDS = {"without", "hurting", "losing", "keeping", "sacrificing", "degrading", "harming", "keep", "preserving"}
_NAMING = {
    "metric",
    "by",
    "on",
    "measure",
    "measured",
    "judge",
    "judged",
    "best",
    "optimize",
    "optimise",
    "target",
    "report",
    "for",
}
_METRIC = {"metric", "criterion", "objective"}
_DUTY = {"must", "should", "may", "shall", "can"}
_STAYING = {"not", "never", "stay", "remain", "keep"}
_WORSENING = {"get", "become", "be", "any", "worse", "drop", "fall", "decrease", "degrade", "suffer", "rise"}
_BEFORE, _AFTER = {":", "=", "is", "the", "a"}, {"as", "is", "the", "our"}
_GLUE = {
    "is",
    "as",
    "the",
    "a",
    "primary",
    "main",
    "our",
    "which",
    "and",
    "or",
    "it",
    "that",
    "this",
    "should",
    "be",
    "metric",
}
_HELD_OUT = {"val", "valid", "validation", "dev", "eval", "test"}


@dataclass(slots=True)
class Wanted:
    goal: Goal | None = None
    guards: list[Goal] = field(default_factory=list)
    ambiguous: list[str] = field(default_factory=list)  # names that the words could mean
    absent: list[str] = field(default_factory=list)  # metric-like words that the script does not report
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Mention:
    start: int
    end: int
    metrics: tuple[LoggedMetric, ...]  # which it may mean


def read_metric(words: Words, entry: EntryPoint) -> Wanted:
    wanted = Wanted()
    for mention in _by_weight(words, _mentions(words, entry)):
        near = _words_before(words, mention.start)
        words.take(mention.start, mention.end)
        if _is_denied(near):
            continue
        if _is_guard(words, mention, near):
            words.take(mention.end, _duty_end(words, mention.end))
            wanted.guards += [_goal(metric, near, wanted, guard=True) for metric in mention.metrics[:1]]
        elif wanted.goal is None and not wanted.ambiguous:
            _choose(mention, near, wanted)
    if wanted.goal is None and not wanted.ambiguous:
        wanted.absent = _absent(words, entry)
    return wanted


def _by_weight(words: Words, mentions: list[_Mention]) -> list[_Mention]:
    """In a line that says `metric: x`, that x goes before others; lines keep their order, the newest words first."""
    return sorted(mentions, key=lambda mention: (words.line(mention.start), not _is_called_metric(words, mention)))


def _is_called_metric(words: Words, mention: _Mention) -> bool:
    place = _past(words, mention.start - 1, -1, _BEFORE)
    return words.at(place) in _METRIC and words.at(place - 1) != "secondary"


def _is_guard(words: Words, mention: _Mention, near: list[str]) -> bool:
    """`without losing val_acc`, `keeping val_acc`, but not `without dropout, val_acc`; `val_acc must not fall`."""
    since_comma = near[len(near) - near[::-1].index(",") :] if "," in near else near
    return bool(set(since_comma[-3:]) & _GUARDS) or _duty_end(words, mention.end) > mention.end


def _duty_end(words: Words, start: int) -> int:
    """Behind `must not get worse`; where no such words begin, there."""
    if words.at(start) not in _DUTY or words.at(start + 1) not in _STAYING:
        return start
    end = start + 2
    while words.at(end) in _WORSENING:
        end += 1
    return end


def _words_before(words: Words, end: int) -> list[str]:
    """Without those that another rule has taken (`16 runs max`), and `at least`, which is no direction."""
    places = (index for index in range(max(0, end - 5), end) if words.is_free(index))
    return [words.at(index) for index in places if not (words.at(index) == "least" and words.at(index - 1) == "at")]


def _is_denied(near: list[str]) -> bool:
    """`not val_acc`, `instead of val_acc`, `I don't care about val_acc`."""
    return near[-1:] == ["not"] or near[-2:] in (["instead", "of"], ["rather", "than"]) or near[-3:-1] == ["t", "care"]


def _choose(mention: _Mention, near: list[str], wanted: Wanted) -> None:
    if len(mention.metrics) == 1:
        wanted.goal = _goal(mention.metrics[0], near, wanted)
        return
    held_out = [metric for metric in mention.metrics if set(words_of(metric.name)) & _HELD_OUT]
    if len(held_out) == 1:
        wanted.goal = _goal(held_out[0], near, wanted, assumed="the one on data it does not train on")
    else:
        wanted.ambiguous = [metric.name for metric in held_out or mention.metrics]


def _goal(metric: LoggedMetric, near: list[str], wanted: Wanted, *, guard: bool = False, assumed: str = "") -> Goal:
    told = None if guard else next((way for word in reversed(near) if (way := _told(word))), None)
    usual = metric.direction or direction_of(metric.name)
    if told and usual and told != usual and not set(near) & {"improve", "lower", "raise"}:
        wanted.warnings.append(f"{metric.name} is usually {usual}d; the goal says {told}.")
    if told and usual and set(near) & {"improve"}:
        told = usual
    if not told and not usual:
        assumed = "its direction is a guess"
    return Goal(metric=metric.name, direction=told or usual or MAXIMIZE, assumed=assumed)


def _told(word: str) -> str | None:
    return MAXIMIZE if word in _UP else MINIMIZE if word in _DOWN else None


def _mentions(words: Words, entry: EntryPoint) -> list[_Mention]:
    """Exact names first; then words that mean the same, several metrics where they fit several."""
    exact = list(_filled_in(words, entry))
    for metric in _whole_names(entry):
        phrase = tuple(token.text for token in split_words(metric.name).tokens)
        exact += [_Mention(start, start + len(phrase), (metric,)) for start in words.places(phrase) if phrase]
    covered = {index for mention in exact for index in range(mention.start, mention.end)}
    spoken = [mention for mention in _spoken(words, entry) if not covered & set(range(mention.start, mention.end))]
    return sorted([*exact, *spoken], key=lambda mention: mention.start)


def _whole_names(entry: EntryPoint) -> list[LoggedMetric]:
    return [metric for metric in entry.metrics if "*" not in metric.name]


def _filled_in(words: Words, entry: EntryPoint) -> Iterator[_Mention]:
    """`val/acc` of a script that logs `*/acc`: which part stands there is known only when it runs, or to who asks."""
    at = {token.start: index for index, token in enumerate(words.tokens)}
    ends = {token.end: index + 1 for index, token in enumerate(words.tokens)}
    for metric in entry.metrics:
        name = re.escape(metric.name).replace(r"\*", r"\w+")
        for found in re.finditer(rf"(?<![\w/]){name}(?![\w/])", words.text) if "*" in metric.name else ():
            if found.start() in at and found.end() in ends:
                known = replace(metric, name=found[0], direction=metric.direction or direction_of(found[0]))
                yield _Mention(at[found.start()], ends[found.end()], (known,))


def _spoken(words: Words, entry: EntryPoint) -> list[_Mention]:
    """`validation accuracy`: neighbouring words that each are a part of a metric's name."""
    found: list[_Mention] = []
    index = 0
    while index < len(words.tokens):
        end = index
        while end < len(words.tokens) and words.is_free(end) and _is_part(words.at(end), entry):
            end += 1
        spoken = {_one_word(word) for place in range(index, end) for word in words_of(words.at(place))}
        fitting = tuple(metric for metric in _whole_names(entry) if spoken and spoken <= _parts(metric.name))
        if fitting and any(direction_of(word) for word in spoken):
            found.append(_Mention(index, end, fitting))
        index = max(end, index + 1)
    return found


def _is_part(word: str, entry: EntryPoint) -> bool:
    parts = {_one_word(part) for part in words_of(word)}
    return bool(parts) and any(parts <= _parts(metric.name) for metric in _whole_names(entry))


def _parts(name: str) -> set[str]:
    return {_one_word(word) for word in words_of(name)}


def _one_word(word: str) -> str:
    return next((min(group) for group in _SAME if word in group), word)


def _absent(words: Words, entry: EntryPoint) -> list[str]:
    """Words that are metrics elsewhere: `best f1` of a script that prints no f1."""
    flags = {word for flag in entry.flags for word in (flag.name.lower(), flag.option.lower(), *flag.aliases)}
    found = []
    for index, token in enumerate(words.tokens):
        if token.is_word and words.is_free(index) and token.text not in flags and _means_metric(words, index):
            words.take(index, index + 1)
            found.append(token.shown)
    return found


def _past(words: Words, place: int, step: int, skipped: set[str]) -> int:
    """Where the next word stands that is none of these; not far away."""
    for _ in range(4):
        if words.at(place) in skipped:
            place += step
    return place


def _means_metric(words: Words, index: int) -> bool:
    """By its place (`metric: x`, `x as the metric`), or by its name: spelled as programs do, or after `best`."""
    before, after = _past(words, index - 1, -1, _BEFORE), _past(words, index + 1, 1, _AFTER)
    if words.at(index) in _GLUE:
        return False
    if words.at(before) in _METRIC or (after > index + 1 and words.at(after) in _METRIC):
        return True
    if not direction_of(words.at(index)):
        return False
    named = {words.at(place) for place in range(max(0, index - 3), index)} & (_NAMING | _UP | _DOWN)
    as_in_programs = any(not letter.isalpha() for letter in words.at(index))
    return bool(named) or as_in_programs or words.at(index + 1) in ("decides", "matters", "counts")
