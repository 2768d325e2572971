"""`run` and `rerun`: submit a run from the command line, and follow it to its end."""

from __future__ import annotations

import os
import select
import shlex
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from labwright.cli.command import INTERRUPTED, current_folder, with_client
from labwright.cli.formatting import one_line, parse_duration, parse_pair, parse_value
from labwright.cli.references import RunRef, sweep_id_of
from labwright.cli.runs.commands import exit_code_of
from labwright.cli.runs.logs import print_until_end
from labwright.cli.runs.view import note_on, run_line, time_taken
from labwright.cli.screen import Screen, note, warn
from labwright.client.follow import changes_until_started, read_run, wait_for_ends
from labwright.client.lab import LabClient
from labwright.domain.run import RunStatus
from labwright.processes import METRIC_FILES_VARIABLE
from labwright.sim.state import STATE_VARIABLE

Json = dict[str, Any]
_ENV_NAME_LENGTH = 200
_ENV_VALUE_LENGTH = 100_000

Gpus = Annotated[int | None, typer.Option(min=0, metavar="N", help="Number of GPUs. 0 hides them.")]
NoStart = Annotated[bool, typer.Option("--no-start", help="Only create the run. Start it with labwright start.")]
Wait = Annotated[bool, typer.Option("--wait", help="Follow the output and exit with the run's exit code.")]


@with_client
def run(
    screen: Screen,
    client: LabClient,
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="The command to run.", show_default=False)],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The run's name. Default: the command.")] = None,
    gpus: Gpus = None,
    sweep: Annotated[str | None, typer.Option(metavar="SWEEP", help="Add the run to this sweep (id or name).")] = None,
    workdir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder to run in. Default: the current one.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="An environment variable. Can be repeated.")
    ] = None,
    tty: Annotated[bool, typer.Option("--tty", help="Give the run a terminal, for debuggers.")] = False,
    wait: Wait = False,
    after: Annotated[
        list[str] | None, typer.Option(metavar="RUN", help="Start after this run has finished. Can be repeated.")
    ] = None,
    priority: Annotated[int, typer.Option(metavar="N", help="Higher priorities start first.")] = 0,
    time_limit: Annotated[
        str | None, typer.Option(metavar="TIME", help="Stop the run after this time, e.g. 2h, 90m, 30s.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag. Can be repeated.")] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="A parameter, shown in tables and plots. Can be repeated.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="The seed, shown in tables and plots.")] = None,
    snapshot: Annotated[
        bool, typer.Option("--snapshot", help="Run a copy of the current code, even if it is edited later.")
    ] = False,
    no_start: NoStart = False,
    gpuwrap: Annotated[
        bool | None, typer.Option(help="Wait for free GPUs and retry if another process takes them.")
    ] = None,
    retries: Annotated[
        int | None, typer.Option(min=-1, metavar="N", help="gpuwrap: number of retries. -1 means no limit.")
    ] = None,
    retry_delay: Annotated[str | None, typer.Option(metavar="TIME", help="gpuwrap: time between retries.")] = None,
    cpus: Annotated[int | None, typer.Option(min=1, metavar="N", help="Slurm: number of CPU cores.")] = None,
    memory_mb: Annotated[int | None, typer.Option(min=1, metavar="MB", help="Slurm: memory per node.")] = None,
    nodes: Annotated[int | None, typer.Option(min=1, metavar="N", help="Slurm: number of nodes.")] = None,
    slurm: Annotated[
        list[str] | None, typer.Option(metavar="OPTION", help="Slurm: an option of sbatch, e.g. --slurm=-pdebug.")
    ] = None,
) -> None:
    """Several words are run as they are. A single word is a line of shell:

    \b
    labwright run -- python train.py --lr 0.1
    labwright run "source .venv/bin/activate && python train.py | tee log.txt"
    """
    if wait and _stdin_has_data():
        warn("piped input is not passed to the run. If it reads input, redirect a file in the command: … < FILE")
    params = [parse_pair(pair, "--param") for pair in param or []]
    spec = {
        "command": command[0] if len(command) == 1 else shlex.join(command),
        "workdir": str(current_folder() / (workdir or "")),
        "env": dict(parse_pair(pair, "--env") for pair in env or []),
        "caller_env": caller_environment(os.environ),
        "tty": tty,
        "use_snapshot": snapshot,
        "name": name,
        "sweep_id": sweep_id_of(client, sweep) if sweep else None,
        "tags": tag or [],
        "params": {key: parse_value(value) for key, value in params},
        "seed": seed,
        "after": [client.run(reference)["id"] for reference in after or []],
        "priority": priority,
        "time_limit_seconds": parse_duration(time_limit) if time_limit else None,
        "auto_start": not no_start,
        "gpus": gpus,
        "gpuwrap_config": gpuwrap_config(gpuwrap, retries, retry_delay),
        "cpus": cpus,
        "memory_mb": memory_mb,
        "nodes": nodes,
        "slurm": {"extra": slurm} if slurm else None,
    }
    _show_created(screen, client, client.create_run(spec), wait=wait and not no_start)


