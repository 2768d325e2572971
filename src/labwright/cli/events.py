"""`events`: the log of what happened and who did it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labwright.cli.command import with_client
from labwright.cli.formatting import clock_time, one_line, shorten, size, width
from labwright.cli.runs.view import status_cell
from labwright.cli.screen import Cell, Screen, note, split
from labwright.client.follow import OPENED, follow_events, last_position
from labwright.client.lab import LabClient
from labwright.domain.event import EventType

Json = dict[str, Any]
_NARROWEST = 20
# The fields of an event that are shown, in this order.
_SHOWN_FIELDS = (
    "name", "title", "text", "node", "step", "number", "question", "type", "url", "status", "message", "answer",
)  # fmt: skip


@with_client
def events(
    screen: Screen,
    client: LabClient,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Show new events as they happen.")] = False,
    limit: Annotated[int, typer.Option("-n", min=0, max=5000, metavar="N", help="Show the newest N events.")] = 30,
    run: Annotated[str | None, typer.Option(metavar="RUN", help="Only events of this run.")] = None,
) -> None:
    run_id = client.run(run)["id"] if run else None
    last = last_position(client)
    # The events of one run may be anywhere in the log, so all of them are requested.
    recent = client.events(0 if run_id else max(0, last - limit), 5000, run_id)[-limit:] if limit else []
    if screen.as_json and not follow:
        screen.json(recent)
        return
    for event in recent:
        _show(screen, event)
    if follow:
        for frame in follow_events(client, {"after": last, "run_id": run_id}, note):
            if frame.event not in OPENED:
                _show(screen, frame.data)
    elif not recent:
        screen.print("No events yet. Start a run: labwright run -- python train.py")


def _show(screen: Screen, event: Json) -> None:
    if screen.as_json:
        screen.json_line(event)
        return
    when, by = clock_time(event["time"]), f"  ({event['actor']})"
    head = f"{event['type']:<15} ", f"{_subject(event):<16} "
    details = _details(event)
    if screen.is_terminal:  # one line per event
        when = when[5:]  # without the year
        room = screen.columns - width(f"{when}  {''.join(head)}{by}")
        details = _fitted(details, max(_NARROWEST, room))
    screen.print((f"{when}  ", "dim"), head[0], (head[1], "bold"), *details, (by, "dim"))


def _fitted(cells: list[Cell], room: int) -> list[Cell]:
    """Cut cells to the room in columns."""
    fitted: list[Cell] = []
    for text, style in map(split, cells):
        if room > 0:
            fitted.append((shorten(text, room), style))
        room -= width(text)
    return fitted


def _subject(event: Json) -> str:
    """Return the id of the run, or of what the type names, such as the plan of `plan.node`."""
    kind = event["type"].partition(".")[0]
    return event["run_id"] or event["data"].get(f"{kind}_id") or event["sweep_id"] or ""


def _details(event: Json) -> list[Cell]:
    data = event["data"]
    if "to" in data:
        to = status_cell(data["to"]) if event["type"] == EventType.RUN_STATUS else data["to"]
        code = f", exit {data['exit_code']}" if data.get("exit_code") else ""
        why = f": {one_line(data['reason'])}" if data.get("reason") else ""
        return [f"{data['from']} → ", to, f"{code}{why}"]
    if "changed" in data:
        version = f", version {data['version']}" if "version" in data else ""
        return [f"changed: {', '.join(data['changed'])}{version}"]
    if "freed_bytes" in data:
        return [f"freed {size(data['freed_bytes'])}"]
    return [" · ".join(one_line(str(data[name])) for name in _SHOWN_FIELDS if data.get(name))]
