"""The flags that a goal varies or holds fixed, and their values.

Values follow their flag. A line overrides the lines below it: answers and corrections come first. If the text can mean
several things, the flag is unclear and the user is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from labwright.planning.goals.facts import Variation
from labwright.planning.goals.names import Mention, find_mentions, missing_parameters
from labwright.planning.goals.tokens import Tokens
from labwright.planning.goals.values import (
    MOST_VALUES,
    SEPARATORS,
    ValueList,
    count_before,
    typed,
    unfit,
    values_after,
    values_before,
    words_after,
)
from labwright.planning.scan import EntryPoint, Flag, Role
from labwright.planning.scan.facts import plain_name

_ARTICLES = frozenset({"the", "a", "any", "our"})
_BEFORE_NEGATED = _ARTICLES | {
    "use", "using", "try", "trying", "run", "set", "include", "with", "want", "touch", "change", "vary", "varying",
    "tune", "tuning", "sweep", "sweeping",
}  # fmt: skip
_NEGATIONS = frozenset({
    "not", "never", "avoid", "avoiding", "exclude", "excluding", "except", "dont", "drop", "remove", "skip", "but",
    "instead",
})  # fmt: skip
_VARYING = frozenset({
    "vary", "varying", "sweep", "sweeping", "tune", "tuning", "tuned", "search", "explore", "find", "best", "optimal",
    "optimize", "optimise", "compare", "comparing", "try", "trying", "test", "testing", "effect", "effects",
    "influence", "impact", "ablate", "ablation", "which", "what", "how", "study", "different", "does",
})  # fmt: skip
_ADDING = frozenset({"add", "adding", "also", "plus", "include", "including"})
_BESIDE_VALUES = SEPARATORS | {"at", "with", "try", "use", "using", "for", "(", "=", ":", "@", "-", ";"}
_USING = ("with", "using", "use", "only")
_FAR = 7  # words between `find the best` and the flag


@dataclass(frozen=True, slots=True)
class Given:
    """Values of a flag at one place of the goal."""

    place: int
    flag: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Unclear:
    flag: Flag
    text: str
    suggestions: tuple[str, ...] = ()


@dataclass(slots=True)
class Parameters:
    variations: list[Variation] = field(default_factory=list)
    fixed: dict[str, Any] = field(default_factory=dict)
    open: list[tuple[Flag, int | None]] = field(default_factory=list)  # to be varied, but without values
    unclear: list[Unclear] = field(default_factory=list)
    unsettable: list[Flag] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # well-known parameters that the script does not have
    named_only: list[Flag] = field(default_factory=list)  # without values, and not to be varied
    given: list[Given] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)  # the line that decides about a flag
    added: list[tuple[Flag, tuple[Any, ...]]] = field(default_factory=list)  # values for a list elsewhere

    @property
    def settled(self) -> set[str]:
        return {variation.flag for variation in self.variations} | set(self.fixed)


def read_parameters(tokens: Tokens, entry: EntryPoint) -> Parameters:
    result = Parameters()
    _read_cpu(tokens, entry, result)
    mentions = find_mentions(tokens, entry)
    for number, mention in enumerate(mentions):
        until = mentions[number + 1].start if number + 1 < len(mentions) else len(tokens)
        if tokens.is_free(mention.start):  # else it is the unit of the values before it
            _read_mention(tokens, mention, min(until, tokens.clause_end(mention.end)), result)
    for flag, values in result.added:  # join the values of `add lr 0.5` to those that another line lists
        listed = next((variation for variation in result.variations if variation.flag == flag.name), None)
        if listed is None:
            _keep(flag, values, "listed", "", 0, result)
        else:
            joined = replace(listed, values=typed(flag, (*listed.values, *values)))
            result.variations[result.variations.index(listed)] = joined
    _read_choices(tokens, entry, result)
    decided = result.settled | {unclear.flag.name for unclear in result.unclear}
    result.open = [(flag, count) for flag, count in result.open if flag.name not in decided]
    _check_pairs(result, entry)
    _check_loose_numbers(tokens, result, entry)
    result.missing += missing_parameters(tokens)
    return result


def _read_cpu(tokens: Tokens, entry: EntryPoint, result: Parameters) -> None:
    """Read `on the CPU`, `device=cpu`, `--device cpu`, `without cuda` and `no gpu` as the script's flag for it."""
    flag = next((flag for flag in entry.flags_for(Role.DEVICE) if _cpu_value(flag) is not None), None)
    names = {flag.name, flag.option, *flag.aliases} if flag else set()
    for index in range(len(tokens)):
        word, before = tokens.at(index), tokens.before(index, _ARTICLES | {"=", ":"})
        negated = tokens.at(before) in ("without", "no") and word in ("cuda", "gpu", "gpus")
        named = word == "cpu" and tokens.at(before) in {"on", "device", "accelerator", "--device", *names}
        if (not negated and not named) or not tokens.is_free(index):
            continue
        if flag is None:
            result.missing.append("the device")
        else:
            result.fixed.setdefault(flag.name, _cpu_value(flag))
            result.lines.setdefault(flag.name, tokens.line(index))
        tokens.take(before, index + 1)