@with_client
def rerun(
    screen: Screen,
    client: LabClient,
    run: RunRef,
    command: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Run this command instead, as a line of shell.")
    ] = None,
    no_start: NoStart = False,
    wait: Wait = False,
) -> None:
    """Uses the same command, folder, environment, GPUs and parameters. The old run is not changed.

    Secret variables such as HF_TOKEN are not stored; their values are read from this shell.
    """
    old = client.run(run)
    secrets = {name: os.environ[name] for name in (*old["secret_env"], *old["missing_secrets"]) if name in os.environ}
    created = client.rerun(old["id"], {"command": command, "auto_start": not no_start, "secrets": secrets})
    _show_created(screen, client, created, wait=wait and not no_start)


def gpuwrap_config(enabled: bool | None, retries: int | None, retry_delay: str | None) -> Json | None:
    """Return gpuwrap's settings, or None for the server's recommendation."""
    if enabled is None and retries is None and retry_delay is None:
        return None
    config: Json = {"enabled": enabled is not False}
    if retries is not None:
        config["retries"] = retries
    if retry_delay is not None:
        config["retry_delay_seconds"] = parse_duration(retry_delay)
    return config


def _stdin_has_data() -> bool:
    """Return whether standard input is a pipe with data. Programs often leave an empty pipe there."""
    is_pipe = sys.stdin is not None and stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode)
    return is_pipe and bool(select.select([sys.stdin], [], [], 0)[0])


def caller_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the shell's environment without Labwright's own variables. Warn about those that cannot be passed on."""
    kept = (STATE_VARIABLE, METRIC_FILES_VARIABLE)
    offered = {name: value for name, value in environ.items() if not name.startswith("LABWRIGHT_") or name in kept}
    passed = {name: value for name, value in offered.items() if _can_pass(name, value)}
    lost = sorted(name.encode(errors="replace").decode() for name in offered.keys() - passed.keys())
    if lost:
        warn(f"these variables are too long or not UTF-8, and are not passed on: {', '.join(lost)}")
    return passed


def _can_pass(name: str, value: str) -> bool:
    is_text = not any("\ud800" <= character <= "\udfff" for character in name + value)
    return is_text and 0 < len(name) <= _ENV_NAME_LENGTH and len(value) <= _ENV_VALUE_LENGTH


def _show_created(screen: Screen, client: LabClient, run: Json, *, wait: bool) -> None:
    for text in run["warnings"]:
        warn(text)
    if wait:
        raise typer.Exit(_follow(screen, client, run))
    screen.result(run, lambda _: run_line(screen, run))
    start = f"Start it: labwright start {run['id']} · " if run["status"] == "ready" else ""
    screen.suggest(f"{start}Follow: labwright logs -f {run['id']}")


def _follow(screen: Screen, client: LabClient, run: Json) -> int:
    """Print the output until the run ends, and return its exit code. Ctrl-C does not stop the run."""
    try:
        if screen.as_json:
            ended = next(wait_for_ends(client, [run["id"]], note))
            screen.json(ended)
        else:
            _report_until_started(client, run)
            print_until_end(screen, client, run["id"], 0)
            ended = read_run(client, run["id"], note)
            taken, why = time_taken(ended), note_on(ended)
            note(f"{run['id']}  {ended['status']}{f' after {taken}' if taken else ''}{f': {why}' if why else ''}")
    except KeyboardInterrupt:
        note(f"\n{run['id']} continues. Follow it: labwright logs -f {run['id']} · Stop it: labwright stop {run['id']}")
        return INTERRUPTED
    return exit_code_of(ended)


def _report_until_started(client: LabClient, run: Json) -> None:
    """Print what the run waits for, until it starts."""
    last = f"{run['id']}  {run['status']}  {one_line(run['name'])}"
    note(last)
    for now in changes_until_started(client, run["id"], note):
        text = f"{now['id']}  {now['status']}: {now['status_reason']}"
        if now["status"] in (RunStatus.QUEUED, RunStatus.WAITING) and now["status_reason"] and text != last:
            last = text
            note(last)
