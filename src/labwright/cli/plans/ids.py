"""From what somebody typed to the id of a plan."""

from __future__ import annotations

from typing import Annotated

import typer

from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.ids import PLAN, is_id
from labwright.domain.plan import PlanStatus

PlanRef = Annotated[str, typer.Argument(metavar="PLAN", help="A plan's id or its beginning; @ before it is fine.")]


def plan_id_of(client: LabClient, reference: str) -> str:
    reference = reference.removeprefix("@")
    if is_id(reference, PLAN):
        return reference
    prefix = reference if reference.startswith(f"{PLAN}-") else f"{PLAN}-{reference}"
    found = [plan["id"] for plan in client.plans(",".join(PlanStatus)) if plan["id"].startswith(prefix)]
    if len(found) == 1:
        return str(found[0])
    if found:
        raise Invalid(f"{reference!r} is the beginning of more than one plan's id.", hint="Type more of it.")
    raise NotFound(f"There is no plan {reference}.", hint="List them with: labwright plan list --all")
