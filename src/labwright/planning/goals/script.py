"""Which script a goal means: named, or implied where there is but one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from labwright.planning.goals.mentions import read_mentions
from labwright.planning.goals.words import Words
from labwright.planning.scan import EntryPoint, Kind, ProjectScan
from labwright.planning.scan.entry_points import TRAINS

_NAMED = re.compile(r"[\w./-]*\w\.py\b")
_NOTEBOOK = re.compile(r"[\w./-]*\w\.ipynb\b")
_CLEAR_LEAD = 15


@dataclass(frozen=True, slots=True)
class Script:
    entry: EntryPoint | None = None
    missing: str = ""  # named, and not there or a notebook
    candidates: tuple[str, ...] = ()  # where none is clear

    @property
    def why_missing(self) -> str:
        if _NOTEBOOK.fullmatch(self.missing):
            return f"{self.missing} is a notebook: make a script with flags of it (jupyter nbconvert --to script)."
        return f"There is no {self.missing} here that can be started."


def read_script(words: Words, scan: ProjectScan) -> Script:
    script = _read_file(words, scan)
    return _with_subcommand(words, script.entry) if script.entry and script.entry.commands else script


def _with_subcommand(words: Words, entry: EntryPoint) -> Script:
    """The one that the goal names, else the one whose flags it names, else the one that trains."""
    named = _named_command(words, entry)
    if named:
        return Script(entry.under(named))
    counts = {name: len(read_mentions(words, entry.under(name))[0]) for name in ("", *entry.commands)}
    fitting = [name for name in entry.commands if counts[name] == max(counts.values())]
    trains = [name for name in fitting if TRAINS.search(name)]
    wanted = trains if len(trains) == 1 else fitting
    if len(wanted) == 1:
        return Script(entry.under(wanted[0]))
    if max(counts.values()) == counts[""]:  # flags that stand before any subcommand, if any at all
        return Script(entry)
    return Script(candidates=tuple(entry.under(name).name for name in wanted))


def _named_command(words: Words, entry: EntryPoint) -> str:
    """`main.py finetune`, `the finetune command`: elsewhere it may be any word."""
    for index, token in enumerate(words.tokens):
        called = words.at(index + 1) in ("command", "subcommand")
        behind_script = index > 0 and not words.is_free(index - 1)
        if token.text in entry.commands and (called or behind_script):
            words.take(index, index + 1 + called)
            return token.text
    return ""


def _read_file(words: Words, scan: ProjectScan) -> Script:
    trains = [entry for entry in scan.entry_points if entry.kind is not Kind.OTHER] or list(scan.entry_points)
    paths = tuple(entry.path for entry in trains[:4])
    for match in (*_NAMED.finditer(words.text), *_NOTEBOOK.finditer(words.text)):
        _take_span(words, match.start(), match.end())
        entry = _by_path(match.group(), scan)
        return Script(entry) if entry else Script(missing=match.group(), candidates=paths)
    entry = _by_name(words, scan)
    if entry:
        return Script(entry)
    wanted = [entry for entry in trains if entry.kind is Kind.TRAIN] or trains
    if len(wanted) == 1 or (wanted and wanted[0].score - wanted[1].score >= _CLEAR_LEAD):
        return Script(wanted[0])
    return Script(candidates=paths)


def _by_path(name: str, scan: ProjectScan) -> EntryPoint | None:
    plain = name.removeprefix("./")
    return next((entry for entry in scan.entry_points if entry.path == plain or entry.path.endswith(f"/{plain}")), None)


def _by_name(words: Words, scan: ProjectScan) -> EntryPoint | None:
    """A module or a console script by its name: `pkg.train`, `my-train`."""
    names = {
        name.lower(): entry for entry in scan.entry_points for name in (entry.module, entry.console_script) if name
    }
    for index, token in enumerate(words.tokens):
        if token.text in names:
            words.take(index, index + 1)
            return names[token.text]
    return None


def _take_span(words: Words, start: int, end: int) -> None:
    for index, token in enumerate(words.tokens):
        if token.start < end and token.end > start:
            words.take(index, index + 1)
