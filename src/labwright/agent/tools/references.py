"""Find a sweep, a plan or a wild loop by its id, the beginning of it, its name, or `last`. Runs have `runs.find`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from labwright.compute.lab import Lab
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.ids import PLAN, SWEEP, WILD, is_id
from labwright.domain.plan import PlanStatus
from labwright.store import plans, sweeps, wild

_LAST = "last"
_NEWEST = 1000  # names and beginnings are looked up among these

Named = Iterable[tuple[str, str]]  # id and name, newest first


def sweep_id(lab: Lab, reference: str) -> str:
    def named() -> Named:
        return [(sweep.id, sweep.name) for sweep in sweeps.page(lab.db.reader(), _NEWEST, None)[0]]

    return _find(reference, named, SWEEP, "sweep", "List sweeps with list_sweeps.")


def plan_id(lab: Lab, reference: str) -> str:
    def named() -> Named:
        return [(plan.id, plan.title) for plan in plans.page(lab.db.reader(), PlanStatus, None, _NEWEST, None)[0]]

    return _find(reference.removeprefix("@"), named, PLAN, "plan", "List plans with list_plans.")


def wild_id(lab: Lab, reference: str) -> str:
    def named() -> Named:
        return [(loop.id, loop.goal) for loop in wild.page(lab.db.reader(), _NEWEST, None)[0]]

    return _find(reference, named, WILD, "wild loop", "List wild loops with list_wild.")


def _find(reference: str, named: Callable[[], Named], kind: str, noun: str, hint: str) -> str:
    """A whole id comes before a name, and a name before the beginning of an id. Of equal names the newest counts."""
    prefix = reference if reference.startswith(f"{kind}-") else f"{kind}-{reference}"
    if is_id(prefix, kind):
        return prefix  # whether it exists is checked by whatever reads it
    known = dict(named())
    if reference == _LAST and known:
        return next(iter(known))
    if found := [one for one, name in known.items() if name == reference]:
        return found[0]
    starts = [one for one in known if reference and one.startswith(prefix)]
    if len(starts) > 1:
        raise Invalid(f"{reference!r} is the beginning of more than one {noun} id.", hint="Write more of it.")
    if not starts:
        raise NotFound(f"There is no {noun} {reference!r}.", hint=hint)
    return starts[0]
