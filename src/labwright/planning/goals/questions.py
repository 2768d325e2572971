"""What to ask, three things at most, each with answers to choose from."""

from __future__ import annotations

import math
from difflib import get_close_matches

from labwright.planning.goals.facts import Question
from labwright.planning.goals.limits import Seeds
from labwright.planning.goals.metric_wish import Wanted
from labwright.planning.goals.script import Script
from labwright.planning.goals.spacing import MOST_VALUES, Wish, spaced
from labwright.planning.goals.synonyms import family_of, is_log_by_nature
from labwright.planning.goals.varied import Varied
from labwright.planning.scan import EntryPoint, Flag

MOST = 3
_SHARES = {"momentum", "gamma", "dropout"}


def about_script(script: Script) -> list[Question]:
    if script.missing:
        text = f"{script.why_missing} Which script is meant?"
        return [Question(about="script", text=text, suggestions=script.candidates)]
    if not script.candidates:
        return [Question(about="script", text="No script that can be started was found here. Which file trains?")]
    return [Question(about="script", text="Which script is this about?", suggestions=script.candidates)]


def about_variations(varied: Varied, entry: EntryPoint) -> list[Question]:
    found = [
        Question(about="values", text=text, suggestions=_suggested(flag), subject=flag.name)
        for flag, text in varied.unclear
    ]
    for flag, count in varied.open:
        text = f"Which values of {flag.name} are to be tried?"
        found.append(Question(about="values", text=text, suggestions=_suggested(flag, count), subject=flag.name))
    if not varied.variations and not varied.open and not varied.unclear:
        found.insert(0, _what_to_vary(varied, entry))
    return found


def _what_to_vary(varied: Varied, entry: EntryPoint) -> Question:
    flags = [
        flag for flag in entry.flags if flag.is_settable and flag.role is None and flag.type in ("int", "float", "bool")
    ]
    names = [flag.name for flag in (*varied.named_only, *flags) if flag in flags]
    fixed = list(varied.unsettable)
    if fixed:
        text = (
            f"{fixed[0].name} is fixed at {fixed[0].where} and cannot be set from outside. {_way_out(fixed[0], flags)}"
        )
    elif entry.flags and not any(flag.is_settable for flag in entry.flags):
        text = f"Nothing of {entry.path} can be set from outside. {_way_out(entry.flags[0], flags)}"
    elif varied.absent:
        text = f"{entry.path} has no flag for {varied.absent[0]}. What is to be varied?"
        names = [*get_close_matches(varied.absent[0], names, n=2), *names]
    else:
        text = f"What is to be varied in {entry.path}, and over which values?"
    known = {flag.name: flag for flag in flags}
    suggestions = [f"{name} {answers[0]}" for name in dict.fromkeys(names) if (answers := _suggested(known[name]))]
    missing = [*(flag.name for flag in fixed), *varied.absent, ""]
    return Question(about="vary", text=text, suggestions=tuple(suggestions[:4]), subject=missing[0])


def _way_out(fixed: Flag, others: list[Flag]) -> str:
    """Planning changes no code, so the person has to; an answer has the project read anew."""
    name, kind = fixed.name.lower().replace("_", "-"), fixed.type if fixed.type in ("int", "float") else "str"
    flag = f'parser.add_argument("--{name}", type={kind}, default={fixed.default!r})'
    instead = " What else is to be varied?" if others else ""
    return f"Make it a flag there, such as {flag}, and answer with the values to try.{instead}"


def _suggested(flag: Flag, count: int | None = None) -> tuple[str, ...]:
    """Values around the default, written so that the answer can be read like a goal."""
    if flag.type == "bool":
        return ("on and off",)
    if flag.choices:
        return (", ".join(str(choice) for choice in flag.choices),)
    default = flag.default
    if not isinstance(default, int | float) or not math.isfinite(default) or default == 0:
        if flag.type != "float":
            return ()
        return ("0, 0.0001, 0.001, 0.01",) if is_log_by_nature(flag) else ("0, 0.1, 0.5",)
    if is_log_by_nature(flag) and flag.type == "float":
        values, _scale = spaced(
            default / 10, default * 10, whole=False, by_nature_log=True, wish=Wish(count=count or 3)
        )
        return (_listed(values), _listed([default / 100, default / 10, default, default * 10]))
    if family_of(flag.name) in _SHARES and 0.5 < default < 1:  # twice as much is none
        return (_listed([default / 2, default, (1 + default) / 2]),)
    whole = flag.type == "int"
    low = max(1, default // 2) if whole else default / 2
    return (_listed(list(dict.fromkeys([low, default, default * 2]))),)


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


def about_metric(wanted: Wanted, entry: EntryPoint) -> list[Question]:
    if wanted.goal:
        return []
    names = tuple(wanted.ambiguous or [metric.name for metric in entry.metrics[:5]])
    if wanted.ambiguous:
        return [Question(about="metric", text="Which of these decides?", suggestions=names)]
    if wanted.absent:
        text = f"{entry.path} does not seem to report {wanted.absent[0]}. By which metric are the runs to be compared?"
    elif names:
        text = "By which metric are the runs to be compared?"
    else:
        text = (
            f"No metric was seen in {entry.path}. What does it print or log that decides, and is more or less better?"
        )
    return [Question(about="metric", text=text, suggestions=names)]


def about_seeds(seeds: Seeds) -> list[Question]:
    if not seeds.too_many:
        return []
    text = f"{seeds.too_many:,} seeds are asked for, and a plan takes {MOST_VALUES} at most. How many are they to be?"
    return [Question(about="seeds", text=text, suggestions=("3 seeds", "5 seeds", "10 seeds"))]
