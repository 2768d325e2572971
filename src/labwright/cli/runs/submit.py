"""`run` and `rerun`: from words on the command line to a run, and following it to its end."""

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

from labwright.cli.formatting import one_line, parse_duration, parse_pair, parse_value
from labwright.cli.options import AsJson, Project, RunRef, connect, present_folder
from labwright.cli.runs.commands import exit_code_of
from labwright.cli.runs.logs import print_until_end
from labwright.cli.runs.options import (
    After,
    Command,
    Cpus,
    Env,
    Gpus,
    Gpuwrap,
    MemoryMb,
    Name,
    Nodes,
    NoStart,
    Params,
    Priority,
    Retries,
    RetryDelay,
    Seed,
    SlurmOptions,
    Snapshot,
    Sweep,
    Tags,
    TimeLimit,
    Tty,
    Wait,
    Workdir,
)
from labwright.cli.runs.view import note_on, run_line, time_taken
from labwright.cli.screen import Screen, note, warn
from labwright.cli.sweeps.ids import sweep_id_of
from labwright.client.follow import changes_until_started, look, wait_for_ends
from labwright.client.lab import LabClient
from labwright.domain.run import RunStatus
from labwright.processes import METRIC_FILES_VARIABLE
from labwright.sim.state import STATE_VARIABLE

Json = dict[str, Any]
_ENV_NAME_LENGTH = 200
_ENV_VALUE_LENGTH = 100_000
_INTERRUPTED = 130


def run(
    command: Command,
    name: Name = None,
    gpus: Gpus = None,
    sweep: Sweep = None,
    workdir: Workdir = None,
    env: Env = None,
    tty: Tty = False,
    wait: Wait = False,
    after: After = None,
    priority: Priority = 0,
    time_limit: TimeLimit = None,
    tag: Tags = None,
    param: Params = None,
    seed: Seed = None,
    snapshot: Snapshot = False,
    no_start: NoStart = False,
    gpuwrap: Gpuwrap = None,
    retries: Retries = None,
    retry_delay: RetryDelay = None,
    cpus: Cpus = None,
    memory_mb: MemoryMb = None,
    nodes: Nodes = None,
    slurm: SlurmOptions = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Several words are passed on as they are; a single one is a line of shell:

    \b
    labwright run -- python train.py --lr 0.1
    labwright run "source .venv/bin/activate && python train.py | tee log.txt"
    """
    client = connect(project)
    if wait and _something_is_piped_in():
        warn("what is piped in does not reach the run; if it reads its input, have it read a file: … < FILE")
    wanted = _what(command, workdir, env, tty=tty, snapshot=snapshot)
    wanted |= _labels(client, name, sweep, tag, param, seed)
    wanted |= _when(client, after, priority, time_limit, start=not no_start)
    wanted |= _room(gpus, gpuwrap_config(gpuwrap, retries, retry_delay), cpus, memory_mb, nodes, slurm)
    _present(Screen(as_json=as_json), client, client.create_run(wanted), wait=wait and not no_start)


def rerun(
    run: RunRef,
    command: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Another command for it, as a line of shell.")
    ] = None,
    no_start: NoStart = False,
    wait: Wait = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Same command, folder, environment, GPUs and parameters; the old run stays as it is.

    Secret variables, such as HF_TOKEN, are not kept: their values come from this shell.
    """
    client = connect(project)
    old = client.run(run)
    secrets = {name: os.environ[name] for name in _secrets_of(old) if name in os.environ}
    made = client.rerun(old["id"], {"command": command, "auto_start": not no_start, "secrets": secrets})
    _present(Screen(as_json=as_json), client, made, wait=wait and not no_start)


def _secrets_of(run: Json) -> list[str]:
    return [*run["secret_env"], *run["missing_secrets"]]


def _what(command: list[str], workdir: Path | None, env: list[str] | None, *, tty: bool, snapshot: bool) -> Json:
    return {
        "command": command[0] if len(command) == 1 else shlex.join(command),
        "workdir": str(present_folder() / (workdir or "")),
        "env": dict(parse_pair(pair, "--env") for pair in env or []),
        "caller_env": caller_environment(os.environ),
        "tty": tty,
        "use_snapshot": snapshot,
    }


def _labels(
    client: LabClient,
    name: str | None,
    sweep: str | None,
    tags: list[str] | None,
    params: list[str] | None,
    seed: int | None,
) -> Json:
    return {
        "name": name,
        "sweep_id": sweep_id_of(client, sweep) if sweep else None,
        "tags": tags or [],
        "params": {key: parse_value(value) for key, value in (parse_pair(pair, "--param") for pair in params or [])},
        "seed": seed,
    }


def _when(client: LabClient, after: list[str] | None, priority: int, time_limit: str | None, *, start: bool) -> Json:
    return {
        "after": [client.run(reference)["id"] for reference in after or []],
        "priority": priority,
        "time_limit_seconds": parse_duration(time_limit) if time_limit else None,
        "auto_start": start,
    }


def _room(
    gpus: int | None,
    gpuwrap: Json | None,
    cpus: int | None,
    memory_mb: int | None,
    nodes: int | None,
    slurm: list[str] | None,
) -> Json:
    return {
        "gpus": gpus,
        "gpuwrap_config": gpuwrap,
        "cpus": cpus,
        "memory_mb": memory_mb,
        "nodes": nodes,
        "slurm": {"extra": slurm} if slurm else None,
    }


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


def _something_is_piped_in() -> bool:
    """With nothing in it, a pipe says nothing: whoever starts us from a program leaves one there."""
    is_pipe = sys.stdin is not None and stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode)
    return is_pipe and bool(select.select([sys.stdin], [], [], 0)[0])


def caller_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The shell's environment without what is Labwright's own; what cannot be passed on is named."""
    offered = {name: value for name, value in environ.items() if not _is_ours(name)}
    passed = {name: value for name, value in offered.items() if _can_pass(name, value)}
    lost = sorted(name.encode(errors="replace").decode() for name in offered.keys() - passed.keys())
    if lost:
        warn(f"not passed on, too long or not UTF-8: {', '.join(lost)}")
    return passed


def _is_ours(name: str) -> bool:
    return name.startswith("LABWRIGHT_") and name not in (STATE_VARIABLE, METRIC_FILES_VARIABLE)


def _can_pass(name: str, value: str) -> bool:
    is_text = not any("\ud800" <= character <= "\udfff" for character in name + value)
    return is_text and 0 < len(name) <= _ENV_NAME_LENGTH and len(value) <= _ENV_VALUE_LENGTH


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