def _cpu_value(flag: Flag) -> Any:
    """Return the value that makes a run use the CPU, or None if the flag's values are not known."""
    name = plain_name(flag.name)
    if flag.type == "bool":
        return not name.startswith(("use_cuda", "cuda", "gpu"))
    is_text = name in ("device", "device_type", "accelerator") and flag.type == "str"
    return "cpu" if is_text and (not flag.choices or "cpu" in flag.choices) else None


def _read_mention(tokens: Tokens, mention: Mention, stop: int, result: Parameters) -> None:
    flag, line = mention.flag, tokens.line(mention.start)
    is_older = result.lines.setdefault(flag.name, line) != line
    adding = tokens.before(mention.start, _ARTICLES | {"try", "test", "run"})
    adds = tokens.at(adding) in _ADDING
    division, counted_from = count_before(tokens, mention.start)
    before = values_before(tokens, mention.start, flag)
    after = values_after(tokens, mention.end, stop, flag, division)
    if after is None and flag.is_settable and flag.type == "str" and not flag.choices and flag.role is None:
        after = words_after(tokens, mention.end, stop)
    if is_older and flag.name in result.settled and not adds:
        tokens.take(mention.start, after.end if after else mention.end)
        return
    if (negation := _negation(tokens, mention.start)) is not None:
        end = after.end if after else mention.end
        text = f"“{tokens.shown(negation, end)[:80]}” excludes something. Which values of {flag.name} should be tried?"
        has_default = flag.default is not None and not isinstance(flag.default, list | tuple)
        result.unclear.append(Unclear(flag, text, (str(flag.default),) if has_default else ()))
        tokens.take(negation, end)
    elif (switch := _switch(tokens, mention)) is not None:
        start, end, values = switch
        tokens.take(start, end)
        text = tokens.shown(start, end)
        if flag.type == "bool":
            states = tuple(value is not mention.is_off for value in values)
            _keep(flag, states, "switch", text, mention.start, result)
        else:
            zero = ("0",) if flag.type in ("int", "float") else ()
            result.unclear.append(Unclear(flag, f"Which values of {flag.name} does “{text}” mean?", zero))
    elif after is not None:
        tokens.take(counted_from, mention.start)
        _keep_after(tokens, mention, after, stop, adding if adds else None, result)
    elif before is not None and (  # `5 epochs` is a value, `3 learning rates` is a count
        len(before[0]) > 1
        or flag.role in (Role.EPOCHS, Role.STEPS)
        or (flag.type == "float" and isinstance(before[0][0], float))
    ):
        values, start = before
        tokens.take(start, mention.end)
        _keep(flag, values, "listed", tokens.shown(start, mention.end), mention.start, result)
    else:
        tokens.take(counted_from, mention.end)
        _keep_bare(tokens, mention, division.count, result)


def _negation(tokens: Tokens, start: int) -> int | None:
    """Return where `don't use`, `never`, `except` or the like starts in front of a place."""
    place = tokens.before(start, _BEFORE_NEGATED)
    if tokens.at(place) == "t" and tokens.at(place - 1) == "'":
        return place - 2
    if place < 0 or tokens.at(place) not in _NEGATIONS:
        return None
    return place - (tokens.at(place - 1) in ("do", "does", "should", "must", "or"))


def _switch(tokens: Tokens, mention: Mention) -> tuple[int, int, tuple[bool, ...]] | None:
    """Read `with and without X`, `X on and off`, `with X`, `without X`: start, end and the values of a switch."""
    start = tokens.before(mention.start, _ARTICLES)
    words = [tokens.at(place) for place in range(start - 2, start + 1)]
    if {words[0], words[2]} == {"with", "without"} and words[1] in ("and", "or", "vs", "versus", "/"):
        return start - 2, mention.end, (True, False)
    behind = [tokens.at(place) for place in range(mention.end, mention.end + 3)]
    if {behind[0], behind[2]} == {"on", "off"} and behind[1] in ("and", "or", "/", "vs"):
        return mention.start, mention.end + 3, (True, False)
    if words[2] in ("without", "no", "disable"):
        return start, mention.end, (False,)
    if words[2] in ("with", "using", "enable") and mention.flag.type == "bool":
        return start, mention.end, (True,)
    return None


