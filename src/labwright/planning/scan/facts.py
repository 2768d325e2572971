"""Facts about a project: plain values that the scan returns, and the roles of flags."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any


class SetBy(StrEnum):
    """How the script receives a value."""

    OPTION = "option"  # --lr 0.1
    JOINED = "joined"  # --lr=0.1, only with the equals sign
    OVERRIDE = "override"  # lr=0.1
    POSITIONAL = "positional"  # 0.1
    ENVIRONMENT = "environment"  # LR=0.1 python train.py
    EDIT = "edit"  # only by editing the file


class Role(StrEnum):
    """The purpose of a flag, independent of its name."""

    STEPS = "steps"
    EPOCHS = "epochs"
    QUICK = "quick"  # a switch such as --fast-dev-run
    SEED = "seed"
    OUTPUT = "output"
    DEVICE = "device"


class Kind(StrEnum):
    TRAIN = "train"
    EVALUATE = "evaluate"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    name: str  # as the program knows it: batch_size, optimizer.lr
    option: str  # as it is typed: --batch-size, optimizer.lr=, BATCH_SIZE=
    set_by: SetBy = SetBy.OPTION
    type: str = "str"  # int, float, bool, str, path; list[int] and so on
    default: Any = None
    required: bool = False
    choices: tuple[Any, ...] = ()
    help: str = ""
    aliases: tuple[str, ...] = ()
    negative: str = ""  # the option that switches it off: --no-amp
    takes_value: bool = True
    command: str = ""  # the subcommand it belongs to
    where: str = ""  # train.py:12
    note: str = ""
    role: Role | None = None

    @property
    def is_settable(self) -> bool:
        return self.set_by is not SetBy.EDIT


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedMetric:
    name: str  # `*` is a part that is known only at run time
    direction: str | None = None  # maximize, minimize
    how: str = ""  # print, json, wandb.log
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPoint:
    path: str  # relative to the project
    kind: Kind = Kind.OTHER
    style: str = "plain"  # argparse, click, typer, tyro, fire, hydra, yaml, hf, dataclass, lightning, globals
    command: str = ""  # how it is started: python train.py, python -m pkg.train, the name of a console script
    module: str = ""  # pkg.train, if it can be imported
    console_script: str = ""
    commands: tuple[str, ...] = ()  # subcommands
    subcommand: str = ""  # the selected one
    flags: tuple[Flag, ...] = ()
    metrics: tuple[LoggedMetric, ...] = ()
    imports: tuple[str, ...] = ()  # packages from outside the project that it cannot start without
    optional_imports: tuple[str, ...] = ()  # others, imported inside `if`, `try` or a function
    cuda_only: tuple[str, ...] = ()  # lines that need a GPU
    score: int = 0
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what could not be read

    @property
    def name(self) -> str:
        """The name in plans: `train.py`, `main.py train`."""
        return f"{self.path} {self.subcommand}".rstrip()

    def under(self, subcommand: str) -> EntryPoint:
        """Return a copy for one subcommand, with its flags and the common ones."""
        flags = tuple(flag for flag in self.flags if flag.command in ("", subcommand))
        return replace(self, subcommand=subcommand, flags=flags)

    def flag(self, name: str) -> Flag | None:
        return next((flag for flag in self.flags if name in (flag.name, flag.option, *flag.aliases)), None)

    def flags_for(self, role: Role) -> list[Flag]:
        return [flag for flag in self.flags if flag.role is role and flag.is_settable]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentFile:
    path: str
    kind: str  # pyproject, requirements, conda, setup, lock, pipfile
    name: str = ""  # the name of the environment
    requires_python: str = ""
    packages: tuple[str, ...] = ()
    installable: bool = False  # `pip install -e .` has something to install
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """An existing environment."""

    kind: str  # venv, conda, micromamba, system
    path: str  # its prefix
    python: str
    version: str = ""
    name: str = ""
    activation: str = ""  # goes in front of a command
    missing: tuple[str, ...] = ()  # imported packages that are not installed
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    files: tuple[EnvironmentFile, ...] = ()
    interpreters: tuple[Interpreter, ...] = ()  # best first
    chosen: Interpreter | None = None
    create: str = ""  # the command that makes one, if no existing one fits
    recipe: str = ""  # the command that its files describe
    activation: str = ""  # goes in front of a run's command
    notes: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The kind for the plan's "Environment" line: venv, conda or system."""
        if self.chosen:
            return "conda" if self.chosen.kind == "micromamba" else self.chosen.kind
        return "conda" if self.activation.startswith(("conda", "mamba", "micromamba")) else "venv"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCommand:
    """A command that was used before."""

    command: str
    where: str
    kind: str  # slurm, script, make, readme, run, history
    options: tuple[str, ...] = ()  # #SBATCH lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedFile:
    """A file that defines the result, such as evaluation code. A plan must not change it."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectScan:
    folder: str
    entry_points: tuple[EntryPoint, ...] = ()  # best first
    environment: Environment = field(default_factory=Environment)
    launches: tuple[LaunchCommand, ...] = ()
    evaluation_files: tuple[ProtectedFile, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    files_seen: int = 0
    seconds: float = 0.0
    complete: bool = True  # False if a limit was reached; `skipped` has the reason

    def entry_point(self, name: str) -> EntryPoint | None:
        """Find an entry point by path, module or console script, optionally followed by a subcommand."""
        script, _, subcommand = name.rpartition(" ")
        for entry in self.entry_points:
            names = (entry.path, entry.module, entry.console_script)
            if name in names:
                return entry
            if script in names and subcommand in entry.commands:
                return entry.under(subcommand)
        return None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


# In order of preference: a rehearsal uses the first that exists.
_NAMES: dict[Role, tuple[str, ...]] = {
    Role.STEPS: (
        "max_steps", "steps", "num_steps", "n_steps", "train_steps", "num_train_steps", "max_train_steps",
        "total_steps", "max_iters", "max_iter", "iters", "n_iters", "num_iters", "iterations", "num_iterations",
        "max_updates", "max_update", "total_timesteps", "max_batches", "limit_train_batches", "max_train_samples",
    ),
    Role.EPOCHS: (
        "epochs", "max_epochs", "num_epochs", "n_epochs", "num_train_epochs", "train_epochs", "nepochs", "epoch",
    ),
    Role.QUICK: ("fast_dev_run", "smoke", "smoke_test", "dry_run", "debug", "quick", "test_run", "tiny"),
    Role.SEED: ("seed", "random_seed", "rng_seed", "manual_seed", "seed_everything", "random_state"),
    Role.OUTPUT: (
        "output_dir", "out_dir", "outdir", "output", "out", "save_dir", "save_path", "log_dir", "logdir",
        "checkpoint_dir", "ckpt_dir", "results_dir", "result_dir", "run_dir", "workdir", "work_dir", "exp_dir",
        "default_root_dir",
    ),
    Role.DEVICE: (
        "device", "accelerator", "gpu", "gpus", "cuda", "no_cuda", "use_cuda", "use_cpu", "cpu", "device_type",
    ),
}  # fmt: skip
_ORDER = {name: (role, place) for role, names in _NAMES.items() for place, name in enumerate(names)}


def plain_name(name: str) -> str:
    """Return the last part of a name in snake case: `trainer.max-Steps` becomes `max_steps`."""
    last = name.lstrip("-").rstrip("=").split(".")[-1].split("/")[-1]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).replace("-", "_").lower()


def role_of(name: str) -> Role | None:
    return _ORDER.get(plain_name(name), (None, 0))[0]


def with_roles(flags: list[Flag]) -> list[Flag]:
    return [replace(flag, role=role_of(flag.name)) for flag in flags]


def rehearsal_flags(flags: tuple[Flag, ...]) -> list[tuple[Flag, object]]:
    """Return flags that shorten a run, best first, each with its value."""
    values: dict[Role, object] = {Role.STEPS: 2, Role.EPOCHS: 1, Role.QUICK: True}
    settable = [flag for flag in flags if flag.is_settable and flag.role in values]
    ranks = list(values)
    ordered = sorted(
        settable, key=lambda flag: (ranks.index(flag.role or Role.QUICK), _ORDER[plain_name(flag.name)][1])
    )
    return [(flag, values[flag.role or Role.QUICK]) for flag in ordered]
