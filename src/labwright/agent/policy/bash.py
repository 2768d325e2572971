"""Parse bash, and compute the values of words as far as that is possible without running anything."""

from __future__ import annotations

import codecs
import functools
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

UNKNOWN = "\0"  # a value that only running the command would show
_LONGEST = 100_000
_ALWAYS = {"IFS": " ", "HOME": os.path.expanduser("~"), "PWD": "."}
_BRACES_FIRST = re.compile(r"((?:^|[;&|(\n])\s*)\{([^{}\s;]*,[^{}\s;]*)\}")
_PATTERN = re.compile(r"(?<!\\)[*?]|\[.+\]")
_DEFAULT = (":-", "-", ":=", "=")
_EXPANSIONS = ("simple_expansion", "expansion", "command_substitution")


class TooMuch(Exception):
    """The command is too long, or loops too often, to be read."""


@functools.cache
def _parser() -> Parser:
    import tree_sitter  # here, because most servers never need it
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse(text: str) -> Node:
    """Return the syntax tree. Braces in place of a command are expanded first: the grammar takes them for a block."""
    plain = _BRACES_FIRST.sub(lambda braces: braces[1] + braces[2].replace(",", " "), text[:_LONGEST])
    return _parser().parse(plain.encode(errors="replace")).root_node


def source(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


class BashWords:
    """Values of nodes. Callbacks say what a `$(…)` prints, which file `<(…)` is, and which files a pattern matches."""

    def __init__(
        self, output_of: Callable[[Node], str], as_file: Callable[[Node], str], matching: Callable[[str], list[str]]
    ) -> None:
        self.variables: dict[str, str] = dict(_ALWAYS)
        self._output_of = output_of
        self._as_file = as_file
        self._matching = matching

    def of(self, node: Node) -> list[str]:
        """Return the words of a node: an unquoted expansion is split, braces and patterns are expanded."""
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
            return self._output_of(node)
        if kind == "process_substitution":
            return self._as_file(node)
        if kind == "arithmetic_expansion":
            self._visit_commands(node)
            return "1"
        return re.sub(r"\\(.)", r"\1", text.replace("\\\n", ""), flags=re.DOTALL)

    def _of_string(self, node: Node) -> str:
        """Return a string's value with the spaces between its parts, which have no node."""
        value, at = "", node.start_byte + 1
        whole, start = node.text or b"", node.start_byte
        for child in (child for child in node.children if child.is_named):
            value += whole[at - start : child.start_byte - start].decode(errors="replace")
            is_text = child.type == "string_content"
            value += re.sub(r'\\(["\\$`\n])', r"\1", source(child)) if is_text else self.value(child)
            at = child.end_byte
        return value + whole[at - start : -1].decode(errors="replace")

    def _of_expansion(self, node: Node) -> str:
        """Return the value of `${x}` or `${x:-default}`. Other expansions are unknown."""
        name, *rest = [child for child in node.children if source(child) not in ("${", "}")] or [node]
        known = self.variables.get(source(name))
        if not rest:
            return known if known is not None else UNKNOWN
        if source(rest[0]) in _DEFAULT:
            return known or "".join(map(self.value, rest[1:]))
        self._visit_commands(node)
        return UNKNOWN

    def _visit_commands(self, node: Node) -> None:
        """Visit the commands in an expansion whose value is not computed: they run, too."""
        for child in node.named_children:
            if child.type == "command_substitution":
                self._output_of(child)
            else:
                self._visit_commands(child)


def _is_split(node: Node) -> bool:
    if node.type in ("command_name", "concatenation"):
        return any(map(_is_split, node.children))
    return node.type in _EXPANSIONS
