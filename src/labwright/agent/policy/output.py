"""What simple commands print, where that can be told: so that what is piped into a shell can be read."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from labwright.agent.policy.words import UNKNOWN, source

if TYPE_CHECKING:
    from tree_sitter import Node

    from labwright.agent.policy.reader import Reader


def printed(reader: Reader, node: Node, given: str | None) -> str:
    if node.type == "pipeline":
        for stage in node.named_children:
            given = printed(reader, stage, given)
        return given or ""
    if node.type in ("list", "subshell", "compound_statement", "program"):
        return "".join(printed(reader, child, given) for child in node.named_children)
    if node.type == "redirected_statement":
        return _redirected(reader, node, given)
    if node.type != "command":
        return UNKNOWN
    words = [word for child in node.named_children if _is_word(child) for word in reader.words.of(child)]
    said = next((reader.words.value(c.named_children[-1]) for c in node.named_children if _is_input(c)), given)
    return _PRINTS.get(words[0], _unknown)(reader, words[1:], said) if words else ""


def _is_word(node: Node) -> bool:
    return node.type not in ("variable_assignment", "file_redirect", "herestring_redirect", "comment")


def _is_input(node: Node) -> bool:
    return node.type == "herestring_redirect"


def _redirected(reader: Reader, node: Node, given: str | None) -> str:
    for child in node.named_children:
        if child.type == "heredoc_redirect":
            given = "".join(source(part) for part in child.named_children if part.type == "heredoc_body")
        elif child.type == "herestring_redirect":
            given = reader.words.value(child.named_children[-1])
        elif child.type == "file_redirect" and source(child).startswith("<"):
            given = reader.text_of(reader.words.value(child.named_children[-1])) or UNKNOWN
    body = node.child_by_field_name("body")
    return printed(reader, body, given) if body is not None else ""


def _echo(_reader: Reader, arguments: Sequence[str], _given: str | None) -> str:
    said = list(arguments)
    while said and said[0] in ("-n", "-e", "-ne", "-en", "-E"):
        if "e" in said.pop(0):
            said = [word.encode().decode("unicode_escape", "replace") for word in said]
    return " ".join(said) + "\n"


def _printf(_reader: Reader, arguments: Sequence[str], _given: str | None) -> str:
    form, *values = arguments or [""]
    text = form.encode().decode("unicode_escape", "replace")
    for value in values:
        text = text.replace("%s", value, 1) if "%s" in text else f"{text} {value}"
    return text


def _cat(reader: Reader, arguments: Sequence[str], given: str | None) -> str:
    names = [word for word in arguments if not word.startswith("-")]
    if not names:
        return given or ""
    texts = [reader.text_of(name) for name in names]
    return "".join(text if text is not None else UNKNOWN for text in texts)


def _which(_reader: Reader, arguments: Sequence[str], _given: str | None) -> str:
    return next((word for word in arguments if not word.startswith("-")), UNKNOWN)


def _base64(_reader: Reader, arguments: Sequence[str], given: str | None) -> str:
    if given is None or UNKNOWN in given or not {"-d", "--decode", "-D", "-di"} & set(arguments):
        return UNKNOWN
    try:
        return base64.b64decode(given).decode(errors="replace")
    except (binascii.Error, ValueError):
        return UNKNOWN


def _reversed(_reader: Reader, _arguments: Sequence[str], given: str | None) -> str:
    return "\n".join(line[::-1] for line in (given or "").splitlines())


def _unknown(_reader: Reader, _arguments: Sequence[str], _given: str | None) -> str:
    return UNKNOWN


_PRINTS: dict[str, Callable[[Reader, Sequence[str], str | None], str]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "tee": lambda _reader, _arguments, given: given or "",
    "which": _which,
    "command": _which,
    "base64": _base64,
    "rev": _reversed,
    ":": lambda *_: "",
    "cd": lambda *_: "",
    "nproc": lambda *_: "1",
    "pwd": lambda *_: ".",
    # What `eval "$(conda shell.bash hook)"` and the like set up, and no run.
    **dict.fromkeys(("conda", "mamba", "micromamba", "pyenv", "direnv", "ssh-agent", "brew"), lambda *_: ""),
}
