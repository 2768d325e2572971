"""Listing runs and the verbs on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from labwright.cli.asking import confirm_deletion
from labwright.cli.formatting import counted, parse_duration
from labwright.cli.options import AsJson, LastRun, Project, RunRef, RunRefs, connect
from labwright.cli.runs.view import run_in_full, run_line, run_table
from labwright.cli.screen import Screen, note
from labwright.cli.sweeps.ids import sweep_id_of
from labwright.client.follow import TimedOut, is_ended, wait_for_ends
from labwright.client.lab import LabClient
from labwright.domain.errors import Conflict, LabwrightError
from labwright.domain.run import RunStatus

Json = dict[str, Any]
TIMED_OUT = 124  # as timeout(1) has it
_RECENT = 10
_MANY = 100_000
_UNENDED = ",".join((RunStatus.READY, RunStatus.QUEUED, RunStatus.LAUNCHING, RunStatus.WAITING, RunStatus.RUNNING))
_EXIT = {RunStatus.FINISHED: 0, RunStatus.STOPPED: 130, RunStatus.LOST: 1}


def exit_code_of(run: Json) -> int:
    """The command's own where it has one; a stopped run is 130, one that is lost or never began 1."""
    known = _EXIT.get(RunStatus(run["status"]))
    return known if known is not None else run["exit_code"] or 1


def ps(
    all_runs: Annotated[bool, typer.Option("--all", "-a", help="All runs, archived ones too.")] = False,
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="Only these, comma-separated.")] = None,
    sweep: Annotated[str | None, typer.Option(metavar="SWEEP", help="Only of this sweep.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Only with this tag.")] = None,
    text: Annotated[str | None, typer.Option("-q", metavar="TEXT", help="Only with this in name or command.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most so many.")] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    screen, client = Screen(as_json=as_json), connect(project)
    wanted = {"status": status, "tag": tag, "q": text, "sweep_id": sweep_id_of(client, sweep) if sweep else None}
    asked = all_runs or limit is not None or any(wanted.values())
    wanted["archived"] = "all" if all_runs else None
    runs = client.runs(limit or _MANY, **wanted) if asked else _active_and_recent(client)
    if as_json:
        screen.json(runs)
    elif runs:
        run_table(screen, runs)
        screen.next("" if asked else "All of them: labwright ps --all · one in full: labwright show RUN")
    elif any(wanted.values()):
        screen.say("No runs like that. See all with: labwright ps --all")
    else:
        screen.say("No runs yet. Start one: labwright run -- python train.py")


def _active_and_recent(client: LabClient) -> list[Json]:
    active = client.runs(_MANY, status=_UNENDED)
    known = {run["id"] for run in active}
    recent = [run for run in client.runs(_RECENT) if run["id"] not in known]
    return sorted([*active, *recent], key=lambda run: str(run["created_at"]), reverse=True)


def show(run: LastRun = "last", project: Project = None, as_json: AsJson = False) -> None:
    screen, found = Screen(as_json=as_json), connect(project).run(run)
    if as_json:
        screen.json(found)
        return
    run_in_full(screen, found)
    screen.next(f"Its output: labwright logs {found['id']} · again: labwright rerun {found['id']}")


def start(run: RunRef, project: Project = None, as_json: AsJson = False) -> None:
    client = connect(project)
    _tell(Screen(as_json=as_json), [client.start_run(client.run(run)["id"])])