def _keep_after(
    tokens: Tokens, mention: Mention, after: ValueList, stop: int, adding: int | None, result: Parameters
) -> None:
    flag, text = mention.flag, tokens.shown(mention.start, after.end)
    left_over = [place for place in range(after.end, _own_end(tokens, stop)) if _is_loose(tokens, place)]
    if left_over or not after.is_clear or _has_rows(tokens, mention.end, after.end, stop, flag):
        whole = tokens.shown(mention.start, stop)[:80]
        result.unclear.append(Unclear(flag, f"Which values of {flag.name} does “{whole}” mean?"))
        tokens.take(mention.start, max([after.end, *(place + 1 for place in left_over)]))
        return
    if [tokens.at(after.end), tokens.at(after.end + 1)] == ["as", "well"] or tokens.at(after.end) == "too":
        tokens.take(after.end, after.end + 1 + (tokens.at(after.end) == "as"))
        adding = mention.start if adding is None else adding
    tokens.take(mention.start if adding is None else adding, after.end)
    if after.too_many:
        text = f"“{text[:80]}” requests {after.too_many:,} values of {flag.name}; a plan tries at most {MOST_VALUES}."
        result.unclear.append(Unclear(flag, f"{text} Which values should be tried?"))
    elif adding is not None and not unfit(flag, after.values):
        result.added.append((flag, typed(flag, after.values)))
    else:
        _keep(flag, after.values, after.scale, text, mention.start, result, note=after.note)


def _own_end(tokens: Tokens, stop: int) -> int:
    """Return where the values in front of the next flag start: the 20 of `lr 0.1, with 20, 40 and 80 features`."""
    if tokens.clause_end(stop - 1) != stop:  # it ends at a flag
        while tokens.at(stop - 1) in SEPARATORS or tokens.number(stop - 1) is not None:
            stop -= 1
    return stop


def _has_rows(tokens: Tokens, start: int, end: int, stop: int, flag: Flag) -> bool:
    """Return whether a flag that takes a list gets several lists: `32 32 vs 64 64`, `[32, 64] vs [128, 128]`."""
    if not flag.type.startswith("list"):
        return False
    texts = [tokens.at(place) for place in range(start, stop)]
    beside = any(None not in (tokens.number(place), tokens.number(place + 1)) for place in range(start, end - 1))
    return beside or bool(set(texts) & set("([{")) or len(set(texts[: end - start]) & SEPARATORS) > 1


def _keep_bare(tokens: Tokens, mention: Mention, count: int | None, result: Parameters) -> None:
    near = {tokens.at(index) for index in range(max(0, mention.start - _FAR), mention.start)}
    if mention.flag.name in result.settled:
        return
    if count is None and not near & _VARYING:
        result.named_only.append(mention.flag)
    elif not mention.flag.is_settable:
        result.unsettable.append(mention.flag)
    elif mention.flag.name not in {flag.name for flag, _count in result.open}:
        result.open.append((mention.flag, count))


def _keep(
    flag: Flag, values: tuple[Any, ...], scale: str, text: str, place: int, result: Parameters, *, note: str = ""
) -> None:
    """Record values of a flag. Further values in the same line join them: `lr 0.1 and lr 0.01`."""
    if not flag.is_settable:
        result.unsettable.append(flag)
        return
    if wrong := unfit(flag, values):
        bad = ", ".join(map(str, wrong[:3]))
        result.unclear.append(Unclear(flag, f"{flag.name} does not take {bad}. Which values should be tried?"))
        return
    before = next((variation for variation in result.variations if variation.flag == flag.name), None)
    earlier = before.values if before else (result.fixed[flag.name],) if flag.name in result.fixed else ()
    result.given.append(Given(place, flag.name, typed(flag, values)))
    together = typed(flag, (*earlier, *values))
    if len(together) == 1:
        result.fixed[flag.name] = together[0]
        return
    result.fixed.pop(flag.name, None)
    made = Variation(flag=flag.name, values=together, scale="listed" if earlier else scale, words=text, note=note)
    if before:
        result.variations[result.variations.index(before)] = made
    else:
        result.variations.append(made)


