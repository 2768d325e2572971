"""What a run's own command says to Slurm: an `srun` sizes the allocation, an `sbatch` has no place in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from labwright.compute.slurm.shell_commands import commands_in
from labwright.domain.errors import Invalid

_LONG = {
    "N": "nodes",
    "n": "ntasks",
    "c": "cpus-per-task",
    "G": "gpus",
    "p": "partition",
    "A": "account",
    "q": "qos",
    "C": "constraint",
    "t": "time",
    "w": "nodelist",
    "x": "exclude",
}
_NUMBERS = frozenset({"nodes", "ntasks", "cpus-per-task", "ntasks-per-node", "cpus-per-gpu"})
_SIZES = frozenset(_LONG.values()) | _NUMBERS
_SIZES |= {"gres", "gpus-per-node", "gpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu"}
_SHORT_WITH_VALUE = frozenset("NncGpACtwxJoeiDmdBLTSMKrq")  # of srun; others are switches
_LONG_SWITCHES = frozenset(
    ["exclusive", "overlap", "label", "unbuffered", "pty", "verbose", "quiet", "overcommit", "exact", "preserve-env"]
)


def srun_sizes(command: str, folder: Path | None = None) -> dict[str, str]:
    """Options of the command's `srun`s under their long names; of several the largest number, else the first."""
    found: dict[str, str] = {}
    for call in commands_in(command, folder):
        if call.program == "srun":
            for name, value in sizes_in(call.words[1:]):
                found[name] = _larger(name, found.get(name), value)
    return found


def refuse_nested(command: str, folder: Path | None = None) -> None:
    """Also where it is hidden in a script of the project."""
    for call in commands_in(command, folder):
        if call.program in ("sbatch", "salloc"):
            where = f"{call.place.script} calls" if call.place.script else "The command calls"
            raise Invalid(
                f"{where} {call.program}; the run itself is sent to Slurm already.",
                hint="Send what the batch script runs as `command`, and its #SBATCH lines as `gpus`, `cpus`, "
                "`memory_mb`, `time_limit_seconds`, `nodes` and `slurm` {partition, account, qos, constraint, gres, "
                "extra}.",
            )


def sizes_in(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Until the first word that is no option: that is what srun starts."""
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        word = rest.pop(0)
        name, value, takes_next = _split(word)
        if takes_next and rest:
            value = rest.pop(0)
        if name in _SIZES and value:
            yield name, value


def _split(word: str) -> tuple[str, str, bool]:
    """Long name, value, and whether the value is the next word."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        return name, value, not equals and name not in _LONG_SWITCHES
    letter, value = word[1:2], word[2:].removeprefix("=")
    return _LONG.get(letter, letter), value, not value and letter in _SHORT_WITH_VALUE


def _larger(name: str, known: str | None, value: str) -> str:
    if known is None or name not in _NUMBERS or not (known.isdigit() and value.isdigit()):
        return known or value
    return str(max(int(known), int(value)))
