"""Goals that vary nothing but the seeds: `run train.py 10 times`, `reproduce lr=0.1 with 3 seeds`."""

from __future__ import annotations

from typing import Any

from labwright.planning.goals.facts import Variation
from labwright.planning.goals.limits import Seeds
from labwright.planning.goals.varied import Varied
from labwright.planning.goals.words import Words
from labwright.planning.scan import EntryPoint, Role

_AGAIN = ("reproduc", "replicat", "repeat", "rerun", "re-run", "variance", "noise", "noisy", "stability")
_ALONE = {"only", "just", "but", "except"}  # vary only the seeds
_SEARCHING = {
    "vary", "varying", "sweep", "tune", "tuning", "tuned", "search", "explore", "best", "better", "improve", "optimal",
    "optimize", "optimise", "compare", "comparing", "ablate", "ablation", "which", "settings", "configurations",
    "hyperparameters", "each", "every", "maximize", "minimize",
}  # fmt: skip


def repeats_one(words: Words) -> bool:
    """Whether one configuration is to be run again and again. Words that look for a better one say otherwise."""
    seeds = [index for index, token in enumerate(words.tokens) if token.text in ("seed", "seeds")]
    before = {words.at(index - 1 - (words.at(index - 1) == "the")) for index in seeds}
    if before & _ALONE:
        return True
    spoken = {token.text for token in words.tokens}
    again = any(token.text.startswith(_AGAIN) for token in words.unread())  # a flag may be called noise
    return (again or "times" in spoken or "different" in before) and not spoken & _SEARCHING


def held_value(entry: EntryPoint, varied: Varied, seeds: Seeds) -> Variation | None:
    """The one configuration as a grid of one value: one that the goal fixes, else one that the script has itself."""
    unclear = varied.variations or varied.open or varied.unclear or varied.absent or varied.unsettable
    if unclear or len(seeds.values) < 2 or not entry.flags_for(Role.SEED):
        return None
    own: dict[str, Any] = {flag.name: flag.default for flag in entry.flags if flag.is_settable and flag.role is None}
    fixed = {name: value for name, value in varied.fixed.items() if name in own}
    values = {name: value for name, value in (fixed or own).items() if value is not None}
    name = next(iter(values), None)
    return None if name is None else Variation(flag=name, values=(values[name],), note="held: only the seeds vary")
