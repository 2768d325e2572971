"""From what somebody asks for to a run that can be queued: every check, default and warning in one place."""

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
from labwright.domain.command_line import as_text
from labwright.domain.errors import Invalid, StorageFailed
from labwright.domain.ids import RUN, new_id
from labwright.domain.run import GpuwrapConfig, Run, name_from
from labwright.domain.search.configurations import SEED, config_hash
from labwright.files import write_json

# Of one line each: across lines, a long script would be read to its end from each of them.
_PICKS_CARDS = re.compile(
    r"(?:^|[;&|({])[ \t]*(?:(?:do|then|else|time|exec|nohup|export|env)[ \t]+)*(?:[A-Za-z_]\w*=\S*[ \t]+)*"
    r"CUDA_VISIBLE_DEVICES=(\"[^\"]*\"|'[^']*'|[^\s;&|)]*)",
    re.MULTILINE,
)
_NAME_LENGTH = 80
_NO_CARDS = {"", "-1", "NoDevFiles", "none", "void"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    command: str
    id: str | None = None  # of who may have to ask twice for the same run
    name: str | None = None
    workdir: str | None = None
    sweep_id: str | None = None
    parent_run_id: str | None = None
    chat_session_id: str | None = None
    plan_id: str | None = None
    auto_start: bool = False
    gpuwrap_config: GpuwrapConfig | None = None
    gpus: int | None = None
    cpus: int | None = None
    memory_mb: int | None = None
    time_limit_seconds: float | None = None
    env: dict[str, str] = field(default_factory=dict)
    caller_env: dict[str, str] | None = None
    env_hash: str | None = None
    secrets_before: tuple[str, ...] = ()  # names that the run had which this one repeats
    secrets: dict[str, str] = field(default_factory=dict)  # values for these
    tags: tuple[str, ...] = ()
    params: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    after: tuple[str, ...] = ()
    priority: int = 0
    tty: bool = False
    use_snapshot: bool = False
    approved: str | None = None
    snapshot: dict[str, Any] | None = None  # of an earlier run, to execute the same code again
    nodes: int | None = None
    slurm: dict[str, Any] | None = None
    notes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    run: Run
    secrets: dict[str, str]

    def keep_secrets(self, lab: Lab) -> None:
        keep_secrets(lab, self.run.id, self.secrets)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentPlan:
    plain: dict[str, str]
    secrets: dict[str, str]
    caller_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPlan:
    gpus: int
    named: tuple[str, ...]
    wrap: GpuwrapConfig | None
    warnings: tuple[str, ...]


def plan_run(
    lab: Lab, wanted: NewRun, actor: Actor, *, with_code: bool = True, command_field: str = "command"
) -> PlannedRun:
    """`command_field` is where the request has the command."""
    workdir = _check(lab, wanted, command_field)
    env = _plan_environment(lab, wanted)
    missing = tuple(sorted(set(wanted.secrets_before) - env.secrets.keys() - env.plain.keys()))
    gpu = plan_gpus(lab.cluster.current, wanted, {**_caller_environment(lab, wanted), **wanted.env})
    run = Run(
        id=wanted.id or new_id(RUN),
        name=wanted.name or name_from(wanted.command),
        command=wanted.command,
        workdir=str(workdir),
        created_at=now(),
        created_by=str(actor),
        sweep_id=wanted.sweep_id,
        parent_run_id=wanted.parent_run_id,
        chat_session_id=wanted.chat_session_id,
        plan_id=wanted.plan_id,
        gpuwrap_config=gpu.wrap,
        gpus=gpu.gpus,
        named_gpus=gpu.named,
        cpus=wanted.cpus,
        memory_mb=wanted.memory_mb,
        time_limit_seconds=wanted.time_limit_seconds,
        nodes=wanted.nodes,
        slurm=wanted.slurm,
        env=env.plain,
        secret_env=tuple(sorted(env.secrets)),
        missing_secrets=missing,
        env_hash=env.caller_hash,
        params=wanted.params,
        seed=wanted.seed,
        config_hash=config_hash(wanted.params) if wanted.params else None,
        tags=wanted.tags,
        notes=wanted.notes,
        after=tuple(dict.fromkeys(wanted.after)),
        priority=wanted.priority,
        tty=wanted.tty,
        use_snapshot=wanted.use_snapshot,
        approved=wanted.approved,
        snapshot=wanted.snapshot or (_code_for(lab, wanted, workdir) if with_code else None),
        warnings=(*gpu.warnings, *_secret_warnings(missing)),
    )
    return PlannedRun(run=run, secrets=env.secrets)


def _check(lab: Lab, wanted: NewRun, command_field: str) -> Path:
    """The folder that it is to run in, if everything said of it can be done."""
    if not wanted.command.strip():
        raise Invalid("The command is empty.", hint='Send what a shell would run, e.g. "python train.py --lr 0.1".')
    workdir = _check_workdir(lab, wanted.workdir)
    with _faults_in("slurm", "extra"):
        check_extra((wanted.slurm or {}).get("extra", []))
    if lab.cluster.current.type is ClusterType.SLURM:
        with _faults_in(command_field):
            refuse_nested(wanted.command, workdir)
    return workdir


@contextmanager
def _faults_in(*place: str) -> Iterator[None]:
    """What is wrong is wrong with this field of the request."""
    try:
        yield
    except Invalid as error:
        raise Invalid(error.message, hint=error.hint, field=place) from error


def _check_workdir(lab: Lab, text: str | None) -> Path:
    if text is None:
        return lab.paths.project
    workdir = lab.paths.project / os.path.expanduser(text)
    if not os.path.isdir(workdir):
        what = "is not a folder" if os.path.exists(workdir) else "does not exist"
        hint = "Make the folder, or leave workdir out."
        raise Invalid(f"The workdir {workdir} {what}.", hint=hint, field=("workdir",))
    if not os.access(workdir, os.R_OK | os.X_OK):
        raise Invalid(f"The workdir {workdir} cannot be entered.", hint="Check its permissions.", field=("workdir",))
    return workdir.resolve()


def _plan_environment(lab: Lab, wanted: NewRun) -> EnvironmentPlan:
    plain, secrets = split_secrets(wanted.env)
    caller_hash, caller_secrets = _keep_caller_environment(lab, wanted)
    return EnvironmentPlan(
        plain=plain, secrets={**caller_secrets, **wanted.secrets, **secrets}, caller_hash=caller_hash
    )


def _keep_caller_environment(lab: Lab, wanted: NewRun) -> tuple[str | None, dict[str, str]]:
    """The caller's environment by content, shared by all runs sent from one shell; its secrets apart from it."""
    if wanted.caller_env is None:
        return wanted.env_hash, {}
    cleaned = for_jobs(wanted.caller_env, lab.paths.project, sys.prefix, keep_keys=True)
    plain, secrets = split_secrets({name: cleaned[name] for name in cleaned.keys() - lab.private_variables})
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:32]
    target = lab.paths.environment(digest)
    if not target.exists():
        target.parent.mkdir(mode=0o700, exist_ok=True)
        write_json(target, plain)
    return digest, secrets


