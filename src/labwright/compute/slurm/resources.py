"""The sbatch options of a run. The run's own fields come before the options of its `srun` and the defaults."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from labwright.compute.slurm.srun import sizes_in, srun_sizes
from labwright.domain.errors import Invalid
from labwright.domain.run import Run
from labwright.settings import load_table

_OPTION = re.compile(r"--([a-z][a-z0-9-]*)(?:=(.*))?|-([A-Za-z])(\S*)", re.DOTALL)
_SIGNAL = re.compile(r"--signal=(?:[BR]+:)?([A-Z0-9]+)(?:@(\d+))?", re.IGNORECASE)
_SIGNALLED_BEFORE_SECONDS = 60  # before the limit, if the option has no time
_LONGEST_WARNING_SECONDS = 65_535  # the most that Slurm accepts
_EARLY_SECONDS = 60  # Slurm may send the signal this much too early
_SHORT = {
    "J": "job-name",
    "o": "output",
    "e": "error",
    "i": "input",
    "a": "array",
    "D": "chdir",
    "W": "wait",
    "M": "clusters",
    "h": "help",
    "V": "version",
}
_SWITCHES = frozenset("hHIOQRuvV")  # these take no value: a letter that follows is another option
_INSTEAD = {  # options that Labwright sets itself, and what to use instead
    "job-name": "Name the run: `name`, --name.",
    "output": "Read it with labwright logs.",
    "error": "Read it with labwright logs.",
    "input": "Redirect it in the command.",
    "open-mode": "Read the output with labwright logs.",
    "array": "Make a sweep of it.",
    "chdir": "Use `workdir`.",
    "wait": "Use labwright wait.",
    "wrap": "Use `command`.",
    "export": "Use `env`.",
    "export-file": "Use `env`.",
    "get-user-env": "Use `env`.",
    "clusters": "Start the server with SLURM_CLUSTERS set.",
    "uid": "Jobs are those of the server's own user.",
    "gid": "Jobs are those of the server's own user.",
    "test-only": "Ask sbatch itself.",
    "parsable": "Leave it out.",
    "ignore-pbs": "Leave it out.",
    "usage": "Ask sbatch itself.",
    "help": "Ask sbatch itself.",
    "version": "Ask sbatch itself.",
}
_FIELDS = ("partition", "account", "qos", "constraint", "gres")
_GPU_OPTIONS = ("gres", "gpus", "gpus-per-node", "gpus-per-task")
_MEMORY_OPTIONS = ("mem", "mem-per-cpu", "mem-per-gpu")
_SIGNAL_HINT = "Choose USR1, USR2, INT or HUP."
_UNFIT_SIGNALS = frozenset({signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD})


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmDefaults:
    """The `[slurm]` table of `labwright.toml`."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    gres: str = ""
    extra: tuple[str, ...] = ()
    python: str = ""  # the interpreter on the nodes, if it is not this one
    query_seconds: float = 5.0  # the shortest pause between two queries to the controller


def load_defaults(project: Path) -> SlurmDefaults:
    known = {field.name: field.type for field in fields(SlurmDefaults)}
    values = load_table(project, "slurm")
    for name, value in values.items():
        if name not in known:
            raise Invalid(f"[slurm] in labwright.toml: unknown setting {name!r}.", hint=f"Known: {', '.join(known)}.")
        where = f"[slurm] {name} in labwright.toml"
        if name == "extra":
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise Invalid(f"{where} must be a list of texts.")
            check_extra(value, where)
        elif name == "query_seconds":
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise Invalid(f"{where} must be a number above 0.")
        elif not isinstance(value, str):
            raise Invalid(f"{where} must be text.")
    return SlurmDefaults(**{**values, "extra": tuple(values.get("extra", ()))})


def check_extra(extra: list[str], where: str = "slurm.extra") -> None:
    """Check that each item is one whole option, and none that Labwright sets itself."""
    for item in extra:
        match = _OPTION.fullmatch(item)
        if not match:
            raise Invalid(f"{where}: {item!r} is not an option.", hint="Write each as --name=value or --name.")
        if match[3] in _SWITCHES and match[4].strip(match[3]):
            raise Invalid(f"{where}: {item!r} has several options.", hint="Write each option as a separate text.")
        # sbatch accepts a prefix for the whole name, so we refuse prefixes too.
        option = match[1] or _SHORT.get(match[3], "")
        if option and (name := next((name for name in _INSTEAD if name.startswith(option)), None)):
            raise Invalid(f"{where}: {item!r} is not allowed, as Labwright sets --{name}.", hint=_INSTEAD[name])
    signal_before_limit(extra, where)


def signal_before_limit(extra: list[str], where: str = "slurm.extra") -> int | None:
    """Return the signal that a run gets before its time limit, set by `--signal=USR1@120`."""
    for item in extra:
        if match := _SIGNAL.fullmatch(item):
            name = match[1]
            try:
                number = int(name) if name.isdigit() else signal.Signals[f"SIG{name.upper().removeprefix('SIG')}"].value
            except KeyError:
                raise Invalid(f"{where}: there is no signal {name}.", hint=_SIGNAL_HINT) from None
            if number in _UNFIT_SIGNALS:
                raise Invalid(f"{where}: {name} cannot be a warning.", hint=_SIGNAL_HINT)
            return number
        if item.startswith("--si"):  # also a prefix, which sbatch accepts
            raise Invalid(f"{where}: {item!r} cannot be read.", hint="Write --signal=USR1@120: signal and seconds.")
    return None


