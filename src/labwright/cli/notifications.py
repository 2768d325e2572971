"""`notifications`: the channels for messages, and their deliveries."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from labwright.cli.command import with_client
from labwright.cli.formatting import ago
from labwright.cli.screen import Cell, Column, Screen
from labwright.client.lab import LabClient

Json = dict[str, Any]
_STYLES = {"delivered": "green", "waiting": "yellow", "given_up": "red"}
_TEST_SECONDS = 15.0
_POLL_SECONDS = 0.1


def _events(channel: Json) -> str:
    severity = f"alerts ≥ {channel['min_severity']}"
    return ", ".join(severity if name == "alert" else name.replace("_", " ") for name in channel["events"])


def _state(channel: Json) -> Cell:
    if channel["problem"]:
        return channel["problem"], "red"
    return (f"{channel['waiting']} waiting", "yellow") if channel["waiting"] else ("ok", "green")


_CHANNEL_COLUMNS = [
    Column("channel", "name"),
    Column("to", "target", shrinks=True),
    Column("events", _events, shrinks=True),
    Column("status", _state, shrinks=True),
]
_DELIVERY_COLUMNS = [
    Column("when", lambda delivery: ago(delivery["created_at"]), style="dim", right=True),
    Column("channel", "channel", shrinks=True),
    Column("status", lambda delivery: (delivery["status"].replace("_", " "), _STYLES[delivery["status"]])),
    Column("tries", lambda delivery: str(delivery["attempts"]), right=True),
    Column("message", "title", shrinks=True),
    Column("run", lambda delivery: delivery["run_id"] or "", optional=True),
    Column("error", "error", style="dim", shrinks=True, optional=True),
]


@with_client
def notifications(
    screen: Screen,
    client: LabClient,
    test: Annotated[
        bool, typer.Option("--test", help="Send a message to every channel and check whether it arrives.")
    ] = False,
    limit: Annotated[int, typer.Option("-n", min=0, max=1000, metavar="N", help="List at most N deliveries.")] = 10,
) -> None:
    """Channels are [[notify]] tables in labwright.toml. Only the host of an address is shown."""
    if test:
        _test(screen, client)
        return
    found = client.notifications(limit)
    if screen.as_json:
        screen.json(found)
    elif not found["channels"]:
        screen.paragraph(
            "No channels. Add a [[notify]] table to labwright.toml, then run labwright down, labwright up -d."
        )
    else:
        screen.table(_CHANNEL_COLUMNS, found["channels"])
        if found["deliveries"]:
            screen.heading("Deliveries")
            screen.table(_DELIVERY_COLUMNS, found["deliveries"])
        screen.suggest("Test the channels: labwright notifications --test")


def _test(screen: Screen, client: LabClient) -> None:
    sent = set(client.test_notifications())
    with screen.working("waiting for the deliveries"):
        found = _first_tries(client, sent)
    screen.listing(found, _DELIVERY_COLUMNS, empty="No channels.")
    if any(delivery["status"] != "delivered" for delivery in found):
        raise typer.Exit(1)


def _first_tries(client: LabClient, sent: set[int]) -> list[Json]:
    """Return the deliveries after their first try, or as they are after the time limit."""
    deadline = time.monotonic() + _TEST_SECONDS
    while True:
        found = [one for one in client.notifications(1000)["deliveries"] if one["id"] in sent]
        if all(one["attempts"] or one["status"] == "given_up" for one in found) or time.monotonic() > deadline:
            return found[::-1]
        time.sleep(_POLL_SECONDS)
