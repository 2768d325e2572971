"""Turn a request for a run into a run that can be queued: every check, default and warning."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labwright.compute.environment import for_jobs, split_secrets
from labwright.compute.lab import Lab
from labwright.compute.runs.folder import keep_secrets, kept_environment, snapshot_root
from labwright.compute.slurm.probe import count_gpus
from labwright.compute.slurm.resources import check_extra
from labwright.compute.slurm.srun import refuse_nested
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.cluster import Cluster, ClusterType, GpuwrapAdvice
from labwright.domain.command_line import as_text, options_of, shape
from labwright.domain.errors import Invalid, StorageFailed
from labwright.domain.ids import RUN, new_id
from labwright.domain.run import GpuwrapConfig, Run, RunSpec, name_from
from labwright.domain.search.configurations import SEED, config_hash
from labwright.files import write_json

# Matches within one line. Across lines, the search in a long script would take quadratic time.
_SELECTS_GPUS = re.compile(
    r"(?:^|[;&|({])[ \t]*(?:(?:do|then|else|time|exec|nohup|export|env)[ \t]+)*(?:[A-Za-z_]\w*=\S*[ \t]+)*"
    r"CUDA_VISIBLE_DEVICES=(\"[^\"]*\"|'[^']*'|[^\s;&|)]*)",
    re.MULTILINE,
)
_NAME_LENGTH = 80
_NO_GPUS = {"", "-1", "NoDevFiles", "none", "void"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun(RunSpec):
    """A request for a run: its spec, plus fields that matter only while it is created.

    `snapshot` is set if the run executes the code of an earlier run.
    """

    id: str | None = None  # set by callers that may repeat the request
    auto_start: bool = False
    caller_env: dict[str, str] | None = None  # the whole environment to use instead of the server's
    secrets_before: tuple[str, ...] = ()  # names of the parent run's secret variables
    secrets: dict[str, str] = field(default_factory=dict)  # values for these names


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    run: Run
    secrets: dict[str, str]

    def keep_secrets(self, lab: Lab) -> None:
        keep_secrets(lab, self.run.id, self.secrets)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPlan:
    gpus: int
    named: tuple[str, ...]
    wrap: GpuwrapConfig | None
    warnings: tuple[str, ...]


def plan_run(
    lab: Lab, request: NewRun, actor: Actor, *, with_code: bool = True, command_field: str = "command"
) -> PlannedRun:
    """Check the request and return the run. `command_field` is the field of the request that holds the command."""
    workdir = _check(lab, request, command_field)
    env, own_secrets = split_secrets(request.env)
    env_hash, caller_secrets = _keep_caller_environment(lab, request)
    caller_env = request.caller_env
    if caller_env is None and request.env_hash is not None:  # a rerun
        caller_env = kept_environment(lab, request.env_hash)
    gpu = plan_gpus(lab.cluster.current, request, {**(caller_env or {}), **request.env})
    warnings = list(gpu.warnings)
    secrets = {**caller_secrets, **request.secrets, **own_secrets}
    missing = tuple(sorted(set(request.secrets_before) - secrets.keys() - env.keys()))
    if missing:
        warnings.append(
            f"Secret variables are not stored after a launch, so this run starts without {', '.join(missing)}. "
            "Use `labwright rerun` in a shell that has them to pass them on."
        )
    params, identity = request.params, request.params
    if not params:  # made by hand: the command says what is run
        params = options_of(request.command)
        identity = {**params, "command": list(shape(request.command))} if params else {}
    filled_in = {
        "name": request.name or name_from(request.command),
        "workdir": str(workdir),
        "gpuwrap_config": gpu.wrap,
        "gpus": gpu.gpus,
        "env": env,
        "env_hash": env_hash,
        "after": tuple(dict.fromkeys(request.after)),
        "params": params,
        "snapshot": request.snapshot or (_code_for(lab, request, workdir) if with_code else None),
    }
    run = Run(
        **{**request.spec_fields(), **filled_in},
        id=request.id or new_id(RUN),
        created_at=now(),
        created_by=str(actor),
        named_gpus=gpu.named,
        secret_env=tuple(sorted(secrets)),
        missing_secrets=missing,
        config_hash=config_hash(identity) if identity else None,
        warnings=tuple(warnings),
    )
    return PlannedRun(run=run, secrets=secrets)


def _check(lab: Lab, request: NewRun, command_field: str) -> Path:
    """Return the resolved workdir if the request is valid."""
    if not request.command.strip():
        raise Invalid("The command is empty.", hint='Send a shell command, e.g. "python train.py --lr 0.1".')
    workdir = lab.paths.project
    if request.workdir is not None:
        workdir /= os.path.expanduser(request.workdir)
        if not os.path.isdir(workdir):
            problem = "is not a folder" if os.path.exists(workdir) else "does not exist"
            hint = "Create the folder, or omit workdir."
            raise Invalid(f"The workdir {workdir} {problem}.", hint=hint, field=("workdir",))
        if not os.access(workdir, os.R_OK | os.X_OK):
            hint = "Check its permissions."
            raise Invalid(f"The workdir {workdir} cannot be entered.", hint=hint, field=("workdir",))
        workdir = workdir.resolve()
    with _errors_in_field("slurm", "extra"):
        check_extra((request.slurm or {}).get("extra", []))
    if lab.cluster.current.type is ClusterType.SLURM:
        with _errors_in_field(command_field):
            refuse_nested(request.command, workdir)
    return workdir


@contextmanager
def _errors_in_field(*path: str) -> Iterator[None]:
    """Report errors of the block as errors in this field of the request."""
    try:
        yield
    except Invalid as error:
        raise Invalid(error.message, hint=error.hint, field=path) from error


def _keep_caller_environment(lab: Lab, request: NewRun) -> tuple[str | None, dict[str, str]]:
    """Store the caller's environment once per content. Return its hash and its secrets, which are not stored."""
    if request.caller_env is None:
        return request.env_hash, {}
    cleaned = for_jobs(request.caller_env, lab.paths.project, sys.prefix, keep_keys=True)
    plain, secrets = split_secrets({name: cleaned[name] for name in cleaned.keys() - lab.private_variables})
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:32]
    target = lab.paths.environment(digest)
    if not target.exists():
        target.parent.mkdir(mode=0o700, exist_ok=True)
        write_json(target, plain)
    return digest, secrets