def sbatch_options(run: Run, defaults: SlurmDefaults) -> tuple[str, ...]:
    """Return the sbatch options of a run. Runs with equal options fit into one array."""
    fields_set = run.slurm or {}
    minutes = _minutes(run)
    sizes = {
        "cpus-per-task": str(run.cpus) if run.cpus else None,
        "mem": f"{run.memory_mb}M" if run.memory_mb else None,
        "nodes": str(run.nodes) if run.nodes else None,
        "time": str(minutes) if minutes else None,  # Slurm counts minutes; the sidecar stops at the second
    }
    options = {name: getattr(defaults, name) for name in _FIELDS}
    _override(options, srun_sizes(run.command, Path(run.workdir)))
    _override(options, {name: fields_set.get(name) for name in _FIELDS})
    if run.gpus and not fields_set.get("gres"):
        _override(options, {"gres": f"gpu:{run.gpus}"})
    _override(options, sizes)
    is_set = {name for name, value in options.items() if value}
    if not {"nodes", "ntasks", "ntasks-per-node"} & is_set:
        options["ntasks"] = "1"
    elif run.nodes and "ntasks" not in is_set:
        options.setdefault("ntasks-per-node", "1")  # the sidecar runs once; the command starts its own tasks
    return (*(f"--{name}={value}" for name, value in options.items() if value), *_extra(run, defaults))


def _override(options: dict[str, str], stronger: Mapping[str, str | None]) -> None:
    """Apply stronger options. A GPU option replaces all other GPU options, and likewise for memory."""
    values = {name: value for name, value in stronger.items() if value}
    for alternatives in (_GPU_OPTIONS, _MEMORY_OPTIONS):
        if any(name in values for name in alternatives):
            for name in alternatives:
                options.pop(name, None)
    options.update(values)


def _minutes(run: Run) -> int | None:
    return math.ceil(run.time_limit_seconds / 60) if run.time_limit_seconds else None


def _extra(run: Run, defaults: SlurmDefaults) -> list[str]:
    """Return the extra options. A warning signal goes to the sidecar, which is the batch shell (`B:`).

    If the run has a time limit, the sidecar sends the signal at the right second. Slurm may be early, so its signal is
    set to a later time. It is still needed because some clusters send it before a preemption.
    """
    shift = 0
    if run.time_limit_seconds:
        shift = math.ceil((_minutes(run) or 0) * 60 - run.time_limit_seconds) - _EARLY_SECONDS

    def to_sidecar(match: re.Match[str]) -> str:
        return f"--signal=B:{match[1]}@{min(max(0, _seconds_before(match) + shift), _LONGEST_WARNING_SECONDS)}"

    items = [*defaults.extra, *(run.slurm or {}).get("extra", ())]
    return [_SIGNAL.sub(to_sidecar, item) for item in items]


def _seconds_before(match: re.Match[str]) -> int:
    return int(match[2] or _SIGNALLED_BEFORE_SECONDS)


def warning_of(run: Run, defaults: SlurmDefaults) -> dict[str, float | None]:
    """Return the signal that the sidecar passes on, and when it sends the signal itself to a run with a time limit."""
    extra = [*(run.slurm or {}).get("extra", ()), *defaults.extra]
    before = next((_seconds_before(match) for item in extra if (match := _SIGNAL.fullmatch(item))), None)
    limit = run.time_limit_seconds
    after = None if before is None or not limit else max(0.0, limit - before)
    return {"warning_signal": signal_before_limit(extra), "warning_after_seconds": after}


def gpus_held(run: Run, defaults: SlurmDefaults) -> int:
    """Return how many GPUs a job holds on all its nodes. A range of nodes counts as its maximum; the default is one."""
    words = sbatch_options(run, defaults)  # each option includes its value
    sizes = dict(size for word in words for size in sizes_in([word]))  # the last one counts, as in sbatch
    nodes = _last_number(sizes.get("nodes", "1"))
    if "gpus" in sizes:
        return _sum_listed(sizes["gpus"])
    if "gpus-per-node" in sizes:
        return _sum_listed(sizes["gpus-per-node"]) * nodes
    if "gpus-per-task" in sizes:
        per_node = _last_number(sizes.get("ntasks-per-node", "1"))
        return _sum_listed(sizes["gpus-per-task"]) * _last_number(sizes.get("ntasks", str(per_node * nodes)))
    cards = [item for item in sizes.get("gres", "").split(",") if re.match(r"gpu(:|$)", item)]
    return sum(_last_number(item) for item in cards) * nodes


def _sum_listed(text: str) -> int:
    """Sum up `4` or `a100:2,v100:1`."""
    return sum(_last_number(item) for item in text.split(","))


def _last_number(text: str) -> int:
    """Return the number in `2-4` or `gpu:a100:2`; a kind without a number counts as one."""
    match = re.search(r"(?:^|[:-])(\d+)$", text)
    return int(match[1]) if match else 1
