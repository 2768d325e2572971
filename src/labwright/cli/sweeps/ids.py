"""Which sweep somebody means."""

from __future__ import annotations

from typing import Annotated

import typer

from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.ids import SWEEP, is_id

SweepRef = Annotated[str, typer.Argument(metavar="SWEEP", help="A sweep's id, its beginning, its name, or `last`.")]


def sweep_id_of(client: LabClient, reference: str) -> str:
    """By id, the beginning of one, name, or `last`; of several by one name the newest."""
    if is_id(reference, SWEEP):
        return reference
    found = client.sweeps()
    prefix = reference if reference.startswith(f"{SWEEP}-") else f"{SWEEP}-{reference}"
    begins = [sweep["id"] for sweep in found if sweep["id"].startswith(prefix)]
    named = [sweep["id"] for sweep in found if sweep["name"] == reference or reference == "last"]
    if named or len(begins) == 1:
        return str((named or begins)[0])
    if begins:
        raise Invalid(f"{reference!r} is the beginning of more than one sweep's id.", hint="Type more of it.")
    raise NotFound(f"There is no sweep {reference}.", hint="List them with: labwright sweeps")
