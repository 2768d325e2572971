"""List, show and answer alerts."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labwright.cli.command import group, with_client
from labwright.cli.formatting import ago, moment, one_line, shorten
from labwright.cli.references import AlertRef, alert_id_of
from labwright.cli.screen import Cell, Column, Screen
from labwright.client.lab import LabClient
from labwright.domain.alert import AlertStatus, Severity

Json = dict[str, Any]
_STYLES = {Severity.INFO: "blue", Severity.WARNING: "yellow", Severity.CRITICAL: "red"}
_MESSAGE = 200  # longer messages are shown by `alerts show`

alerts = group()


def _severity(alert: Json) -> Cell:
    return alert["severity"], _STYLES[Severity(alert["severity"])]


def _message(alert: Json) -> str:
    return shorten(one_line(alert["message"]), _MESSAGE)


def _choices(alert: Json) -> str:
    return f"answered: {alert['answer']}" if alert["answer"] else " / ".join(alert["choices"])


_COLUMNS = [
    Column("alert", "id"),
    Column("severity", _severity),
    Column("about", lambda alert: alert["run_id"] or alert["sweep_id"] or alert["wild_id"] or ""),
    Column("raised", lambda alert: ago(alert["created_at"]), style="dim", right=True),
    Column("choices", _choices, shrinks=True, min_width=110),
    Column("message", _message, shrinks=True),
]


@alerts.callback(invoke_without_command=True)
@with_client
def list_alerts(
    screen: Screen,
    client: LabClient,
    everything: Annotated[bool, typer.Option("--all", help="List answered alerts too.")] = False,
) -> None:
    screen.listing(
        client.alerts(None if everything else AlertStatus.PENDING),
        _COLUMNS,
        empty="No alerts." if everything else "No open alerts.",
        then="Details: labwright alerts show ALERT · Answer: labwright alerts answer ALERT CHOICE",
    )


@alerts.command("show")
@with_client
def show(screen: Screen, client: LabClient, alert: AlertRef) -> None:
    """Show one alert in full."""
    found = client.alert(alert_id_of(client, alert))
    screen.result(found, lambda _: _show(screen, found))


def _show(screen: Screen, alert: Json) -> None:
    answer = "none yet" if alert["choices"] else ""
    if alert["answer"]:
        answer = f"{alert['answer']}, by {alert['answered_by']}, {ago(alert['answered_at'])}"
    screen.facts(
        [
            ("alert", (alert["id"], "bold")),
            ("severity", _severity(alert)),
            ("run", alert["run_id"] or ""),
            ("sweep", alert["sweep_id"] or ""),
            ("loop", alert["wild_id"] or ""),
            ("rule", alert["rule"]),
            ("raised", moment(alert["created_at"])),
            ("choices", ", ".join(alert["choices"])),
            ("answer", answer),
        ]
    )
    screen.heading("Message")
    screen.paragraph(alert["message"])
    if alert["status"] == AlertStatus.PENDING and alert["choices"]:
        screen.suggest(f"Answer it: labwright alerts answer {alert['id']} {alert['choices'][0]}")


@alerts.command("answer")
@with_client
def answer(
    screen: Screen,
    client: LabClient,
    alert: AlertRef,
    choice: Annotated[
        str, typer.Argument(metavar="CHOICE", help="One of its choices. `stop` and `rerun` act on the run.")
    ],
) -> None:
    """Answer an alert."""
    answered = client.answer_alert(alert_id_of(client, alert), choice)
    screen.result(
        answered, lambda _: screen.item(answered["id"], f"answered: {answered['answer']}  ({_message(answered)})")
    )
