"""What a run's own command says to Slurm: an `srun` sizes the allocation, an `sbatch` has no place in it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator

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
_BEFORE_A_COMMAND = frozenset(["exec", "time", "env", "nohup", "command", "then", "do", "else", "!", "{", "sudo", "if"])
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_ENDS_A_COMMAND = re.compile(r"[;&|()]+")


def srun_sizes(command: str) -> dict[str, str]:
    """Options of the command's `srun`s under their long names; of several the largest number, else the first."""
    found: dict[str, str] = {}
    for words in commands_in(command):
        if os.path.basename(words[0]) == "srun":
            for name, value in _options(words[1:]):
                found[name] = _larger(name, found.get(name), value)
    return found


def refuse_nested(command: str) -> None:
    for words in commands_in(command):
        program = os.path.basename(words[0])
        if program in ("sbatch", "salloc"):
            raise Invalid(
                f"The command calls {program}; the run itself is sent to Slurm already.",
                hint="Send what the batch script runs as `command`, and its #SBATCH lines as `gpus`, `cpus`, "
                "`memory_mb`, `time_limit_seconds`, `nodes` and `slurm` {partition, account, qos, constraint, gres, "
                "extra}.",
            )


def commands_in(text: str) -> Iterator[list[str]]:
    """The simple commands of a piece of shell, each as words; good enough to find a program's name and options."""
    for line in text.replace("\\\n", " ").splitlines():
        words: list[str] = []
        for word in [*_words(line), ";"]:
            if _ENDS_A_COMMAND.fullmatch(word):
                yield from [words] if words else []
                words = []
            elif words or not (_ASSIGNMENT.match(word) or word in _BEFORE_A_COMMAND):
                words.append(word)


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        return list(lexer)
    except ValueError:  # a quote that ends on another line
        return line.split()


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
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
