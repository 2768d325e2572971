"""The questions about a goal: three at most, each with answers to choose from, the best one first."""

from __future__ import annotations

import math
from difflib import get_close_matches

from labwright.planning.goals.facts import Question
from labwright.planning.goals.limits import Seeds
from labwright.planning.goals.metric import MetricReading
from labwright.planning.goals.names import family_of, is_log_scaled
from labwright.planning.goals.parameters import Parameters
from labwright.planning.goals.script import ScriptReading
from labwright.planning.goals.values import MOST_VALUES, Division, spaced
from labwright.planning.scan import EntryPoint, Flag

MOST = 3
_SHARES = {"momentum", "gamma", "dropout"}  # numbers below 1


def about_script(script: ScriptReading) -> Question:
    if script.is_two:
        text = "The goal compares two scripts. Rules plan one script at a time: which one should it be?"
    elif script.missing:
        text = f"{script.why_missing} Which script do you mean?"
    elif not script.candidates:
        text = "No script that can be started was found in this project. Which file trains?"
    else:
        text = "Which script is this about?"
    return Question(about="script", text=text, suggestions=script.candidates)


def about_parameters(parameters: Parameters, entry: EntryPoint) -> list[Question]:
    asked = [
        Question(
            about="values",
            text=unclear.text,
            suggestions=unclear.suggestions or _values(unclear.flag),
            subject=unclear.flag.name,
        )
        for unclear in parameters.unclear
    ]
    for flag, count in parameters.open:
        text = f"Which values of {flag.name} should be tried?"
        asked.append(Question(about="values", text=text, suggestions=_values(flag, count), subject=flag.name))
    return asked if asked or parameters.variations else [_what_to_vary(parameters, entry)]


def _what_to_vary(parameters: Parameters, entry: EntryPoint) -> Question:
    flags = {
        flag.name: flag
        for flag in entry.flags
        if flag.is_settable and flag.role is None and flag.type in ("int", "float", "bool")
    }
    names = [*(flag.name for flag in parameters.named_only if flag.name in flags), *flags]
    fixed = parameters.unsettable[:1]
    if not fixed and entry.flags and not any(flag.is_settable for flag in entry.flags):
        fixed = [entry.flags[0]]
    if fixed:
        # Planning does not change code, so the user has to add the flag. The next answer reads the project again.
        flag, kind = fixed[0], fixed[0].type if fixed[0].type in ("int", "float") else "str"
        option = flag.name.lower().replace("_", "-")
        line = f'parser.add_argument("--{option}", type={kind}, default={flag.default!r})'
        text = (
            f"{flag.name} is fixed at {flag.where or entry.path}; it cannot be set from outside. "
            f"Make it a flag there, such as {line}, then answer with the values to try."
            f"{' What else should be varied?' if flags else ''}"
        )
    elif parameters.missing:
        text = f"{entry.path} has no flag for {parameters.missing[0]}. What should be varied?"
        names = [*get_close_matches(parameters.missing[0], names, n=2), *names]
    else:
        text = f"What should be varied in {entry.path}, and over which values?"
    suggestions = [f"{name} {values[0]}" for name in dict.fromkeys(names) if (values := _values(flags[name]))]
    requested = [*(flag.name for flag in parameters.unsettable), *parameters.missing, ""]
    return Question(about="vary", text=text, suggestions=tuple(suggestions[:4]), subject=requested[0])


def _values(flag: Flag, count: int | None = None) -> tuple[str, ...]:
    """Return values around the default, written so that an answer can repeat them."""
    if not flag.name:
        return ()
    if flag.type == "bool":
        return ("on and off",)
    if flag.choices:
        return (", ".join(str(choice) for choice in flag.choices),)
    default = flag.default
    if not isinstance(default, int | float) or not math.isfinite(default) or default == 0:
        if flag.type != "float":
            return ()
        return ("0, 0.0001, 0.001, 0.01",) if is_log_scaled(flag) else ("0, 0.1, 0.5",)
    if is_log_scaled(flag) and flag.type == "float":
        values, _scale = spaced(default / 10, default * 10, Division(count=count or 3), whole=False, log=True)
        return (_listed(values), _listed([default / 100, default / 10, default, default * 10]))
    if family_of(flag.name) in _SHARES and 0.5 < default < 1:
        return (_listed([default / 2, default, (1 + default) / 2]),)
    low = max(1, default // 2) if flag.type == "int" else default / 2
    return (_listed(list(dict.fromkeys([low, default, default * 2]))),)


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


def about_metric(reading: MetricReading, entry: EntryPoint) -> list[Question]:
    if reading.goal:
        return []
    names = tuple(reading.ambiguous or [metric.name for metric in entry.metrics[:5]])
    if reading.ambiguous and not reading.missing:
        text = "Which of these metrics decides?"
    elif reading.missing:
        text = f"{entry.path} does not seem to report {reading.missing[0]}. Which metric should rank the runs?"
    elif names:
        text = "Which metric should rank the runs?"
    else:
        text = f"No metric was found in {entry.path}. What does it print or log that decides, and is higher better?"
    return [Question(about="metric", text=text, suggestions=names)]


def about_seeds(seeds: Seeds) -> list[Question]:
    if not seeds.too_many:
        return []
    text = f"The goal requests {seeds.too_many:,} seeds; a plan takes at most {MOST_VALUES}. How many should it be?"
    return [Question(about="seeds", text=text, suggestions=("3 seeds", "5 seeds", "10 seeds"))]
