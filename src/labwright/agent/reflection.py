"""Suggestions for a better way of working: those in an answer, and one by rules when similar commands repeat."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence

from labwright.agent.tools.tool import LONGEST_COMMAND
from labwright.domain.ids import SUGGESTION, new_id
from labwright.domain.session import Piece, PieceKind, Suggestion
from labwright.store.sessions import NewPiece

PREFIX = "💡 Workflow Improvement"
_MOST = 5  # per answer
_LONGEST_TEXT, _LONGEST_TEMPLATE = 2000, 20_000
_BEGIN = re.compile(r"^[\s>*_-]*💡[\s*_]*Workflow Improvement[\s*_]*:[\s*_]*(?P<text>.*)$")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_FENCE = re.compile(r"^\s*```\w*\s*$")
_REPEATS = 3  # commands that differ only in values, before a sweep is suggested
_CREATE_RUN = ("create_run", "start_run")  # the second in conversations of earlier versions


def suggestions_in(text: str) -> list[Suggestion]:
    """Return the suggestions in a text.

    Each starts with the prefix and ends at the next empty line. A code block right after it is its template.
    """
    lines, found = text.splitlines(), []
    for place, line in enumerate(lines):
        if match := _BEGIN.match(line):
            words, rest = _paragraph([match["text"], *lines[place + 1 :]])
            if words:
                found.append(_suggestion(words, _code(rest)))
    return found[:_MOST]


def _paragraph(lines: Sequence[str]) -> tuple[str, Sequence[str]]:
    words: list[str] = []
    for place, line in enumerate(lines):
        plain = line.lstrip("> ").strip()
        if (place and not plain) or _FENCE.match(line) or _BEGIN.match(line):
            return " ".join(words), lines[place:]
        words.append(plain)
    return " ".join(words).strip(), []


def _code(lines: Sequence[str]) -> str:
    rest = list(lines)
    while rest and not rest[0].strip():
        rest.pop(0)
    if not rest or not _FENCE.match(rest[0]):
        return ""
    ends = [place for place, line in enumerate(rest[1:], 1) if line.strip() == "```"]
    return "\n".join([*rest[1 : ends[0]], ""]) if ends else ""


def _suggestion(text: str, template: str) -> Suggestion:
    return Suggestion(id=new_id(SUGGESTION), text=text[:_LONGEST_TEXT], template=template[:_LONGEST_TEMPLATE])


def reflected(pieces: Sequence[Piece], own: Sequence[Piece]) -> Suggestion | None:
    """Return what rules suggest after a turn that started a run or was woken; each suggestion once per conversation."""
    found = repeated(_commands(pieces)) if _commands(own) or own[0].kind is PieceKind.WAKE else None
    return found if found and found.text not in _known(pieces) else None


def new_suggestions(text: str, pieces: Sequence[Piece], by_rules: Suggestion | None) -> list[NewPiece]:
    """Return the suggestions that are new in this conversation, as pieces for its log."""
    known = _known(pieces) | ({by_rules.text} if by_rules else set())
    found = [one for one in suggestions_in(text) if one.text not in known]
    return [(PieceKind.SUGGESTION, one.to_dict()) for one in [*([by_rules] if by_rules else []), *found]]


def _known(pieces: Iterable[Piece]) -> set[str]:
    return {str(piece.data["text"]) for piece in pieces if piece.kind is PieceKind.SUGGESTION}


def _commands(pieces: Sequence[Piece]) -> list[str]:
    calls = [p.data["arguments"] for p in pieces if p.kind is PieceKind.CALL and p.data["name"] in _CREATE_RUN]
    return [str(given["command"]) for given in calls if "command" in given]


def repeated(commands: Sequence[str]) -> Suggestion | None:
    """Suggest a sweep if the newest command was given several times with other values of its flags."""
    if not commands:
        return None
    shape, _ = _shape(commands[-1])
    alike = [values for known, values in map(_shape, dict.fromkeys(commands)) if known == shape]
    varied = [flag for flag in alike[-1] if len({values[flag] for values in alike}) > 1] if alike else []
    if len(alike) < _REPEATS or not varied:
        return None
    script = " ".join(shape[:2])
    words = (
        f"`{script}` was started several times with other values of {', '.join(f'`{flag}`' for flag in varied)}. "
        "A sweep starts all of them at once and compares them; the template is one."
    )
    return _suggestion(words, _sweep_file(alike, varied, shape))


def _shape(command: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command without the values of its flags, and these values."""
    if len(command) > LONGEST_COMMAND:
        return (command,), {}
    try:
        words = shlex.split(command)
    except ValueError:
        return (command,), {}
    shape, values, place = [], {}, 0
    while place < len(words):
        flag, equals, value = words[place].partition("=")
        following = words[place + 1] if place + 1 < len(words) else "-"
        if flag.startswith("--") and equals:
            values[flag] = value
        elif flag.startswith("--") and not following.startswith("--"):
            values[flag] = following
            place += 1
        shape.append(flag)
        place += 1
    return tuple(shape), values


def _sweep_file(alike: Sequence[dict[str, str]], varied: Sequence[str], shape: Sequence[str]) -> str:
    """Return a file for `labwright sweep FILE`. Lists and texts in JSON are valid YAML."""
    last = alike[-1]
    words = [part for word in shape if word not in varied for part in (word, *([last[word]] if word in last else []))]
    lines = [f"base_command: {json.dumps(shlex.join(words), ensure_ascii=False)}", "parameters:"]
    for flag in varied:
        values = list(dict.fromkeys(values[flag] for values in alike))
        scalars = [value if _NUMBER.fullmatch(value) else json.dumps(value, ensure_ascii=False) for value in values]
        lines.append(f"  {flag.removeprefix('--')}: [{', '.join(scalars)}]")
    return "\n".join([*lines, "method: grid", ""])
