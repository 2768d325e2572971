"""`run` and `rerun`: from words on the command line to a run, and following it to its end."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from labwright.cli.logs import print_until_end
from labwright.cli.options import AsJson, Project, RunRef, connect
from labwright.cli.runs import exit_code_of
from labwright.cli.screen import Screen, note, warn
from labwright.cli.show import note_on, run_line, time_taken
from labwright.cli.sweep_ids import sweep_id_of
from labwright.cli.words import one_line, parse_duration, parse_pair, parse_value
from labwright.client.follow import changes_until_started, look, wait_for_ends
from labwright.client.lab import LabClient
from labwright.domain.run import RunStatus
from labwright.processes import METRIC_FILES_VARIABLE
from labwright.sim.state import STATE_VARIABLE

Json = dict[str, Any]
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENV_VALUE_LENGTH = 100_000
_INTERRUPTED = 130

Wait = Annotated[bool, typer.Option("--wait", help="Follow the output; exit with the run's exit code.")]


def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="What to run.", show_default=False)],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Default: the command.")] = None,
    gpus: Annotated[int | None, typer.Option(min=0, metavar="N", help="How many GPUs; 0 hides them.")] = None,
    sweep: Annotated[str | None, typer.Option(metavar="SWEEP", help="The sweep it belongs to, by id or name.")] = None,
    workdir: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to run it. Default: here.")] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="K=V", help="A variable for it; repeat for more.")] = None,
    tty: Annotated[bool, typer.Option("--tty", help="Give it a terminal, for debuggers.")] = False,
    wait: Wait = False,
    after: Annotated[list[str] | None, typer.Option(metavar="RUN", help="Only after this run has finished.")] = None,
    priority: Annotated[int, typer.Option(metavar="N", help="Higher goes first.")] = 0,
    time_limit: Annotated[str | None, typer.Option(metavar="TIME", help="Stop it after e.g. 2h, 90m, 30s.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag; repeat for more.")] = None,
    param: Annotated[list[str] | None, typer.Option(metavar="K=V", help="A parameter, for tables and plots.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="The seed, for tables and plots.")] = None,
    snapshot: Annotated[
        bool, typer.Option("--snapshot", help="Run the code as it is now, edited or not later.")
    ] = False,
    no_start: Annotated[bool, typer.Option("--no-start", help="Only make it; labwright start begins it.")] = False,
    gpuwrap: Annotated[bool | None, typer.Option(help="Wait for free GPUs and retry on contention.")] = None,
    retries: Annotated[
        int | None, typer.Option(min=-1, metavar="N", help="gpuwrap: tries; -1 is as long as it takes.")
    ] = None,
    retry_delay: Annotated[str | None, typer.Option(metavar="TIME", help="gpuwrap: time between tries.")] = None,
    cpus: Annotated[int | None, typer.Option(min=1, metavar="N", help="Slurm: cores for it.")] = None,
    memory_mb: Annotated[int | None, typer.Option(min=1, metavar="MB", help="Slurm: memory on each node.")] = None,
    nodes: Annotated[int | None, typer.Option(min=1, metavar="N", help="Slurm: how many nodes.")] = None,
    slurm: Annotated[
        list[str] | None, typer.Option(metavar="OPTION", help="Slurm: an option of sbatch, e.g. --slurm=-pdebug.")
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Several words are passed on as they are; a single one is a line of shell:

    \b
    labwright run -- python train.py --lr 0.1
    labwright run "source .venv/bin/activate && python train.py | tee log.txt"
    """
    client = connect(project)
    wanted: Json = {
        "command": command[0] if len(command) == 1 else shlex.join(command),
        "name": name,
        "gpus": gpus,
        "sweep_id": sweep_id_of(client, sweep) if sweep else None,
        "workdir": str((workdir or Path()).absolute()),
        "env": dict(parse_pair(pair, "--env") for pair in env or []),
        "caller_env": caller_environment(os.environ),
        "tty": tty,
        "after": [client.run(reference)["id"] for reference in after or []],
        "priority": priority,
        "time_limit_seconds": parse_duration(time_limit) if time_limit else None,
        "tags": tag or [],
        "params": {key: parse_value(value) for key, value in (parse_pair(pair, "--param") for pair in param or [])},
        "seed": seed,
        "use_snapshot": snapshot,
        "auto_start": not no_start,
        "gpuwrap_config": gpuwrap_config(gpuwrap, retries, retry_delay),
        "cpus": cpus,
        "memory_mb": memory_mb,
        "nodes": nodes,
        "slurm": {"extra": slurm} if slurm else None,
    }
    _present(Screen(as_json=as_json), client, client.create_run(wanted), wait=wait and not no_start)