def _code_for(lab: Lab, request: NewRun, workdir: Path) -> dict[str, Any] | None:
    taken = take_snapshot(lab, workdir)
    if not request.use_snapshot:
        return taken
    if taken is None:
        raise Invalid(
            f"{workdir} cannot be snapshotted: it is a whole disk or a home folder.",
            hint="Set workdir to the folder of your code, or do not use a snapshot.",
        )
    lab.snapshots.check_complete(taken["hash"])
    return taken


def take_snapshot(lab: Lab, workdir: Path) -> dict[str, Any] | None:
    root = snapshot_root(lab, workdir)
    if str(root) in ("/", os.path.expanduser("~")):
        return None
    try:
        return lab.snapshots.take(root).to_dict()
    except OSError as error:
        raise StorageFailed(f"The code snapshot cannot be written: {error}.") from error


def plan_gpus(cluster: Cluster, request: NewRun, env: dict[str, str]) -> GpuPlan:
    """Return the GPUs that the run gets, according to the machine, the request and the command itself."""
    if cluster.type is ClusterType.SLURM:
        return _from_slurm(request)
    if cluster.type is not ClusterType.LOCAL_GPU:
        return _without_gpus(request)
    named = gpus_named_by(request.command, env)
    if named is not None:
        return _with_named_gpus(cluster, request, named)
    gpus = 1 if request.gpus is None else request.gpus
    if gpus > cluster.gpu_count:
        raise Invalid(
            f"The run requests {gpus} GPUs, but this machine has {cluster.gpu_count}.",
            hint=f"Request at most {cluster.gpu_count} GPUs.",
            field=("gpus",),
        )
    advised = GpuwrapConfig(enabled=cluster.gpuwrap is GpuwrapAdvice.ENABLED)
    return GpuPlan(gpus=gpus, named=(), wrap=request.gpuwrap_config or advised, warnings=())