def _caller_environment(lab: Lab, wanted: NewRun) -> dict[str, str]:
    """As it was sent, or, for a rerun, as it was kept."""
    if wanted.caller_env is not None or wanted.env_hash is None:
        return wanted.caller_env or {}
    return kept_environment(lab, wanted.env_hash)


def _secret_warnings(missing: tuple[str, ...]) -> tuple[str, ...]:
    if not missing:
        return ()
    names = ", ".join(missing)
    return (
        f"Secret variables are not kept after a launch, so this run has no {names} of its own; "
        "`labwright rerun` in a shell that has them passes them on.",
    )


def _code_for(lab: Lab, wanted: NewRun, workdir: Path) -> dict[str, Any] | None:
    taken = take_snapshot(lab, workdir)
    if not wanted.use_snapshot:
        return taken
    if taken is None:
        raise Invalid(
            f"There is no snapshot of {workdir}: a whole disk or home folder is not a project's code.",
            hint="Leave the snapshot out, or name the folder of the code as workdir.",
        )
    lab.snapshots.check_complete(taken["hash"])
    return taken


def take_snapshot(lab: Lab, workdir: Path) -> dict[str, Any] | None:
    root = snapshot_root(lab, workdir)
    if str(root) in ("/", os.path.expanduser("~")):
        return None  # not a project's code
    try:
        return lab.snapshots.take(root).to_dict()
    except OSError as error:
        raise StorageFailed(f"The code snapshot cannot be written: {error}.") from error