def rerun(
    run: RunRef,
    command: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Another command for it, as a line of shell.")
    ] = None,
    no_start: Annotated[bool, typer.Option("--no-start", help="Only make it; labwright start begins it.")] = False,
    wait: Wait = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Same command, folder, environment, GPUs and parameters; the old run stays as it is."""
    client = connect(project)
    made = client.rerun(client.run(run)["id"], {"command": command, "auto_start": not no_start})
    _present(Screen(as_json=as_json), client, made, wait=wait and not no_start)


def gpuwrap_config(enabled: bool | None, retries: int | None, retry_delay: str | None) -> Json | None:
    """None leaves it to what the server recommends for this machine."""
    if enabled is None and retries is None and retry_delay is None:
        return None
    config: Json = {"enabled": enabled is not False}
    if retries is not None:
        config["retries"] = retries
    if retry_delay is not None:
        config["retry_delay_seconds"] = parse_duration(retry_delay)
    return config


def caller_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The shell's environment without what is Labwright's own; what cannot be passed on is named."""
    offered = {name: value for name, value in environ.items() if not _is_ours(name)}
    passed = {name: value for name, value in offered.items() if _can_pass(name, value)}
    lost = sorted(name for name in offered.keys() - passed.keys() if _ENV_NAME.fullmatch(name))
    if lost:
        warn(f"not passed on, too long or not UTF-8: {', '.join(lost)}")
    return passed


def _is_ours(name: str) -> bool:
    return name.startswith("LABWRIGHT_") and name not in (STATE_VARIABLE, METRIC_FILES_VARIABLE)


def _can_pass(name: str, value: str) -> bool:
    """Shell functions travel under names that no program could use as a variable; they stay behind."""
    is_text = not any("\ud800" <= character <= "\udfff" for character in value)
    return bool(_ENV_NAME.fullmatch(name)) and is_text and len(value) <= _ENV_VALUE_LENGTH


def _present(screen: Screen, client: LabClient, run: Json, *, wait: bool) -> None:
    for text in run["warnings"]:
        warn(text)
    if wait:
        raise typer.Exit(_follow(screen, client, run))
    if screen.as_json:
        screen.json(run)
        return
    run_line(screen, run)
    begin = "" if run["status"] != "ready" else f"begin: labwright start {run['id']} · "
    screen.next(f"Next: {begin}labwright logs -f {run['id']}")


def _follow(screen: Screen, client: LabClient, run: Json) -> int:
    """The output as it comes; leaving with Ctrl-C leaves the run alone."""
    try:
        if screen.as_json:
            ended = next(wait_for_ends(client, [run["id"]], note))
            screen.json(ended)
        else:
            _tell_until_started(client, run)
            print_until_end(screen, client, run["id"], 0)
            ended = look(client, run["id"], note)
            note(_last_line(ended))
    except KeyboardInterrupt:
        note(f"\n{run['id']} goes on. Follow it: labwright logs -f {run['id']} · stop it: labwright stop {run['id']}")
        return _INTERRUPTED
    return exit_code_of(ended)


def _tell_until_started(client: LabClient, run: Json) -> None:
    """A run may have to wait for its turn or for a GPU: say so, and what it waits for."""
    said = f"{run['id']}  {run['status']}  {one_line(run['name'])}"
    note(said)
    for now in changes_until_started(client, run["id"], note):
        words = f"{now['id']}  {now['status']}: {now['status_reason']}"
        if now["status"] in (RunStatus.QUEUED, RunStatus.WAITING) and now["status_reason"] and words != said:
            said = words
            note(said)


def _last_line(run: Json) -> str:
    taken, why = time_taken(run), note_on(run)
    return f"{run['id']}  {run['status']}{f' after {taken}' if taken else ''}{f': {why}' if why else ''}"
