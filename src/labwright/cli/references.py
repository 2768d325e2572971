"""Resolve what a user typed, such as a name, the start of an id or `last`, to an id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.ids import ALERT, PLAN, SESSION, SWEEP, WILD, is_id
from labwright.domain.plan import PlanStatus

Json = dict[str, Any]

RunRef = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, the start of it, its name, or `last`.")]
LastRun = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run's id, the start of it, its name, or `last`.", show_default=False),
]
RunRefs = Annotated[list[str], typer.Argument(metavar="RUN", help="Ids, starts of ids, names, or `last`.")]
SweepRef = Annotated[str, typer.Argument(metavar="SWEEP", help="A sweep's id, the start of it, its name, or `last`.")]
PlanRef = Annotated[
    str, typer.Argument(metavar="PLAN", help="A plan's id, the start of it, its title, or `last`. May start with @.")
]
WildRef = Annotated[str, typer.Argument(metavar="LOOP", help="A loop's id, the start of it, or `last`.")]
SessionRef = Annotated[
    str, typer.Argument(metavar="SESSION", help="A session's id, the start of it, or `last` (the last one used).")
]
AlertRef = Annotated[str, typer.Argument(metavar="ALERT", help="An alert's id, the start of it, or `last`.")]


def runs_of(client: LabClient, references: list[str]) -> list[Json]:
    """Resolve all runs before anything is done with one of them. Each run is returned once."""
    return list({run["id"]: run for run in map(client.run, references)}.values())


def sweep_id_of(client: LabClient, reference: str) -> str:
    return _resolve(reference, SWEEP, client.sweeps, "sweep", "labwright sweeps", name="name")


def plan_id_of(client: LabClient, reference: str) -> str:
    def plans() -> list[Json]:
        return client.plans(",".join(PlanStatus))

    return _resolve(reference.removeprefix("@"), PLAN, plans, "plan", "labwright plan list --all", name="title")


def wild_id_of(client: LabClient, reference: str) -> str:
    return _resolve(reference, WILD, client.wilds, "wild loop", "labwright wild list")


def session_id_of(client: LabClient, reference: str) -> str:
    def sessions() -> list[Json]:
        return sorted(client.sessions(), key=lambda session: str(session["updated_at"]), reverse=True)

    return _resolve(reference, SESSION, sessions, "conversation", "labwright sessions")


def alert_id_of(client: LabClient, reference: str) -> str:
    return _resolve(reference, ALERT, lambda: client.alerts(None), "alert", "labwright alerts --all")


def _resolve(
    reference: str, kind: str, newest_first: Callable[[], list[Json]], noun: str, list_command: str, name: str = ""
) -> str:
    """Return the id. If several items have the name, the newest one is meant."""
    if is_id(reference, kind):
        return reference
    items = newest_first()
    for item in items:
        if reference == "last" or (name and item[name] == reference):
            return str(item["id"])
    prefix = reference if reference.startswith(f"{kind}-") else f"{kind}-{reference}"
    found = [str(item["id"]) for item in items if item["id"].startswith(prefix)]
    if not found:
        raise NotFound(f"There is no {noun} {reference}.", hint=f"List them with: {list_command}")
    if len(found) > 1:
        raise Invalid(f"{reference!r} is the start of more than one {noun} id.", hint="Type more of it.")
    return found[0]
