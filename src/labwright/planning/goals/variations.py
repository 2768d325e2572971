"""What a goal wants to vary and what it holds fixed, matched to the flags of the script."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from labwright.planning.goals.choices import read_beside_own, read_choices
from labwright.planning.goals.denials import Denial, denial_before
from labwright.planning.goals.facts import Variation
from labwright.planning.goals.filler import FILLER
from labwright.planning.goals.free_words import takes_any_word, words_after
from labwright.planning.goals.mentions import Mention, divides, read_mentions
from labwright.planning.goals.opposites import off_options, opposites_of, turn_round
from labwright.planning.goals.spacing import MOST_VALUES, Wish
from labwright.planning.goals.synonyms import known_elsewhere
from labwright.planning.goals.values import Found, values_after, values_before
from labwright.planning.goals.varied import Given, Varied, as_type, fit, keep, take_out_denied, typed_values
from labwright.planning.goals.words import AND_SO_ON, VARYING, Words
from labwright.planning.scan import EntryPoint, Flag

_SWITCHED = [
    ("with", "and", "without"), ("without", "and", "with"), ("with", "or", "without"), ("with", "/", "without"),
    ("with", "vs", "without"), ("with", "versus", "without"), ("w", "/", "and", "w", "/", "o"),
]  # fmt: skip
_WITH, _WITHOUT = ("with", "using", "enable"), ("without", "no", "disable")
_COUNTING = (
    "rates",
    "lrs",
    "sizes",
    "values",
    "decays",
    "optimizers",
    "schedules",
    "schedulers",
    "settings",
    "batches",
    "strengths",
)
_BEFORE_NAMES = {"different", "values", "of", "for", "the", "random", "as", "log-spaced", "log", "spaced"}
_ADDING = {"add", "adding", "also", "plus", "include", "including", "additionally"}
_OPENING = ("[", "(", "{")
_FACTORS = {"double": 2, "doubling": 2, "twice": 2, "triple": 3, "halve": 0.5, "half": 0.5, "halving": 0.5}


def read_variations(words: Words, entry: EntryPoint) -> Varied:
    found = Varied()
    mentions, found.owners = read_mentions(words, entry)
    for place, mention in enumerate(mentions):
        until = mentions[place + 1].start if place + 1 < len(mentions) else len(words.tokens)
        if words.is_free(mention.start):  # else it was the unit of the values before it
            _read_mention(words, mention, min(until, words.clause_end(mention.end)), found)
    _add_more(found)
    take_out_denied(found)
    turn_round(found, opposites_of(entry))
    settled = {variation.flag for variation in found.variations} | set(found.fixed)
    found.open = [(flag, count) for flag, count in found.open if flag.name not in settled]
    _read_apart(words, found)
    read_choices(words, entry, found)
    read_beside_own(words, entry, found)
    found.absent = _absent(words)
    return found


def _read_apart(words: Words, found: Varied) -> None:
    """`Does weight decay help? Try 0 and 1e-4.`, `Which degree is best, 1 to 9?`: for the one flag that has none."""
    if len(found.open) != 1 or found.named_only:  # else nobody knows whose they are
        return
    flag, count = found.open[0]
    for place in range(found.lacking_from, len(words.tokens)):
        begins = words.number(place) is not None or words.at(place) in ("between", "from")
        if not begins or not words.is_free(place):
            continue
        after = values_after(words, place, words.clause_end(place), flag, Wish(count=count))
        if after and len(after.values) > 1 and not _counts_something(words, after) and fit(flag, after.values):
            found.open.clear()
            text = words.shown(place, after.end)
            words.take(place, after.end)
            keep(flag, after.values, after.scale, text, found, note=after.note)
            return


def _counts_something(words: Words, after: Found) -> bool:
    """`50000 and 10000 images`."""
    following = words.tokens[after.end] if after.end < len(words.tokens) else None
    return following is not None and following.is_word and following.text not in FILLER


def _add_more(found: Varied) -> None:
    """`add lr 0.5` and `lr 0.1 and 0.3`, in whichever order. With nothing to add to, they are the values."""
    for flag, values in found.added:
        named = {variation.flag: place for place, variation in enumerate(found.variations)}
        if flag.name in named:
            before = found.variations[named[flag.name]]
            more = tuple(dict.fromkeys((*before.values, *values)))
            found.variations[named[flag.name]] = replace(before, values=more)
        else:
            keep(flag, values, "listed", "", found, beside=True)


def compare_with_default(entry: EntryPoint, found: Varied) -> None:
    """`degree 9` and nothing else to vary: the one value beside the script's own. Not lengths, devices and the like."""
    subjects = [flag for flag in entry.flags if flag.name in found.fixed and flag.role is None]
    if found.variations or found.open or found.unclear or found.absent or len(subjects) != 1:
        return
    flag, value = subjects[0], found.fixed[subjects[0].name]
    if flag.default is not None and flag.default != value:
        del found.fixed[flag.name]
        note = f"the goal names {value}; {entry.path} itself has {flag.default}"
        found.variations.append(Variation(flag=flag.name, values=(flag.default, value), note=note))


