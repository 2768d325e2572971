"""The script that a goal is about: named, or the only one that fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from labwright.domain.errors import Invalid
from labwright.planning.goals.names import find_mentions
from labwright.planning.goals.tokens import Tokens, split
from labwright.planning.record.input import check_request
from labwright.planning.scan import EntryPoint, Kind, ProjectScan
from labwright.planning.scan.entry_points import TRAINS

_FILE = re.compile(r"[\w./-]*\w\.(?:py|ipynb)\b")
_COMMON = frozenset({"main", "train", "run", "eval", "evaluate", "src", "scripts", "models", "data", "sample"})
_CLEAR_LEAD = 15  # points of rank
_MOST_CANDIDATES = 4


@dataclass(frozen=True, slots=True)
class ScriptReading:
    entry: EntryPoint | None = None
    missing: str = ""  # a file that the goal names and that cannot be started
    candidates: tuple[str, ...] = ()  # if it is not clear which script is meant
    is_two: bool = False  # the goal compares scripts, which one grid cannot

    @property
    def why_missing(self) -> str:
        if self.missing.endswith(".ipynb"):
            return f"{self.missing} is a notebook: make a script with flags from it (jupyter nbconvert --to script)."
        return f"There is no script {self.missing} in this project."


def check_goal(goal: str, report: str, scan: ProjectScan) -> None:
    """Refuse a goal that is empty, too long, or names a script that does not exist."""
    check_request(goal, report, "")
    script = read_script(split(goal), scan)
    if not script.missing:
        return
    paths = [entry.path for entry in scan.entry_points]
    names = {Path(path).name: path for path in paths}
    close = get_close_matches(Path(script.missing).name, names, n=1, cutoff=0.5)
    hint = "No script that can be started was found in this project."
    if close:
        hint = f"Did you mean {names[close[0]]}? Repeat the goal with that name."
    elif paths:
        hint = f"Scripts found: {', '.join(paths[:_MOST_CANDIDATES])}."
    raise Invalid(script.why_missing, hint=hint, field=("goal",))


def read_script(tokens: Tokens, scan: ProjectScan) -> ScriptReading:
    script = _read_file(tokens, scan)
    return _with_subcommand(tokens, script.entry) if script.entry and script.entry.commands else script


def _read_file(tokens: Tokens, scan: ProjectScan) -> ScriptReading:
    known = [entry for entry in scan.entry_points if entry.kind is not Kind.OTHER] or list(scan.entry_points)
    paths = tuple(entry.path for entry in known[:_MOST_CANDIDATES])
    if match := _FILE.search(tokens.text):
        for index, token in enumerate(tokens.tokens):
            if token.start < match.end() and token.end > match.start():
                _take(tokens, index)
        name = match.group().removeprefix("./")
        named = (entry for entry in scan.entry_points if entry.path == name or entry.path.endswith(f"/{name}"))
        entry = next(named, None)
        others = {other.group().removeprefix("./") for other in _FILE.finditer(tokens.text)} - {name}
        if entry and _compares(tokens) and any(_is_script(other, scan) for other in others):
            return ScriptReading(candidates=(name, *sorted(others)), is_two=True)
        return ScriptReading(entry) if entry else ScriptReading(missing=match.group(), candidates=paths)
    names = {name.lower(): entry for entry in scan.entry_points for name in (entry.module, entry.console_script)}
    names = {**_short_names(scan.entry_points), **names}
    for index, token in enumerate(tokens.tokens):
        if token.text in names:
            _take(tokens, index)
            return ScriptReading(names[token.text])
    training = [entry for entry in known if entry.kind is Kind.TRAIN] or known
    if len(training) == 1 or (training and training[0].score - training[1].score >= _CLEAR_LEAD):
        return ScriptReading(training[0])
    return ScriptReading(candidates=paths)


def _compares(tokens: Tokens) -> bool:
    return any(token.text.startswith("compar") or token.text in ("vs", "versus") for token in tokens.tokens)


def _is_script(name: str, scan: ProjectScan) -> bool:
    return any(entry.path == name or entry.path.endswith(f"/{name}") for entry in scan.entry_points)


def _short_names(entries: Sequence[EntryPoint]) -> dict[str, EntryPoint]:
    """Return scripts by stem, such as `dqn`, or by folder, without names of several scripts and everyday words."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entries:
        path = Path(entry.path)
        for name in {path.stem.lower(), path.parent.name.lower()} - {""}:
            found.setdefault(name, []).append(entry)
    return {
        name: named[0]
        for name, named in found.items()
        if len(named) == 1 and not split(name).tokens[0].is_filler and name not in _COMMON
    }


def _with_subcommand(tokens: Tokens, entry: EntryPoint) -> ScriptReading:
    """Choose the subcommand that the goal names, else the one whose flags it names, else the one that trains."""
    for index, token in enumerate(tokens.tokens):
        is_called = tokens.at(index + 1) in ("command", "subcommand")
        if token.text in entry.commands and (is_called or index - 1 in tokens.script):  # else it may be any word
            _take(tokens, index)
            tokens.take(index, index + 1 + is_called)
            return ScriptReading(entry.under(token.text))
    counts = {name: len(find_mentions(tokens, entry.under(name))) for name in ("", *entry.commands)}
    fitting = [name for name in entry.commands if counts[name] == max(counts.values())]
    training = [name for name in fitting if TRAINS.search(name)]
    candidates = training if len(training) == 1 else fitting
    if len(candidates) == 1:
        return ScriptReading(entry.under(candidates[0]))
    if max(counts.values()) == counts[""]:  # the goal names only flags that all subcommands share
        return ScriptReading(entry)
    return ScriptReading(candidates=tuple(entry.under(name).name for name in candidates))


def _take(tokens: Tokens, index: int) -> None:
    tokens.take(index, index + 1)
    tokens.script.add(index)
