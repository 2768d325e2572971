"""Waiting: ends the turn, and the next begins when it has happened. No model is asked in between."""

from __future__ import annotations

from labwright.agent.tools.tool import Deed, Json, Tool, Waits, several, text, yes_or_no
from labwright.domain.errors import Invalid
from labwright.domain.session import Wait
from labwright.services.runs import verbs as runs
from labwright.store import sweeps


def wait_for(
    deed: Deed,
    run_ids: list[str] | None = None,
    sweep: str | None = None,
    any_of_them: bool = False,
    note: str = "",
) -> Json:
    if bool(run_ids) == bool(sweep):
        raise Invalid("Say what to wait for: either runs or a sweep.", hint="run_ids, or sweep.")
    found = tuple(dict.fromkeys(runs.find(deed.lab, run).id for run in run_ids or ()))
    if sweep:
        sweeps.get(deed.lab.db.reader(), sweep)
    wait = Wait(run_ids=found, sweep_id=sweep, any_of_them=any_of_them, note=note[:1000])
    raise Waits(wait, {"waiting": True, **wait.to_dict()})


TOOLS = (
    Tool(
        name="wait_for",
        description=(
            "End the turn and be woken when runs have ended or a sweep is done. Use it instead of looking again and "
            "again; it costs nothing while it waits."
        ),
        do=wait_for,
        takes={
            "run_ids": several("runs that have to end"),
            "sweep": text("or a sweep that has to be done"),
            "any_of_them": yes_or_no("wake at the first of the runs"),
            "note": text("what is to be done then"),
        },
    ),
)
