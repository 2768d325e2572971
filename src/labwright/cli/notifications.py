"""`notifications`: where news goes, and what became of it."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from labwright.cli.formatting import ago
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.screen import Cell, Column, Screen
from labwright.client.lab import LabClient

Json = dict[str, Any]
_STYLES = {"delivered": "green", "waiting": "amber", "given_up": "red"}
_PATIENCE_SECONDS = 15.0
_LOOK_SECONDS = 0.1


def notifications(
    test: Annotated[
        bool, typer.Option("--test", help="Send a message to every channel and see whether it arrives.")
    ] = False,
    limit: Annotated[int, typer.Option("-n", min=0, max=1000, metavar="N", help="How many deliveries.")] = 10,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Channels are [[notify]] tables in labwright.toml. Addresses are not shown, only their host."""
    screen, client = Screen(as_json=as_json), connect(project)
    if test:
        _test(screen, client)
        return
    found = client.notifications(limit)
    if as_json:
        screen.json(found)
    elif not found["channels"]:
        screen.say("No channels. Add a [[notify]] table to labwright.toml, then labwright down and labwright up -d.")
    else:
        _channels(screen, found["channels"])
        if found["deliveries"]:
            screen.heading("Deliveries")
            _deliveries(screen, found["deliveries"])
        screen.next("Try them: labwright notifications --test")


def _test(screen: Screen, client: LabClient) -> None:
    sent = set(client.test_notifications())
    with screen.working("waiting for an answer"):
        found = _tried(client, sent)
    if screen.as_json:
        screen.json(found)
    else:
        _deliveries(screen, found)
    if any(delivery["status"] != "delivered" for delivery in found):
        raise typer.Exit(1)


def _tried(client: LabClient, sent: set[int]) -> list[Json]:
    """Each as it is after its first try, or as far as it got."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        found = [one for one in client.notifications(1000)["deliveries"] if one["id"] in sent]
        if all(one["attempts"] or one["status"] == "given_up" for one in found) or time.monotonic() > deadline:
            return found[::-1]
        time.sleep(_LOOK_SECONDS)


def _channels(screen: Screen, channels: list[Json]) -> None:
    columns = [
        Column(title="channel"),
        Column(title="to", shrinks=True),
        Column(title="of", shrinks=True),
        Column(title=""),
    ]
    screen.table(columns, [_channel_row(channel) for channel in channels])


def _channel_row(channel: Json) -> list[Cell]:
    events = [
        f"alerts ≥ {channel['min_severity']}" if name == "alert" else name.replace("_", " ")
        for name in channel["events"]
    ]
    state: Cell = (f"{channel['waiting']} waiting", "amber") if channel["waiting"] else ("ok", "green")
    return [
        channel["name"],
        channel["target"],
        ", ".join(events),
        (channel["problem"], "red") if channel["problem"] else state,
    ]


def _deliveries(screen: Screen, deliveries: list[Json]) -> None:
    columns = [
        Column(title="when", right=True),
        Column(title="channel"),
        Column(title="status"),
        Column(title="tries", right=True),
        Column(title="message", shrinks=True),
        Column(title="run"),
        Column(title="error", shrinks=True),
    ]
    screen.table(columns, [_row(delivery) for delivery in deliveries])


def _row(delivery: Json) -> list[Cell]:
    status = delivery["status"]
    return [
        (ago(delivery["created_at"]), "dim"),
        delivery["channel"],
        (status.replace("_", " "), _STYLES[status]),
        str(delivery["attempts"]),
        delivery["title"],
        delivery["run_id"] or "",
        (delivery["error"], "dim"),
    ]
