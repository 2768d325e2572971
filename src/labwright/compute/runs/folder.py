"""Make a run's folder with everything its sidecar needs. From here on the folder is the source of truth."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from labwright.compute.environment import split_secrets
from labwright.compute.lab import Lab
from labwright.compute.runs.alert_rules import SWITCHES, project_rules
from labwright.compute.slurm.resources import warning_of
from labwright.domain.actor import Scope
from labwright.domain.cluster import ClusterType
from labwright.domain.errors import Conflict
from labwright.domain.event import Event, EventType
from labwright.domain.run import REHEARSAL, TERMINAL, WILD_TAG, Run
from labwright.files import read_json, write_json, write_new
from labwright.gpu.probe import find_pynvml_dir
from labwright.paths import PlanPaths
from labwright.processes import METRIC_FILES_VARIABLE
from labwright.tokens import mint

log = logging.getLogger(__name__)
_MONITOR_AFTER_SECONDS = 0.2  # commands that end sooner need no monitor


def make_run_folder(lab: Lab, run: Run) -> None:
    """Make the folder. A second call for the same attempt is harmless. Raises OSError on a full or read-only disk."""
    paths = lab.paths.run(run.id)
    for folder in (os.path.dirname(paths.dir), paths.dir):  # not the state folder: if that is missing, it was moved
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    write_new(paths.command, run.command.encode() + b"\n")
    environment: dict[str, Any]
    if run.env_hash is not None:
        environment = {"base": "caller", "variables": kept_environment(lab, run.env_hash)}
    else:
        environment = {"base": "server", "variables": {**lab.local.plain_environment, **run.env}}
    write_new(paths.env, json.dumps(environment).encode())
    if secrets := _secrets_for(lab, run):  # empty at the second call: the file exists already
        write_new(paths.secrets, json.dumps(secrets).encode())
    if run.use_snapshot and run.snapshot:
        shutil.rmtree(paths.code, ignore_errors=True)  # an incomplete one from before a crash
        lab.snapshots.materialize(run.snapshot["hash"], Path(paths.code))
        _workdir(lab, run).mkdir(parents=True, exist_ok=True)  # a snapshot has no empty or ignored folders
    options = _sidecar_options(lab, run)
    options["metrics"]["declared"] = {**environment["variables"], **run.env}.get(METRIC_FILES_VARIABLE, "")
    write_json(paths.spec, {"run": run.to_dict(), "sidecar": options}, sync=False)
    if run.secret_env:
        forget_secrets(lab, run.id)


def kept_environment(lab: Lab, digest: str) -> dict[str, str]:
    """Return the environment of the shell that a run was submitted from."""
    try:
        kept: dict[str, str] = read_json(lab.paths.environment(digest))
    except (FileNotFoundError, ValueError) as error:
        raise Conflict(
            "The environment that the run was submitted from is no longer stored.",
            hint="Submit its command again: it takes the current environment.",
        ) from error
    return kept


def _secrets_for(lab: Lab, run: Run) -> dict[str, str]:
    """Return the secrets of a run. A Slurm node inherits nothing from the server, so all of them go into the file."""
    kept: dict[str, str] = {}
    for owner in (run.id, run.sweep_id if run.trial is not None else None):  # its own, or those of its sweep
        if owner and run.secret_env and not kept:
            with contextlib.suppress(FileNotFoundError):
                kept = read_json(lab.paths.secret(owner))
    if not run.is_on_slurm:
        return kept
    with contextlib.suppress(FileNotFoundError):
        kept = {**read_json(lab.paths.run(run.id).secrets), **kept}
    inherited = split_secrets(lab.local.environment)[1] if run.env_hash is None else {}
    return {**inherited, **kept, **address_for(lab, run)}


def address_for(lab: Lab, run: Run) -> dict[str, str]:
    """Return the server's address for a run, and a token that is valid only for this run.

    They are in no file on this machine. A Slurm node gets them only if it can reach the address.
    """
    url = lab.node_url if run.is_on_slurm else lab.url
    if not url:
        return {}
    return {"LABWRIGHT_SERVER_URL": url, "LABWRIGHT_RUN_TOKEN": mint(lab.token, Scope.RUN, run.id)}


def _sidecar_options(lab: Lab, run: Run) -> dict[str, Any]:
    settings = lab.settings
    on_slurm = run.is_on_slurm
    on_gpus = lab.cluster.current.type is ClusterType.LOCAL_GPU and not on_slurm
    return {
        "wake": "" if on_slurm else str(lab.paths.wake),  # a FIFO does not reach from node to node
        "slurm": warning_of(run, lab.slurm.defaults) if on_slurm else None,
        "python_path": str(lab.paths.python_path),
        "grace_seconds": settings.grace_seconds,
        "log_cap_bytes": settings.log_cap_mb << 20,
        "monitor_after_seconds": _MONITOR_AFTER_SECONDS,
        "gpu": _gpu_options(lab, run) if on_gpus and run.gpus > 0 else None,
        "pin_gpus": not run.named_gpus,
        "workdir": str(_workdir(lab, run)),
        "approved": _approved_code(lab, run),
        "hide_gpus": on_gpus and run.gpus == 0 and not run.named_gpus,
        "metrics": _metric_options(lab, run),
        "alerts": alert_options(lab, run),
    }


def _approved_code(lab: Lab, run: Run) -> dict[str, str] | None:
    """Return the list of approved files, and the folder that their paths are relative to."""
    if run.approved is None or run.plan_id is None:
        return None
    listing = PlanPaths(lab.paths.plans / run.plan_id).listing(run.approved)
    return {"listing": str(listing), "project": str(lab.paths.project)}


def alert_options(lab: Lab, run: Run) -> dict[str, Any]:
    """Return the alert rules of a run.

    We do not see the output of a script that was started by hand, so `stall` is off. The plan reports what goes wrong
    in its rehearsal, so there all rules are off.
    """
    options = project_rules(lab.paths.config).alert_options()
    if REHEARSAL in run.tags and run.plan_id is not None:
        return {"builtin": dict.fromkeys(SWITCHES, False), "project": []}
    return {**options, "builtin": {**options["builtin"], "stall": False}} if run.is_external else options


def _metric_options(lab: Lab, run: Run) -> dict[str, Any]:
    """Return where metrics come from. Plans and wild loops rely on printed metrics such as `loss=0.2`."""
    configured = project_rules(lab.paths.config).metrics
    pairs = configured.get("key_value", lab.settings.metrics_key_value)
    return {
        **configured,
        "key_value": pairs or run.plan_id is not None or WILD_TAG in run.tags,
        "system_seconds": lab.settings.system_metrics_seconds,
        "claims": str(lab.paths.metric_claims),
    }


def _workdir(lab: Lab, run: Run) -> Path:
    """Return where the command starts: the requested folder, or the same place in the run's own copy of the code."""
    if not run.use_snapshot:
        return Path(run.workdir)
    root = snapshot_root(lab, Path(run.workdir))
    return Path(lab.paths.run(run.id).code) / Path(run.workdir).relative_to(root)


