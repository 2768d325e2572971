"""What the words of a shell command come to, as far as that can be told without running anything."""

from __future__ import annotations

import codecs
import functools
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

UNKNOWN = "\0"  # stands for what only running it would tell
_LONGEST = 100_000
_ALWAYS = {"IFS": " ", "HOME": os.path.expanduser("~"), "PWD": "."}
_BRACES_FIRST = re.compile(r"((?:^|[;&|(\n])\s*)\{([^{}\s;]*,[^{}\s;]*)\}")
_PATTERN = re.compile(r"(?<!\\)[*?]|\[.+\]")
_DEFAULT = (":-", "-", ":=", "=")


class TooMuch(Exception):
    """It is too long, or goes round too often, to be read."""


@functools.cache
def _parser() -> Parser:
    import tree_sitter  # here, as most servers never talk
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse(text: str) -> Node:
    """Braces in the place of a command are expanded first: the grammar takes them for a block."""
    plain = _BRACES_FIRST.sub(lambda braces: braces[1] + braces[2].replace(",", " "), text[:_LONGEST])
    return _parser().parse(plain.encode(errors="replace")).root_node


def source(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


class Words:
    """Values of nodes, given variables and someone who knows files and what a `$(…)` prints."""

    def __init__(
        self,
        printed_by: Callable[[Node], str],
        shown_as_file: Callable[[Node], str],
        matching: Callable[[str], list[str]],
    ) -> None:
        self.variables: dict[str, str] = dict(_ALWAYS)
        self._printed_by = printed_by
        self._shown_as_file = shown_as_file
        self._matching = matching

    def of(self, node: Node) -> list[str]:
        """One node may be several words: what is not quoted is split, and braces are expanded."""
        value = self.value(node)
        if node.type == "concatenation" and (braced := re.fullmatch(r"\{([^{}]*,[^{}]*)\}", value)):
            return braced[1].split(",")
        if _is_split(node) and UNKNOWN not in value:
            return value.split()
        if node.type in ("word", "concatenation") and _PATTERN.search(source(node)):
            return self._matching(value) or [value]
        return [value]

    def value(self, node: Node) -> str:
        found = self._value(node)
        if len(found) > _LONGEST:
            raise TooMuch
        return found

    def _value(self, node: Node) -> str:
        kind, text = node.type, source(node)
        if kind == "raw_string":
            return text[1:-1]
        if kind == "ansi_c_string":
            return codecs.decode(text[2:-1], "unicode_escape", "replace")
        if kind in ("string", "translated_string"):
            return self._of_string(node)
        if kind in ("concatenation", "command_name"):
            return "".join(map(self.value, node.children))
        if kind == "simple_expansion":
            return self.variables.get(text[1:], UNKNOWN)
        if kind == "expansion":
            return self._of_expansion(node)
        if kind == "command_substitution":
            return self._printed_by(node)
        if kind == "process_substitution":
            return self._shown_as_file(node)
        if kind == "arithmetic_expansion":
            return "1"
        return re.sub(r"\\(.)", r"\1", text.replace("\\\n", ""), flags=re.DOTALL)

    def _of_string(self, node: Node) -> str:
        """What lies between its parts belongs to it too: spaces before an expansion have no node of their own."""
        said, at = "", node.start_byte + 1
        whole, start = node.text or b"", node.start_byte
        for child in (child for child in node.children if child.is_named):
            said += whole[at - start : child.start_byte - start].decode(errors="replace")
            is_text = child.type == "string_content"
            said += re.sub(r'\\(["\\$`\n])', r"\1", source(child)) if is_text else self.value(child)
            at = child.end_byte
        return said + whole[at - start : -1].decode(errors="replace")

    def _of_expansion(self, node: Node) -> str:
        """`${x}` and `${x:-otherwise}`; of whatever else may be done to a value, nothing is known."""
        name, *rest = [child for child in node.children if source(child) not in ("${", "}")] or [node]
        known = self.variables.get(source(name))
        if not rest:
            return known if known is not None else UNKNOWN
        if source(rest[0]) in _DEFAULT:
            return known or "".join(map(self.value, rest[1:]))
        return UNKNOWN


def _is_split(node: Node) -> bool:
    """Whether its value is split at spaces: an expansion without quotes around it."""
    if node.type in ("command_name", "concatenation"):
        return any(map(_is_split, node.children))
    return node.type in ("simple_expansion", "expansion", "command_substitution")
