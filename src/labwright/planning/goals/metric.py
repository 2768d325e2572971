"""The metric that ranks the results, its direction, and metrics that must not get worse."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from labwright.domain.metrics.direction import MAXIMIZE, MINIMIZE, direction_of, words_of
from labwright.planning.goals.facts import MetricGoal
from labwright.planning.goals.tokens import Tokens, split
from labwright.planning.scan import EntryPoint, LoggedMetric

ONLY_ONE = "the only one that fits"  # why a metric is taken that the goal does not name
_SAME = [
    {"acc", "accuracy"}, {"val", "valid", "validation", "dev", "eval"}, {"ppl", "perplexity"}, {"err", "error"},
    {"train", "training"}, {"test", "held-out", "heldout"}, {"return", "returns", "reward", "rewards"},
    {"mse", "squared"}, {"auc", "auroc"},
]  # fmt: skip
_UP = frozenset({"maximize", "maximise", "highest", "maximum", "increase", "raise", "higher", "max", "largest"})
_DOWN = frozenset({"minimize", "minimise", "lowest", "minimum", "reduce", "decrease", "lower", "smallest", "min"})
_NAMING = _UP | _DOWN | {"metric", "by", "best", "better", "optimize", "optimise", "improve", "judged", "report"}
_METRIC = frozenset({"metric", "criterion"})
_GUARDS = frozenset({"without", "hurting", "losing", "keeping", "sacrificing", "degrading", "keep"})
_GLUE = frozenset({":", "=", "is", "the", "a", "as", "our"})
_WORSE = frozenset({"get", "become", "be", "any", "worse", "drop", "fall", "decrease", "degrade", "rise"})
_HELD_OUT = {"val", "valid", "validation", "dev", "eval", "test"}
# Words that make another metric of one: `test loss` is never read as `loss`.
_QUALIFIERS = frozenset({*_HELD_OUT, "train", "training", "held-out", "heldout", "average", "avg", "mean"})
_SETS = frozenset({"set", "data", "split", "dataset"})


@dataclass(slots=True)
class MetricReading:
    goal: MetricGoal | None = None
    guards: list[MetricGoal] = field(default_factory=list)
    ambiguous: list[str] = field(default_factory=list)  # metrics that the text can mean
    missing: list[str] = field(default_factory=list)  # named metrics that the script does not report
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Mention:
    start: int
    end: int
    metrics: tuple[LoggedMetric, ...]  # those that it can mean
    is_partial: bool = False  # no metric has all of its words


def read_metric(tokens: Tokens, entry: EntryPoint) -> MetricReading:
    reading = MetricReading()

    def rank(mention: _Mention) -> tuple[int, bool]:
        """Put newer lines first. In a line, `metric: X` wins over other metrics."""
        place = tokens.before(mention.start, _GLUE)
        is_called = tokens.at(place) in _METRIC and tokens.at(place - 1) != "secondary"
        return tokens.line(mention.start), not is_called

    for mention in sorted(_mentions(tokens, entry), key=rank):
        places = range(max(0, mention.start - 5), mention.start)
        near = [tokens.at(index) for index in places if tokens.is_free(index)]
        tokens.take(mention.start, mention.end)
        if near[-1:] == ["not"] or near[-2:] in (["instead", "of"], ["rather", "than"]):
            tokens.take(mention.start - (1 if near[-1] == "not" else 2), mention.start)
            continue
        guard_end = _guard_end(tokens, mention.end)
        since_comma = near[len(near) - near[::-1].index(",") :] if "," in near else near
        if guard_end > mention.end or set(since_comma[-3:]) & _GUARDS:
            tokens.take(mention.end, guard_end)
            for place in (place for place in places if tokens.at(place) in _GUARDS):
                tokens.take(place, place + 1)
            reading.guards.append(_goal(mention.metrics[0], [], reading))
        elif reading.goal is None and not reading.ambiguous:
            _choose(mention, tokens.shown(mention.start, mention.end), near, reading)
    if reading.goal is None and not reading.ambiguous:
        reading.missing = list(_missing(tokens, entry))
        known = [metric for metric in _whole_names(entry) if metric.direction]
        only = known if len(known) == 1 else _held_out(known)
        if not reading.missing and len(only) == 1:
            reading.goal = MetricGoal(metric=only[0].name, direction=only[0].direction or "", assumed=ONLY_ONE)
    return reading


def _guard_end(tokens: Tokens, start: int) -> int:
    """Return the end of `must not get worse`, or `start` if there is no such text."""
    if tokens.at(start) not in ("must", "should", "may") or tokens.at(start + 1) != "not":
        return start
    end = start + 2
    while tokens.at(end) in _WORSE:
        end += 1
    return end


def _choose(mention: _Mention, words: str, near: list[str], reading: MetricReading) -> None:
    held_out = _held_out(mention.metrics)
    if mention.is_partial:
        reading.ambiguous = [metric.name for metric in mention.metrics]
        reading.missing = [words]
    elif len(mention.metrics) == 1:
        reading.goal = _goal(mention.metrics[0], near, reading)
    elif len(held_out) == 1:
        reading.goal = _goal(held_out[0], near, reading, assumed="the one on held-out data")
    else:
        reading.ambiguous = [metric.name for metric in held_out or mention.metrics]


def _goal(metric: LoggedMetric, near: list[str], reading: MetricReading, *, assumed: str = "") -> MetricGoal:
    named = next((MAXIMIZE if word in _UP else MINIMIZE for word in reversed(near) if word in _UP | _DOWN), None)
    usual = metric.direction or direction_of(metric.name)
    if named and usual and named != usual:
        reading.warnings.append(f"{metric.name} is usually {usual}d; the goal says {named}.")
    if not named and not usual:
        assumed = "its direction is a guess"
    return MetricGoal(metric=metric.name, direction=named or usual or MAXIMIZE, assumed=assumed)


def _mentions(tokens: Tokens, entry: EntryPoint) -> list[_Mention]:
    """Return the exact names of metrics, and groups of words that fit parts of them (`validation accuracy`)."""
    exact = list(_wildcard_mentions(tokens, entry))
    for metric in _whole_names(entry):
        phrase = tuple(token.text for token in split(metric.name).tokens)
        found = [_Mention(start, start + len(phrase), (metric,)) for start in tokens.find(phrase)]
        exact += [mention for mention in found if not _is_qualified(tokens, mention)]
    exact = [mention for mention in exact if not any(_is_inside(mention, other) for other in exact)]
    covered = {index for mention in exact for index in range(mention.start, mention.end)}
    index = 0
    while index < len(tokens):
        end, spoken = index, set[str]()
        while end < len(tokens) and end not in covered and tokens.is_free(end) and (parts := _parts(tokens.at(end))):
            is_part = any(parts <= _parts(metric.name) for metric in _whole_names(entry))
            if not is_part and tokens.at(end) not in _QUALIFIERS:
                break
            end, spoken = end + 1, spoken | parts
        if any(direction_of(word) for word in spoken):
            exact += _group(tokens, index, end, spoken, entry)
        index = max(end, index + 1)
    return exact


def _is_inside(mention: _Mention, other: _Mention) -> bool:
    """Return whether a mention is a part of a longer one: `return` in `charts/return`."""
    is_longer = other.end - other.start > mention.end - mention.start
    return is_longer and other.start <= mention.start and mention.end <= other.end


def _is_qualified(tokens: Tokens, mention: _Mention) -> bool:
    """Return whether `loss` is a part of `test loss` or of `loss on the test set`."""
    is_behind = tokens.at(mention.start - 1) in _QUALIFIERS and tokens.is_free(mention.start - 1)
    return is_behind or _set_behind(tokens, mention.end) is not None


def _set_behind(tokens: Tokens, end: int) -> int | None:
    """Return the place of `test` in `on the test set`."""
    if tokens.at(end) not in ("on", "over"):
        return None
    place = end + 1 + (tokens.at(end + 1) in ("the", "a"))
    return place if tokens.at(place) in _QUALIFIERS and tokens.at(place + 1) in _SETS else None


def _group(tokens: Tokens, start: int, end: int, spoken: set[str], entry: EntryPoint) -> Iterator[_Mention]:
    """Yield the metrics that have every spoken word; if none has, those that have all but `test`, `average`, ….

    Words that are a metric's own name, such as `val loss` for val_loss, mean that metric.
    """
    whole = _whole_names(entry)
    phrase = "_".join(tokens.at(place) for place in range(start, end))
    behind = _set_behind(tokens, end)
    if behind is not None:
        phrase, spoken, end = "", spoken | _parts(tokens.at(behind)), behind + 2
    qualifiers = {part for word in _QUALIFIERS for part in _parts(word)}
    named = [metric for metric in whole if metric.name.lower() == phrase]
    fitting = tuple(named or [metric for metric in whole if spoken <= _parts(metric.name)])
    core = spoken - qualifiers
    partial = tuple(metric for metric in whole if core and core <= _parts(metric.name))
    if fitting or partial:
        yield _Mention(start, end, fitting or partial, is_partial=not fitting)


def _wildcard_mentions(tokens: Tokens, entry: EntryPoint) -> Iterator[_Mention]:
    """Find `val/acc` for a script that logs `*/acc`."""
    starts = {token.start: index for index, token in enumerate(tokens.tokens)}
    ends = {token.end: index + 1 for index, token in enumerate(tokens.tokens)}
    for metric in entry.metrics:
        name = re.escape(metric.name).replace(r"\*", r"\w+")
        for match in re.finditer(rf"(?<![\w/]){name}(?![\w/])", tokens.text) if "*" in metric.name else ():
            if match.start() in starts and match.end() in ends:
                known = replace(metric, name=match[0], direction=metric.direction or direction_of(match[0]))
                yield _Mention(starts[match.start()], ends[match.end()], (known,))


def _held_out(metrics: Sequence[LoggedMetric]) -> list[LoggedMetric]:
    return [metric for metric in metrics if set(words_of(metric.name)) & _HELD_OUT]


def _whole_names(entry: EntryPoint) -> list[LoggedMetric]:
    return [metric for metric in entry.metrics if "*" not in metric.name]


def _parts(name: str) -> set[str]:
    return {next((min(group) for group in _SAME if word in group), word) for word in words_of(name)}


def _missing(tokens: Tokens, entry: EntryPoint) -> Iterator[str]:
    """Find metrics that the script does not report: `metric: banana`, `best f1`, `test_f1` anywhere."""
    flags = {word for flag in entry.flags for word in (flag.name.lower(), flag.option.lower(), *flag.aliases)}
    for index, token in enumerate(tokens.tokens):
        if not token.is_word or not tokens.is_free(index) or token.is_filler or token.text in flags:
            continue
        is_called = tokens.at(tokens.before(index, _GLUE)) in _METRIC
        near = {tokens.at(place) for place in range(max(0, index - 3), index)}
        like_code = any(not letter.isalpha() for letter in token.text)
        if is_called or (direction_of(token.text) and (like_code or near & _NAMING)):
            tokens.take(index, index + 1)
            yield token.shown