def _from_slurm(request: NewRun) -> GpuPlan:
    warnings = []
    if request.gpuwrap_config and request.gpuwrap_config.enabled:
        warnings.append("gpuwrap is off for this run: Slurm gives each job its own GPUs.")
    slurm = request.slurm or {}
    extra = [str(option) for option in slurm.get("extra", ())]
    further = [option.removeprefix("--gres=") for option in extra if option.startswith("--gres=")]
    gres = further[-1] if further else str(slurm.get("gres") or "")  # an option in `extra` overrides the field
    if request.gpus and gres and count_gpus(gres) != request.gpus:
        warnings.append(f"gpus is {request.gpus}, but gres={gres} takes precedence on Slurm.")
    return GpuPlan(gpus=request.gpus or 0, named=(), wrap=GpuwrapConfig(enabled=False), warnings=tuple(warnings))


def _without_gpus(request: NewRun) -> GpuPlan:
    warnings = []
    if request.gpuwrap_config and request.gpuwrap_config.enabled:
        warnings.append("gpuwrap is off for this run: this machine has no GPU.")
    if request.gpus:
        warnings.append(f"The run requests {request.gpus} GPU(s), but this machine has none. It runs without a GPU.")
    return GpuPlan(gpus=0, named=(), wrap=GpuwrapConfig(enabled=False), warnings=tuple(warnings))


def _with_named_gpus(cluster: Cluster, request: NewRun, named: tuple[str, ...]) -> GpuPlan:
    """Count at most the GPUs of the machine; a run that needs more would wait forever."""
    gpus = min(len(set(named)), cluster.gpu_count)
    warnings = []
    if request.gpuwrap_config and request.gpuwrap_config.enabled:
        warnings.append(
            "gpuwrap is off for this run: it sets CUDA_VISIBLE_DEVICES itself. The GPUs that it names are leased."
        )
    if request.gpus is not None and request.gpus != gpus:
        warnings.append(
            f"gpus is {request.gpus}, but the run sets CUDA_VISIBLE_DEVICES={','.join(named)}, which takes precedence."
        )
    return GpuPlan(gpus=gpus, named=named, wrap=GpuwrapConfig(enabled=False), warnings=tuple(warnings))


def gpus_named_by(command: str, env: dict[str, str]) -> tuple[str, ...] | None:
    """Return the GPUs that the command or its environment selects, or None if it leaves the choice to the server."""
    texts = [text.strip("\"'") for text in _SELECTS_GPUS.findall(command)]  # bash reports an unclosed quote
    texts = [text for text in texts if "CUDA_VISIBLE_DEVICES" not in text]  # ${CUDA_VISIBLE_DEVICES:-0}: set by us
    if not texts and "CUDA_VISIBLE_DEVICES" in env:
        texts = [env["CUDA_VISIBLE_DEVICES"]]
    if not texts:
        return None
    names = [name.strip() for text in texts for name in text.split(",")]
    return tuple(name for name in names if name not in _NO_GPUS)


def name_from_params(params: Mapping[str, Any], seed: int | None) -> str:
    """Return the name of a run that a sweep creates, such as `lr=0.1 seed=3`."""
    values = dict(params) if seed is None else {**params, SEED: seed}
    text = " ".join(" ".join(f"{name}={as_text(value)}" for name, value in values.items()).split())
    return text if len(text) <= _NAME_LENGTH else f"{text[: _NAME_LENGTH - 1]}…"
