"""`events`: the stored stream of what happened and who did it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labwright.cli.formatting import clock_time, one_line, size
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.runs.view import status_cell
from labwright.cli.screen import Cell, Screen, note
from labwright.client.follow import follow_events, last_position
from labwright.domain.event import EventType

Json = dict[str, Any]
_OWN_FRAMES = ("hello", "reset")
# Of an event's facts those that tell a person something, in the order in which they are read.
_TELLING = (
    "name", "title", "text", "node", "step", "number", "question", "type", "url", "status", "message", "answer",
)  # fmt: skip


def events(
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as things happen.")] = False,
    limit: Annotated[int, typer.Option("-n", min=0, max=5000, metavar="N", help="How many of the newest.")] = 30,
    run: Annotated[str | None, typer.Option(metavar="RUN", help="Only of this run.")] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    screen, client = Screen(as_json=as_json), connect(project)
    run_id = client.run(run)["id"] if run else None
    last = last_position(client)
    # One run's events may lie anywhere in the stream, so all of its own are asked for.
    recent = client.events(0 if run_id else max(0, last - limit), 5000, run_id)[-limit:] if limit else []
    if as_json and not follow:
        screen.json(recent)
        return
    for event in recent:
        _show(screen, event)
    if follow:
        for frame in follow_events(client, {"after": last, "run_id": run_id}, note):
            if frame.event not in _OWN_FRAMES:
                _show(screen, frame.data)
    elif not recent:
        screen.say("Nothing has happened yet. Start a run: labwright run -- python train.py")


def _show(screen: Screen, event: Json) -> None:
    if screen.as_json:
        screen.json_line(event)
        return
    when, by = clock_time(event["time"]), f"  ({event['actor']})"
    line = f"{event['type']:<15} ", (f"{_subject(event):<16} ", "bold"), *_words(event)
    screen.say((f"{when}  ", "dim"), *line, (by, "dim"))


def _subject(event: Json) -> str:
    """What it is about: a run before all else, then what the type names, as the plan of `plan.node`."""
    kind = event["type"].partition(".")[0]
    return event["run_id"] or event["data"].get(f"{kind}_id") or event["sweep_id"] or ""


def _words(event: Json) -> list[Cell]:
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
    return [" · ".join(one_line(str(data[name])) for name in _TELLING if data.get(name))]