def _read_mention(words: Words, mention: Mention, stop: int, found: Varied) -> None:
    flag, line = mention.flag, words.line(mention.start)
    denial = denial_before(words, mention.start, mention.end)
    if flag.name in found.left or (denial and _deny(words, mention, denial, stop, found)):
        words.take(mention.start, mention.end)
        return
    is_known = flag.name in {variation.flag for variation in found.variations}
    is_older = found.lines.setdefault(flag.name, line) != line
    if (is_known or (is_older and flag.name in found.fixed)) and _adding_word(words, mention) is None:
        if not is_older:
            _read_again(words, mention, stop, found)
        words.take(mention.start, mention.end)
        return
    switched = _switched(words, mention)
    factor = _factor_before(words, mention)
    count, before = (None, None) if factor else _count_or_values_before(words, mention)
    scale = "log" if count and words.at(mention.start - 1) in ("log-spaced", "spaced") else ""
    wish = Wish(count=count, factor=factor, scale=scale)
    after = None if switched else values_after(words, mention.end, stop, flag, wish)
    if after is None and takes_any_word(flag):
        after = words_after(words, mention.end, stop)
    if switched is not None:
        end = mention.end + _on_off(words, mention.end)
        given = values_after(words, end, stop, flag) if end == mention.end else None
        words.take(switched, given.end if given else end)
        _keep_switch(flag, words.shown(switched, mention.end), given, found)
    elif after and not before:
        _keep_after(words, mention, after, stop, found)
    elif before:
        words.take(before[1], mention.end)
        _note(flag, before[1], before[0], found)
        keep(flag, before[0], "listed", words.shown(before[1], mention.end), found, beside=True)
    else:
        _keep_bare(words, mention, count, found)


def _read_again(words: Words, mention: Mention, stop: int, found: Varied) -> None:
    """`lr 0.1, 0.01 and lr 0.001`: a further list in the same breath joins the first."""
    flag, after = mention.flag, values_after(words, mention.end, stop, mention.flag)
    if after is None or not after.values or not fit(flag, after.values):
        return
    _note(flag, mention.start, after.values, found)
    first = next(variation for variation in found.variations if variation.flag == flag.name)
    if first.scale == after.scale == "listed":
        words.take(mention.start, after.end)
        found.added.append((flag, typed_values(flag, after.values)))


def _note(flag: Flag, place: int, values: tuple[Any, ...], found: Varied) -> None:
    if fit(flag, values):
        found.given.setdefault(flag.name, []).append(Given(place, typed_values(flag, values)))


def _deny(words: Words, mention: Mention, denial: Denial, stop: int, found: Varied) -> bool:
    """Whether it settles the matter; `don't change batch size 32` names a value to keep."""
    flag, after = mention.flag, values_after(words, mention.end, stop, mention.flag)
    if after and not denial.keeps_value:
        words.take(denial.start, after.end)
        found.denied.setdefault(flag.name, []).extend(as_type(flag, value) for value in after.values)
        return True
    words.take(denial.start, mention.end)
    if after:
        return False
    if denial.leaves or flag.type not in ("bool", "int", "float"):
        found.left.add(flag.name)
    else:
        keep(flag, (0,), "listed", words.shown(denial.start, mention.end), found)
    return True