def stop(
    runs: RunRefs,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Ask, and do not wait for the end.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """TERM first, KILL after the grace time; waiting and queued runs are stopped too."""
    screen, client = Screen(as_json=as_json), connect(project)
    stopped, refused = _asked_to_stop(client, _resolved(client, runs))
    ending = [run["id"] for run in stopped if not is_ended(run)]
    if ending and not no_wait:
        with screen.working(f"stopping {counted(len(ending), 'run')}"):
            ended = {run["id"]: run for run in wait_for_ends(client, ending, note, changed=reason_teller())}
        stopped = [ended.get(run["id"], run) for run in stopped]
    if stopped:
        _tell(screen, stopped)
    if refused:
        raise refused


def _asked_to_stop(client: LabClient, runs: list[Json]) -> tuple[list[Json], LabwrightError | None]:
    """One that has ended already does not keep the others going; it is told in the end."""
    asked: list[Json] = []
    refused: LabwrightError | None = None
    for run in runs:
        try:
            asked.append(client.stop_run(run["id"]))
        except LabwrightError as error:
            if error.code != Conflict.code:
                raise
            refused = refused or error
    return asked, refused


def reason_teller() -> Callable[[Json], None]:
    """Says why a run has not ended yet, each reason once."""
    said: set[tuple[str, str]] = set()

    def say(run: Json) -> None:
        reason = (run["id"], run["status_reason"])
        if run["status_reason"] and run["status"] == RunStatus.LAUNCHING and reason not in said:
            said.add(reason)
            note(": ".join(reason))

    return say


def archive(runs: RunRefs, project: Project = None, as_json: AsJson = False) -> None:
    client = connect(project)
    _tell(Screen(as_json=as_json), _on_each(client, runs, client.archive_run))


def unarchive(runs: RunRefs, project: Project = None, as_json: AsJson = False) -> None:
    client = connect(project)
    _tell(Screen(as_json=as_json), _on_each(client, runs, client.unarchive_run))


def delete(
    runs: RunRefs,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    screen, client = Screen(as_json=as_json), connect(project)
    found = _resolved(client, runs)
    if not yes:
        _confirm(found)
    for run in found:
        client.delete_run(run["id"])
        if not as_json:
            screen.say((run["id"], "bold"), "  deleted")
    if as_json:
        screen.json([run["id"] for run in found])


def _confirm(runs: list[Json]) -> None:
    names = "\n".join(f"  {run['id']}  {run['name']}" for run in runs)
    confirm_deletion(f"{names}\nDelete {counted(len(runs), 'run')} with output and metrics, for ever?")


def wait(
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN", help="Runs; by default the last.")] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Give up after this long, e.g. 90m; exit code 124.")
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """With several, the exit code is that of the first, in the order given, that did not finish."""
    screen, client = Screen(as_json=as_json), connect(project)
    ids = [run["id"] for run in _resolved(client, runs or ["last"])]
    ended: dict[str, Json] = {}
    try:
        for run in wait_for_ends(client, ids, note, parse_duration(timeout) if timeout else None):
            ended[run["id"]] = run
            if not as_json:
                run_line(screen, run)
    except TimedOut:
        left = [run_id for run_id in ids if run_id not in ended]
        note(f"Not ended after {timeout}: {', '.join(left)}")
        raise typer.Exit(TIMED_OUT) from None
    if as_json:
        screen.json([ended[run_id] for run_id in ids])
    raise typer.Exit(next((code for code in (exit_code_of(ended[run_id]) for run_id in ids) if code), 0))


def diff(run: LastRun = "last", project: Project = None, as_json: AsJson = False) -> None:
    screen, client = Screen(as_json=as_json), connect(project)
    found = client.run(run)
    changes = client.diff_run(found["id"])
    if as_json:
        screen.json(changes)
        return
    if not any(changes[name] for name in ("added", "removed", "changed", "uncertain")):
        screen.say(f"Nothing has changed since {found['id']} was submitted.")
        return
    for line in changes["text"].splitlines():
        screen.say((line, _diff_style(line)))
    for name in changes["uncertain"]:
        screen.say(("perhaps changed (too large to keep): ", "amber"), name)


def _diff_style(line: str) -> str:
    if line.startswith(("diff ", "+++", "---", "mode ")):
        return "bold"
    return {"+": "green", "-": "red", "@": "blue"}.get(line[:1], "")


def _resolved(client: LabClient, references: list[str]) -> list[Json]:
    """All of them before anything is done to one: a wrong name changes nothing."""
    found = {run["id"]: run for run in map(client.run, references)}
    return list(found.values())


def _on_each(client: LabClient, references: list[str], verb: Callable[[str], Json]) -> list[Json]:
    return [verb(run["id"]) for run in _resolved(client, references)]


def _tell(screen: Screen, runs: list[Json]) -> None:
    if screen.as_json:
        screen.json(runs)
        return
    for run in runs:
        run_line(screen, run)