def snapshot_root(lab: Lab, workdir: Path) -> Path:
    """Return the project, or the folder itself if a run works outside of the project."""
    return lab.paths.project if workdir.is_relative_to(lab.paths.project) else workdir


def _gpu_options(lab: Lab, run: Run) -> dict[str, Any]:
    settings, wrap = lab.settings, run.gpuwrap_config
    return {
        "run_id": run.id,
        "user": lab.user,
        "count": run.gpus,
        "lease_dir": settings.lease_dir,
        "check_foreign": bool(wrap and wrap.enabled),
        "allowed": [gpu.uuid for gpu in lab.cluster.current.gpus],
        "named": list(run.named_gpus),
        "retries": wrap.retries if wrap else -1,
        "retry_delay_seconds": wrap.retry_delay_seconds if wrap else 10.0,
        "ageing_seconds": settings.ageing_seconds,
        "busy_memory_mb": settings.gpu_busy_memory_mb,
        "busy_utilization": settings.gpu_busy_utilization,
        "pynvml_dir": find_pynvml_dir(),
    }


def keep_secrets(lab: Lab, owner: str, secrets: dict[str, str]) -> None:
    """Store secrets in a private file, not in the database: of a run until its launch, of a sweep until its end."""
    if secrets:
        lab.paths.secrets.mkdir(mode=0o700, exist_ok=True)
        write_json(lab.paths.secret(owner), secrets, sync=False)


def forget_secrets(lab: Lab, owner: str) -> None:
    lab.paths.secret(owner).unlink(missing_ok=True)


def forget_secrets_of_ended(lab: Lab, events: Iterable[Event]) -> None:
    """Delete the secrets of ended runs: a run may have ended before its launch, or before its sidecar read them."""
    for event in events:
        if event.type is EventType.RUN_STATUS and event.run_id and event.data["to"] in TERMINAL:
            try:
                forget_secrets(lab, event.run_id)
                Path(lab.paths.run(event.run_id).secrets).unlink(missing_ok=True)
            except OSError as error:  # the end itself is committed; the next start deletes the file
                log.warning("The secrets of %s could not be deleted: %s", event.run_id, error)


def has_folder(lab: Lab, run_id: str) -> bool:
    return os.path.exists(lab.paths.run(run_id).spec)
