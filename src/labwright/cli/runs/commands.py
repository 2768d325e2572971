"""List, show, wait for and change runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from labwright.cli.command import Yes, with_client
from labwright.cli.formatting import parse_duration, plural
from labwright.cli.references import LastRun, RunRef, RunRefs, runs_of, sweep_id_of
from labwright.cli.runs.view import COLUMNS, run_in_full, run_line
from labwright.cli.screen import Screen, confirm_deletion, note
from labwright.client.follow import WaitTimedOut, is_ended, wait_for_ends
from labwright.client.lab import LabClient
from labwright.domain.errors import Conflict, LabwrightError
from labwright.domain.run import RunStatus

Json = dict[str, Any]
TIMED_OUT = 124  # like timeout(1)
_RECENT = 10
_MANY = 100_000
_UNENDED = ",".join((RunStatus.READY, RunStatus.QUEUED, RunStatus.LAUNCHING, RunStatus.WAITING, RunStatus.RUNNING))
_EXIT = {RunStatus.FINISHED: 0, RunStatus.STOPPED: 130, RunStatus.LOST: 1}


def exit_code_of(run: Json) -> int:
    """Return the command's exit code; 130 for a stopped run, 1 for a lost run or one that never started."""
    known = _EXIT.get(RunStatus(run["status"]))
    return known if known is not None else run["exit_code"] or 1


@with_client
def ps(
    screen: Screen,
    client: LabClient,
    all_runs: Annotated[bool, typer.Option("--all", "-a", help="List all runs, archived ones too.")] = False,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only runs with these statuses, comma-separated.")
    ] = None,
    sweep: Annotated[str | None, typer.Option(metavar="SWEEP", help="Only runs of this sweep.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Only runs with this tag.")] = None,
    text: Annotated[
        str | None, typer.Option("-q", metavar="TEXT", help="Only runs with this text in their name or command.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="List at most N runs.")] = None,
) -> None:
    filters = {"status": status, "tag": tag, "q": text, "sweep_id": sweep_id_of(client, sweep) if sweep else None}
    is_filtered = any(filters.values())
    empty = "No matching runs. List all with: labwright ps --all"
    if is_filtered or all_runs or limit is not None:
        runs, then = client.runs(limit or _MANY, **filters, archived="all" if all_runs else None), ""
    else:
        runs, then = _active_and_recent(client), "All runs: labwright ps --all · Details: labwright show RUN"
    if not is_filtered and not all_runs:
        empty = "No runs yet. Start one: labwright run -- python train.py"
    screen.listing(runs, COLUMNS, empty=empty, then=then)


def _active_and_recent(client: LabClient) -> list[Json]:
    active = client.runs(_MANY, status=_UNENDED)
    known = {run["id"] for run in active}
    recent = [run for run in client.runs(_RECENT) if run["id"] not in known]
    return sorted([*active, *recent], key=lambda run: str(run["created_at"]), reverse=True)


@with_client
def show(screen: Screen, client: LabClient, run: LastRun = "last") -> None:
    found = client.run(run)
    screen.result(found, lambda _: run_in_full(screen, found))
    screen.suggest(f"Output: labwright logs {found['id']} · Run again: labwright rerun {found['id']}")


@with_client
def start(screen: Screen, client: LabClient, run: RunRef) -> None:
    _show_changed(screen, [client.start_run(client.run(run)["id"])])


@with_client
def stop(
    screen: Screen,
    client: LabClient,
    runs: RunRefs,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait until the runs have ended.")] = False,
) -> None:
    """Sends TERM, and KILL after the grace time. Queued and waiting runs are stopped too."""
    stopped: list[Json] = []
    refused: LabwrightError | None = None  # a run that has already ended is reported after the others are stopped
    for run in runs_of(client, runs):
        try:
            stopped.append(client.stop_run(run["id"]))
        except LabwrightError as error:
            if error.code != Conflict.code:
                raise
            refused = refused or error
    ending = [run["id"] for run in stopped if not is_ended(run)]
    if ending and not no_wait:
        with screen.working(f"stopping {plural(len(ending), 'run')}"):
            ended = {run["id"]: run for run in wait_for_ends(client, ending, note, changed=reason_reporter())}
        stopped = [ended.get(run["id"], run) for run in stopped]
    if stopped:
        _show_changed(screen, stopped)
    if refused:
        raise refused


def reason_reporter() -> Callable[[Json], None]:
    """Return a function that prints once why a run has not ended yet."""
    reported: set[tuple[str, str]] = set()

    def report(run: Json) -> None:
        reason = (run["id"], run["status_reason"])
        if run["status_reason"] and run["status"] == RunStatus.LAUNCHING and reason not in reported:
            reported.add(reason)
            note(": ".join(reason))

    return report


@with_client
def archive(screen: Screen, client: LabClient, runs: RunRefs) -> None:
    _show_changed(screen, [client.archive_run(run["id"]) for run in runs_of(client, runs)])


@with_client
def unarchive(screen: Screen, client: LabClient, runs: RunRefs) -> None:
    _show_changed(screen, [client.unarchive_run(run["id"]) for run in runs_of(client, runs)])


@with_client
def delete(screen: Screen, client: LabClient, runs: RunRefs, yes: Yes = False) -> None:
    found = runs_of(client, runs)
    if not yes:
        names = "\n".join(f"  {run['id']}  {run['name']}" for run in found)
        confirm_deletion(f"{names}\nDelete {plural(len(found), 'run')} with output and metrics permanently?")
    for run in found:
        client.delete_run(run["id"])
        if not screen.as_json:
            screen.item(run["id"], "deleted")
    if screen.as_json:
        screen.json([run["id"] for run in found])


@with_client
def wait(
    screen: Screen,
    client: LabClient,
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN", help="Runs. Default: the last one.")] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Give up after this time, e.g. 90m. Exit code 124.")
    ] = None,
) -> None:
    """With several runs, the exit code is that of the first one, in the given order, that did not finish."""
    ids = [run["id"] for run in runs_of(client, runs or ["last"])]
    ended: dict[str, Json] = {}
    try:
        for run in wait_for_ends(client, ids, note, parse_duration(timeout) if timeout else None):
            ended[run["id"]] = run
            if not screen.as_json:
                run_line(screen, run)
    except WaitTimedOut:
        note(f"Not ended after {timeout}: {', '.join(run_id for run_id in ids if run_id not in ended)}")
        raise typer.Exit(TIMED_OUT) from None
    if screen.as_json:
        screen.json([ended[run_id] for run_id in ids])
    raise typer.Exit(next((code for code in (exit_code_of(ended[run_id]) for run_id in ids) if code), 0))


@with_client
def diff(screen: Screen, client: LabClient, run: LastRun = "last") -> None:
    found = client.run(run)
    changes = client.diff_run(found["id"])
    if screen.as_json:
        screen.json(changes)
        return
    if not any(changes[name] for name in ("added", "removed", "changed", "uncertain")):
        screen.print(f"The code has not changed since {found['id']} was submitted.")
        return
    for line in changes["text"].splitlines():
        is_header = line.startswith(("diff ", "+++", "---", "mode "))
        screen.print((line, "bold" if is_header else {"+": "green", "-": "red", "@": "blue"}.get(line[:1], "")))
    for name in changes["uncertain"]:
        screen.print(("possibly changed (too large for the snapshot): ", "yellow"), name)


def _show_changed(screen: Screen, runs: list[Json]) -> None:
    if screen.as_json:
        screen.json(runs)
        return
    for run in runs:
        run_line(screen, run)