def _factor_before(words: Words, mention: Mention) -> float | None:
    """`powers of two for the batch size from 16 to 256`."""
    place = mention.start - 1
    while words.at(place) in ("for", "the", "as", "in", "our"):
        place -= 1
    if words.number(place) is None or words.at(place - 1) != "of" or words.at(place - 2) not in ("powers", "factors"):
        return None
    words.take(place - 2, mention.start)
    return words.number(place)


def _count_or_values_before(words: Words, mention: Mention) -> tuple[int | None, tuple[tuple[Any, ...], int] | None]:
    """`3 learning rates` is a count, `5 epochs` and `0.1 and 0.01 dropout` are values."""
    start = mention.start
    while words.at(start - 1) in _BEFORE_NAMES:
        start -= 1
    before = values_before(words, start, mention.flag)
    if before is None:
        return None, None
    values, begin = before
    plural = (
        words.at(mention.end - 1) in _COUNTING
        or words.at(start) in ("different", "values")
        or mention.flag.type != "int"
    )
    if len(values) == 1 and plural and isinstance(values[0], int):
        words.take(begin, mention.start)
        return values[0], None
    return None, before


def _switched(words: Words, mention: Mention) -> int | None:
    """Where `with and without <flag>` or `<flag> on and off` begins."""
    start = mention.start - (words.at(mention.start - 1) in ("the", "a", "any"))
    for phrase in _SWITCHED:
        if words.matches(start - len(phrase), phrase):
            return start - len(phrase)
    return mention.start if _on_off(words, mention.end) else None


def _on_off(words: Words, index: int) -> int:
    """How many words `on and off` takes."""
    both = {words.at(index), words.at(index + 2)} == {"on", "off"}
    return 3 if both and words.at(index + 1) in ("and", "or", "/", "vs") else 0


def _keep_switch(flag: Flag, text: str, given: Found | None, found: Varied) -> None:
    """`given`: what “with” means, as in `with and without weight decay 0.01`."""
    if flag.type in ("int", "float") and given:
        keep(flag, (0, *given.values), "switch", text, found)
    elif flag.type == "bool":
        keep(flag, (True, False), "switch", text, found)
    elif isinstance(flag.default, int | float) and flag.default:
        keep(flag, (flag.default, 0), "switch", text, found)
    else:
        found.unclear.append((flag, f"{flag.name} is off by default: what does “with” mean?"))


def _keep_after(words: Words, mention: Mention, after: Found, stop: int, found: Varied) -> None:
    flag = mention.flag
    text = words.shown(mention.start, after.end)
    text_to_stop = words.shown(mention.start, stop)
    left_over = [words.tokens[index].shown for index in range(after.end, stop) if words.is_loose_number(index)]
    if left_over and (len(after.values) == 1 or AND_SO_ON in text_to_stop):
        found.unclear.append((flag, f"which values of {flag.name} does “{text_to_stop[:80]}” mean?"))
        words.take(mention.start, mention.end)
        return
    words.take(mention.start, after.end)
    if flag.type.startswith("list") and _has_rows(words, mention.end, after.end, stop):
        text = f"{flag.name} takes several values at once, and rules can give it only one: which are to be tried?"
        found.unclear.append((flag, text))
        return
    if after.too_many:
        words_ = (
            f"“{text[:80]}” asks for {after.too_many:,} values of {flag.name}, and a plan tries {MOST_VALUES} at most"
        )
        found.unclear.append((flag, f"{words_}: which are they to be?"))
        return
    adding, too = _adding_word(words, mention), _too(words, after.end)
    if (adding is not None or too) and fit(flag, after.values):
        words.take(mention.start if adding is None else adding, after.end + too)
        found.added.append((flag, typed_values(flag, after.values)))
        return
    _note(flag, mention.start, after.values, found)
    keep(flag, after.values, after.scale, text, found, note=after.note, beside=True)