def _read_choices(tokens: Tokens, entry: EntryPoint, result: Parameters) -> None:
    """Read the names of choices anywhere: `constant vs linear schedule`, `with adam`."""
    for flag in entry.flags:
        if not flag.is_settable or not flag.choices or flag.name in result.settled:
            continue
        known = {str(choice).lower(): choice for choice in flag.choices}
        named = [i for i, token in enumerate(tokens.tokens) if token.is_word and token.text in known]
        named = [i for i in named if tokens.is_free(i) and tokens.line(i) == tokens.line(named[0])]
        values = tuple(dict.fromkeys(known[tokens.at(i)] for i in named))
        clear = [i for i in named if not tokens.tokens[i].is_filler or tokens.at(i - 1) in _USING]
        if not named or (len(values) == 1 and not clear):  # `mean` or `test` may be an ordinary word of the goal
            continue
        negated = next((start for i in named if (start := _negation(tokens, i)) is not None), None)
        for index in named:
            tokens.take(index, index + 1)
            result.given.append(Given(index, flag.name, (known[tokens.at(index)],)))
        if negated is not None:
            kept = ", ".join(str(choice) for choice in flag.choices if choice not in values)
            text = f"“{tokens.shown(negated, named[-1] + 1)[:80]}” excludes something."
            text = f"{text} Which values of {flag.name} should be tried?"
            result.unclear.append(Unclear(flag, text, (kept,) if kept else ()))
        elif len(values) > 1:
            result.variations.append(
                Variation(flag=flag.name, values=values, words=tokens.shown(named[0], named[-1] + 1))
            )
        else:
            result.fixed[flag.name] = values[0]
        result.lines.setdefault(flag.name, tokens.line(named[0]))


def _check_pairs(result: Parameters, entry: EntryPoint) -> None:
    """Ask about values that belong to one value of another flag: `sgd lr 0.1 and adam lr 0.001`.

    Plans try whole grids, which would add combinations that the goal does not name.
    """
    given = sorted(result.given, key=lambda item: item.place)
    chosen = {flag.name for flag in entry.flags if flag.choices}
    for name in sorted(dict.fromkeys(item.flag for item in given), key=lambda name: name in chosen):
        places = [i for i, item in enumerate(given) if item.flag == name]
        between = {item.flag for item in given[places[0] : places[-1] + 1]} - {name}
        is_paired = len({given[i].values for i in places}) > 1 and name in {v.flag for v in result.variations}
        others = [other for other in between if len({item.values for item in given if item.flag == other}) > 1]
        flag = entry.flag(name)
        if not is_paired or not others or flag is None:
            continue
        varied = {variation.flag: variation.values for variation in result.variations}
        grid = "; ".join(f"{flag} {', '.join(map(str, varied[flag]))}" for flag in (*others, name) if flag in varied)
        text = (
            f"The goal names {name} separately for each {others[0]}. A plan tries every value with every other: "
            "which grid should it be? The rest can be a second plan."
        )
        result.unclear.append(Unclear(replace(flag, name=""), text, (grid,)))
        return


def _check_loose_numbers(tokens: Tokens, result: Parameters, entry: EntryPoint) -> None:
    """Ask about a number beside values that belongs to no flag: `adam at 1e-3`, `lr 0.1; 0.2`, `lr 0.1, patience 7`."""
    known = {item.place for item in result.given}
    clauses = {tokens.clause_end(place) for place in known}
    newest = min(result.lines.values(), default=0)
    for index in range(len(tokens)):
        if not _is_loose(tokens, index) or tokens.line(index) > newest:
            continue
        owner = tokens.before(index, _BESIDE_VALUES)
        is_beside = owner >= 0 and tokens.number(owner) is not None and not tokens.is_free(owner)
        if owner in known or is_beside or tokens.clause_end(index) in clauses:
            number, around = tokens.shown(index, index + 1), tokens.shown(max(0, owner), index + 1)[:80]
            text = f"Which flag does {number} in “{around}” belong to? Name it with its values."
            result.unclear.append(Unclear(replace(entry.flags[0], name=""), text))
            return


def _is_loose(tokens: Tokens, index: int) -> bool:
    """Return whether a number is left over and does not count the word behind it."""
    if tokens.number(index) is None or not tokens.is_free(index):
        return False
    following = tokens.tokens[index + 1] if index + 1 < len(tokens) else None
    return following is None or not following.is_word or following.text in SEPARATORS | {"for", "with", "on", "at"}


def compare_with_default(entry: EntryPoint, result: Parameters) -> None:
    """If the goal names one value of one flag and nothing else to vary, compare it with the script's default."""
    subjects = [flag for flag in entry.flags if flag.name in result.fixed and flag.role is None]
    if result.variations or result.open or result.unclear or result.missing or len(subjects) != 1:
        return
    flag, value = subjects[0], result.fixed[subjects[0].name]
    if flag.default is not None and flag.default != value:
        del result.fixed[flag.name]
        note = f"the goal names {value}; the default in {entry.path} is {flag.default}"
        result.variations.append(Variation(flag=flag.name, values=(flag.default, value), note=note))
