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
    lines, suggestions = text.splitlines(), []
    for number, line in enumerate(lines):
        if match := _BEGIN.match(line):
            paragraph, following = _paragraph([match["text"], *lines[number + 1 :]])
            if paragraph:
                suggestions.append(_suggestion(paragraph, _code_block(following)))
    return suggestions[:_MOST]


def _paragraph(lines: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the first paragraph and the lines after it."""
    parts: list[str] = []
    for number, line in enumerate(lines):
        plain = line.lstrip("> ").strip()
        if (number and not plain) or _FENCE.match(line) or _BEGIN.match(line):
            return " ".join(parts), lines[number:]
        parts.append(plain)
    return " ".join(parts).strip(), []


def _code_block(lines: Sequence[str]) -> str:
    """Return the code block at the start of the lines, or an empty text."""
    start = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    if start == len(lines) or not _FENCE.match(lines[start]):
        return ""
    ends = [number for number, line in enumerate(lines) if number > start and line.strip() == "```"]
    return "\n".join([*lines[start + 1 : ends[0]], ""]) if ends else ""


def _suggestion(text: str, template: str) -> Suggestion:
    return Suggestion(id=new_id(SUGGESTION), text=text[:_LONGEST_TEXT], template=template[:_LONGEST_TEMPLATE])


def reflected(pieces: Sequence[Piece], own: Sequence[Piece]) -> Suggestion | None:
    """Return a rule-based suggestion after a turn that started a run or was woken, once per conversation."""
    suggestion = repeated(_commands(pieces)) if _commands(own) or own[0].kind is PieceKind.WAKE else None
    return suggestion if suggestion and suggestion.text not in _known(pieces) else None


def new_suggestions(text: str, pieces: Sequence[Piece], by_rules: Suggestion | None) -> list[NewPiece]:
    """Return the suggestions that are new in this conversation, as pieces for its log."""
    known = _known(pieces) | ({by_rules.text} if by_rules else set())
    new = [suggestion for suggestion in suggestions_in(text) if suggestion.text not in known]
    return [(PieceKind.SUGGESTION, each.to_dict()) for each in [*([by_rules] if by_rules else []), *new]]


def _known(pieces: Iterable[Piece]) -> set[str]:
    return {str(piece.data["text"]) for piece in pieces if piece.kind is PieceKind.SUGGESTION}


def _commands(pieces: Sequence[Piece]) -> list[str]:
    calls = [p.data["arguments"] for p in pieces if p.kind is PieceKind.CALL and p.data["name"] in _CREATE_RUN]
    return [str(arguments["command"]) for arguments in calls if "command" in arguments]


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
    message = (
        f"`{script}` was started several times with other values of {', '.join(f'`{flag}`' for flag in varied)}. "
        "A sweep starts all of them at once and compares them; the template is one."
    )
    return _suggestion(message, _sweep_file(alike, varied, shape))


def _shape(command: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command without the values of its flags, and these values."""
    if len(command) > LONGEST_COMMAND:
        return (command,), {}
    try:
        words = shlex.split(command)
    except ValueError:
        return (command,), {}
    shape, values, index = [], {}, 0
    while index < len(words):
        flag, equals, value = words[index].partition("=")
        following = words[index + 1] if index + 1 < len(words) else "-"
        if flag.startswith("--") and equals:
            values[flag] = value
        elif flag.startswith("--") and not following.startswith("--"):
            values[flag] = following
            index += 1
        shape.append(flag)
        index += 1
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