def plan_gpus(cluster: Cluster, wanted: NewRun, env: dict[str, str]) -> GpuPlan:
    """What the run gets, by the kind of machine and by what it says itself."""
    if cluster.type is ClusterType.SLURM:
        return _from_slurm(wanted)
    if cluster.type is not ClusterType.LOCAL_GPU:
        return _without_gpus(wanted)
    named = cards_named_by(wanted.command, env)
    if named is not None:
        return _with_named_cards(cluster, wanted, named)
    gpus = 1 if wanted.gpus is None else wanted.gpus
    if gpus > cluster.gpu_count:
        raise Invalid(
            f"The run asks for {gpus} GPUs; this machine has {cluster.gpu_count}.",
            hint=f"Ask for at most {cluster.gpu_count}, or use a larger machine.",
            field=("gpus",),
        )
    advised = GpuwrapConfig(enabled=cluster.gpuwrap is GpuwrapAdvice.ENABLED)
    return GpuPlan(gpus=gpus, named=(), wrap=wanted.gpuwrap_config or advised, warnings=())


def _from_slurm(wanted: NewRun) -> GpuPlan:
    warnings = []
    if wanted.gpuwrap_config and wanted.gpuwrap_config.enabled:
        warnings.append("gpuwrap is off for this run: on Slurm the cards of a job are its own while it runs.")
    gres = _asked_gres(wanted.slurm or {})
    if wanted.gpus and gres and count_gpus(gres) != wanted.gpus:
        warnings.append(f"gpus is {wanted.gpus}, but gres={gres} counts: that is what Slurm is asked for.")
    return GpuPlan(gpus=wanted.gpus or 0, named=(), wrap=GpuwrapConfig(enabled=False), warnings=tuple(warnings))


def _asked_gres(slurm: dict[str, Any]) -> str:
    """Of its own field, or among the further options, which come last and win."""
    further = [str(item).removeprefix("--gres=") for item in slurm.get("extra", ()) if str(item).startswith("--gres=")]
    return further[-1] if further else str(slurm.get("gres") or "")


def _without_gpus(wanted: NewRun) -> GpuPlan:
    warnings = []
    if wanted.gpuwrap_config and wanted.gpuwrap_config.enabled:
        warnings.append("gpuwrap is off for this run: there is no GPU on this machine to wrap.")
    if wanted.gpus:
        warnings.append(f"The run asks for {wanted.gpus} GPU(s); this machine has none, so it runs without.")
    return GpuPlan(gpus=0, named=(), wrap=GpuwrapConfig(enabled=False), warnings=tuple(warnings))


def _with_named_cards(cluster: Cluster, wanted: NewRun, named: tuple[str, ...]) -> GpuPlan:
    """It counts for no more cards than there are, whatever it names: for more it would wait for ever."""
    gpus = min(len(set(named)), cluster.gpu_count)
    warnings = []
    if wanted.gpuwrap_config and wanted.gpuwrap_config.enabled:
        warnings.append(
            "gpuwrap is off for this run: it sets CUDA_VISIBLE_DEVICES itself. Cards it names are leased, if any."
        )
    if wanted.gpus is not None and wanted.gpus != gpus:
        warnings.append(
            f"gpus is {wanted.gpus}, but the run sets CUDA_VISIBLE_DEVICES={','.join(named)} itself: that counts."
        )
    return GpuPlan(gpus=gpus, named=named, wrap=GpuwrapConfig(enabled=False), warnings=tuple(warnings))


def cards_named_by(command: str, env: dict[str, str]) -> tuple[str, ...] | None:
    """The cards that a run picks by itself, in all places of its command; None if it leaves the choice to us."""
    texts = [text.strip("\"'") for text in _PICKS_CARDS.findall(command)]  # an open quote is bash's to complain about
    texts = [text for text in texts if "CUDA_VISIBLE_DEVICES" not in text]  # ${CUDA_VISIBLE_DEVICES:-0}: what we set
    if not texts and "CUDA_VISIBLE_DEVICES" in env:
        texts = [env["CUDA_VISIBLE_DEVICES"]]
    if not texts:
        return None
    names = [name.strip() for text in texts for name in text.split(",")]
    return tuple(name for name in names if name not in _NO_CARDS)


def name_from_params(params: Mapping[str, Any], seed: int | None) -> str:
    """Return the name of a run that a sweep creates, such as `lr=0.1 seed=3`."""
    values = dict(params) if seed is None else {**params, SEED: seed}
    text = " ".join(" ".join(f"{name}={as_text(value)}" for name, value in values.items()).split())
    return text if len(text) <= _NAME_LENGTH else f"{text[: _NAME_LENGTH - 1]}…"
