"""Alerts: what a run or Labwright wants somebody to know or to decide."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labwright.cli.formatting import ago, clock_time, one_line, shorten
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.screen import Cell, Column, Screen
from labwright.client.lab import LabClient
from labwright.domain.alert import AlertStatus, Severity
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.ids import ALERT, is_id

Json = dict[str, Any]
_STYLES = {Severity.INFO: "blue", Severity.WARNING: "amber", Severity.CRITICAL: "red"}

_WIDE = 110
_MESSAGE = 200  # also in a pipe: the whole of it is in `show`

AlertRef = Annotated[str, typer.Argument(metavar="ALERT", help="The alert's id or its beginning.")]

alerts = typer.Typer(rich_markup_mode=None, add_completion=False)


@alerts.callback(invoke_without_command=True)
def list_alerts(
    context: typer.Context,
    resolved_too: Annotated[bool, typer.Option("--all", help="Answered ones too.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    screen = Screen(as_json=as_json)
    found = connect(project).alerts(None if resolved_too else AlertStatus.PENDING)
    if as_json:
        screen.json(found)
    elif not found:
        screen.say("No alerts." if resolved_too else "No open alerts.")
    else:
        _table(screen, found)
        screen.next("One of them whole: labwright alerts show ALERT · answer: labwright alerts answer ALERT CHOICE")


def _table(screen: Screen, found: list[Json]) -> None:
    """A narrow terminal has room for what happened, not for what to answer: that is in `show`."""
    with_choices = not screen.is_terminal or screen.columns >= _WIDE
    columns = [
        Column(title="alert"),
        Column(title="severity"),
        Column(title="about"),
        Column(title="raised", right=True),
        *([Column(title="choices", shrinks=True)] if with_choices else []),
        Column(title="message", shrinks=True),
    ]
    screen.table(columns, [_row(alert, with_choices) for alert in found])


def _row(alert: Json, with_choices: bool) -> list[Cell]:
    severity = (alert["severity"], _STYLES[Severity(alert["severity"])])
    answer = f"answered: {alert['answer']}" if alert["answer"] else " / ".join(alert["choices"])
    about = alert["run_id"] or alert["sweep_id"] or alert["wild_id"] or ""
    raised = (ago(alert["created_at"]), "dim")
    return [alert["id"], severity, about, raised, *([answer] if with_choices else []), _message(alert)]


def _message(alert: Json) -> str:
    return shorten(one_line(alert["message"]), _MESSAGE)


@alerts.command("show")
def show(alert: AlertRef, project: Project = None, as_json: AsJson = False) -> None:
    """One alert in full."""
    screen, client = Screen(as_json=as_json), connect(project)
    found = client.alert(_id_of(client, alert))
    if as_json:
        screen.json(found)
        return
    screen.facts(
        [
            ("alert", (found["id"], "bold")),
            ("severity", (found["severity"], _STYLES[Severity(found["severity"])])),
            ("run", found["run_id"] or ""),
            ("sweep", found["sweep_id"] or ""),
            ("loop", found["wild_id"] or ""),
            ("rule", found["rule"]),
            ("raised", f"{clock_time(found['created_at'])}  ({ago(found['created_at'])})"),
            ("choices", ", ".join(found["choices"])),
            ("answer", _answer_words(found)),
        ]
    )
    screen.heading("Message")
    screen.prose(found["message"])
    if found["status"] == AlertStatus.PENDING and found["choices"]:
        screen.next(f"Answer it: labwright alerts answer {found['id']} {found['choices'][0]}")


def _answer_words(alert: Json) -> str:
    if not alert["answer"]:
        return "none yet" if alert["choices"] else ""
    return f"{alert['answer']}, by {alert['answered_by']}, {ago(alert['answered_at'])}"


@alerts.command("answer")
def answer(
    alert: AlertRef,
    choice: Annotated[
        str, typer.Argument(metavar="CHOICE", help="One of its choices; `stop` and `rerun` do what they say.")
    ],
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Answer an alert."""
    screen, client = Screen(as_json=as_json), connect(project)
    answered = client.answer_alert(_id_of(client, alert), choice)
    if as_json:
        screen.json(answered)
    else:
        screen.say(
            (answered["id"], "bold"),
            f"  answered: {answered['answer']}  ({_message(answered)})",
        )


def _id_of(client: LabClient, reference: str) -> str:
    if is_id(reference, ALERT):
        return reference
    prefix = reference if reference.startswith(f"{ALERT}-") else f"{ALERT}-{reference}"
    found = [alert["id"] for alert in client.alerts(None) if alert["id"].startswith(prefix)]
    if len(found) == 1:
        return str(found[0])
    if found:
        raise Invalid(f"{reference!r} is the beginning of more than one alert's id.", hint="Type more of it.")
    raise NotFound(f"There is no alert {reference}.", hint="List them with: labwright alerts --all")