def _has_rows(words: Words, start: int, end: int, stop: int) -> bool:
    """`layers 32 32 vs 64 64`, `32,32 vs 64,64`, `[32, 32] vs [64, 64]`: a row is one value where a list is taken."""
    signs = {words.at(place) for place in range(start, end)}
    rows = [
        place for place in range(start, stop) if words.at(place) in _OPENING and words.number(place + 1) is not None
    ]
    side_by_side = any(None not in (words.number(place), words.number(place + 1)) for place in range(start, end - 1))
    return side_by_side or len(rows) > 1 or ("," in signs and not signs.isdisjoint(("vs", "versus")))


def _adding_word(words: Words, mention: Mention) -> int | None:
    """Where `add lr 0.5` or `also try lr 0.5` begins."""
    place = mention.start - 1
    while words.at(place) in ("the", "a", "try", "test", "run"):
        place -= 1
    return place if words.at(place) in _ADDING else None


def _too(words: Words, place: int) -> int:
    """How many words `too` or `as well` takes behind values. Not where it goes on: `lr 0.5 too high`."""
    for phrase in (("too",), ("as", "well")):
        end = place + len(phrase)
        goes_on = end < len(words.tokens) and words.tokens[end].is_word and words.at(end) not in ("and", "or", "with")
        if words.matches(place, phrase) and not goes_on:
            return len(phrase)
    return 0


def _keep_bare(words: Words, mention: Mention, count: int | None, found: Varied) -> None:
    words.take(mention.start, mention.end)
    if _multiplied(words, mention, found) or _held(words, mention, found):
        return
    near = {words.at(index) for index in range(max(0, mention.start - 7), mention.start)}
    if count is None and not near & VARYING:
        found.named_only.append(mention.flag)
        return
    if mention.flag.choices and mention.flag.is_settable:
        return  # the rule for choices looks for their names
    if not mention.flag.is_settable:
        found.unsettable.append(mention.flag)
    elif mention.flag.name not in [flag.name for flag, _count in found.open]:
        found.open.append((mention.flag, count))
        found.lacking_from = mention.end


def _multiplied(words: Words, mention: Mention, found: Varied) -> bool:
    """`double the batch size`, `halve and double the batch size`: the default beside it."""
    place = mention.start - 1 - (words.at(mention.start - 1) in ("the", "our"))
    default = mention.flag.default
    if words.at(place) not in _FACTORS or not isinstance(default, int | float) or not default:
        return False
    factors = [_FACTORS[words.at(place)]]
    while words.at(place - 1) in ("and", "or", ",", "/") and words.at(place - 2) in _FACTORS:
        place -= 2
        factors.insert(0, _FACTORS[words.at(place)])
    words.take(place, mention.end)
    values = (default, *(default * factor for factor in factors))
    keep(mention.flag, values, "listed", words.shown(place, mention.end), found)
    return True


def _held(words: Words, mention: Mention, found: Varied) -> bool:
    """`with augmentation`: a switch that stays on. `without dropout`: one that stays off, or a number that is 0.

    `with --no-dropout`: off, too.
    """
    place = mention.start - 1 - (words.at(mention.start - 1) in ("the", "a", "any"))
    word, flag = words.at(place), mention.flag
    off = word in _WITHOUT and flag.type in ("bool", "int", "float")
    if not off and not (word in _WITH and flag.type == "bool"):
        return False
    words.take(place, mention.end)
    on = off if words.at(mention.start) in off_options(flag) else not off
    keep(flag, (on if flag.type == "bool" else 0,), "listed", words.shown(place, mention.end), found)
    return True


def _absent(words: Words) -> list[str]:
    """Parameters by their usual names that are no flags of this script."""
    found = []
    for phrase, name in known_elsewhere():
        for start in words.places(phrase):
            if all(words.is_free(index) for index in range(start, start + len(phrase))) and not divides(words, start):
                words.take(start, start + len(phrase))
                found.append(name)
    return list(dict.fromkeys(found))
