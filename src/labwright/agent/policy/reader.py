"""Reads a shell command as a shell would, without running it, and finds what in it ought to be a run.

It follows what can be followed: variables, loops, aliases, functions, `bash -c`, here-documents, pipes into a shell,
scripts of the project and those that the command itself writes. Where only running it would tell, it says so.
"""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from labwright.agent.policy import calls
from labwright.agent.policy.output import printed
from labwright.agent.policy.variables import started_by
from labwright.agent.policy.words import UNKNOWN, TooMuch, Words, parse, source

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST = 8
_MOST_TURNS = 20  # of a loop
_MOST_STEPS = 3000
_LARGEST_SCRIPT = 1 << 20
_LOOPS = ("for_statement", "while_statement", "c_style_for_statement")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    why: str
    words: list[str]
    folder: Path
    is_all: bool  # the words alone say what is to be run
    variables: dict[str, str] = field(default_factory=dict)


class Reader:
    def __init__(self, project: Path) -> None:
        self.folder = project
        self.words = Words(self._printed_by, self._shown_as_file, self._matching)
        self.aliases: dict[str, str] = {}
        self.functions: dict[str, Node] = {}
        self.written: dict[Path, str] = {}  # by the command itself
        self._depth = 0
        self._steps = 0
        self._is_all = True
        self._is_fed = False  # the command that is looked at reads something on its input

    def read(self, text: str) -> Iterator[Finding]:
        """In the order in which it would run."""
        if self._depth >= _DEEPEST:
            yield self.finding("It is nested too deeply to be read", [text])
            return
        self._depth += 1
        root = parse(text)
        self._is_all = self._is_all and root.named_child_count == 1 and root.named_children[0].type != "list"
        yield from self.visit(root)
        self._depth -= 1

    def finding(self, why: str, words: list[str]) -> Finding:
        return Finding(why=f"{why}.", words=words, folder=self.folder, is_all=self._is_all and not self._is_fed)

    def visit(self, node: Node, given: str | None = None) -> Iterator[Finding]:
        """`given` is what it reads on its input: None for nothing."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TooMuch
        kind = node.type
        if kind == "command":
            yield from self._command(node, given)
        elif kind == "redirected_statement":
            yield from self._redirected(node, given)
        elif kind == "pipeline":
            for stage in node.named_children:
                yield from self.visit(stage, given)
                given = self.printed(stage, given)
        elif kind == "function_definition":
            self.functions[source(node.named_children[0])] = node.named_children[-1]
        elif kind == "variable_assignment":
            yield from self._assign(node)
        elif kind in _LOOPS:
            yield from self._loop(node, given)
        elif kind == "subshell":
            with self._apart():
                yield from self._each(node, given)
        else:
            yield from self._each(node, given)

    def _each(self, node: Node, given: str | None) -> Iterator[Finding]:
        for child in node.named_children:
            yield from self.visit(child, given)

    @contextmanager
    def _apart(self) -> Iterator[None]:
        folder, variables = self.folder, dict(self.words.variables)
        yield
        self.folder, self.words.variables = folder, variables

    def _assign(self, node: Node) -> Iterator[Finding]:
        name, *value = node.named_children
        yield from self._each(node, None)
        told = self.words.value(value[0]) if value else ""
        self.words.variables[source(name)] = told
        yield from started_by(self, source(name), told)

    def _loop(self, node: Node, given: str | None) -> Iterator[Finding]:
        """Each turn with its own value, as far as they are written down."""
        self._is_all = True
        body = node.named_children[-1]
        if node.type != "for_statement":
            yield from self._each(node, given)
            return
        variable, *values = node.named_children[:-1]
        told = [word for value in values for word in self.words.of(value)] or [UNKNOWN]
        for value in values:
            yield from self._each(value, None)
        for word in told[:_MOST_TURNS]:
            self.words.variables[source(variable)] = word
            yield from self.visit(body, given)

    def _redirected(self, node: Node, given: str | None) -> Iterator[Finding]:
        body = node.child_by_field_name("body")
        target: Path | None = None
        further: list[Node] = []
        for redirect in node.named_children:
            if redirect.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                given, target = self._redirect(redirect, given, target)
                further += _behind(redirect)
        if body is not None:
            yield from self.visit(body, given)
        said = self.printed(body, given) if body is not None else given or ""
        if target is not None:
            self.written[target] = said
        for stage in further:
            yield from self.visit(stage, said)
            said = self.printed(stage, said)

    def _redirect(self, node: Node, given: str | None, target: Path | None) -> tuple[str | None, Path | None]:
        """What is read, and where the output goes."""
        if node.type == "heredoc_redirect":
            bodies = [source(child) for child in node.named_children if child.type == "heredoc_body"]
            behind = [child for child in node.named_children if child.type == "file_redirect"]
            for redirect in behind:
                _, target = self._redirect(redirect, given, target)
            return bodies[0] if bodies else "", target
        value = self.words.value(node.named_children[-1]) if node.named_children else ""
        if node.type == "herestring_redirect":
            return value, target
        operator = next((source(child) for child in node.children if not child.is_named), "")
        if operator == "<":
            return self.text_of(value) or UNKNOWN, target
        return given, self.path(value) if operator in (">", ">>", "&>", ">|") else target

    def _command(self, node: Node, given: str | None) -> Iterator[Finding]:
        words: list[str] = []
        variables: dict[str, str] = {}
        for child in node.named_children:
            if child.type == "variable_assignment":
                variables[source(child.named_children[0])] = self.words.value(child.named_children[-1])
            elif child.type in ("herestring_redirect", "file_redirect"):
                given, _ = self._redirect(child, given, None)
            elif child.type != "comment":
                words += self.words.of(child)
            yield from self._substituted(child)
        for name, value in variables.items():
            yield from started_by(self, name, value)
        outer, self._is_fed = self._is_fed, given is not None
        for found in self.run(words, given):
            yield replace(found, variables=variables)
        self._is_fed = outer

    def _substituted(self, node: Node) -> Iterator[Finding]:
        """Commands inside of words run as well."""
        if node.type in ("command_substitution", "process_substitution"):
            with self._apart():
                yield from self._each(node, None)
        else:
            for child in node.named_children:
                yield from self._substituted(child)

    def run(self, words: list[str], given: str | None = None) -> Iterator[Finding]:
        """One simple command."""
        words = words[next((at for at, word in enumerate(words) if word), len(words)) :]
        if not words:
            return
        program = words[0]
        if program in self.aliases:
            text, self.aliases = self.aliases[program], {n: t for n, t in self.aliases.items() if n != program}
            yield from self.read(f"{text} {shlex.join(words[1:])}")
        elif program in self.functions:
            yield from self._call(self.functions[program], words[1:], given)
        else:
            yield from calls.judge(self, words, given)

    def _call(self, body: Node, arguments: list[str], given: str | None) -> Iterator[Finding]:
        if self._depth >= _DEEPEST:
            return
        self._depth += 1
        variables = {str(at): word for at, word in enumerate(arguments, 1)}
        self.words.variables |= {**variables, "@": " ".join(arguments), "*": " ".join(arguments)}
        yield from self.visit(body, given)
        self._depth -= 1

    # What is known without running

    def printed(self, node: Node, given: str | None) -> str:
        return printed(self, node, given)

    def _printed_by(self, node: Node) -> str:
        return "".join(self.printed(child, None) for child in node.named_children).rstrip("\n")

    def _shown_as_file(self, node: Node) -> str:
        path = self.path(f"/dev/fd/{len(self.written)}")
        self.written[path] = self._printed_by(node)
        return str(path)

    def _matching(self, pattern: str) -> list[str]:
        """Names in the folder, as many as count."""
        if UNKNOWN in pattern or pattern.startswith(("-", "/", "~")) or "**" in pattern:
            return []
        try:
            found = self.folder.glob(pattern)
            return sorted(str(path.relative_to(self.folder)) for path in itertools.islice(found, _MOST_TURNS))
        except (ValueError, NotImplementedError, OSError):
            return []  # no pattern of file names

    def path(self, name: str) -> Path:
        return Path(os.path.normpath(self.folder / os.path.expanduser(name)))

    def text_of(self, name: str) -> str | None:
        """Of a file that the command writes, or that is there; None where there is none, or it is no text."""
        if UNKNOWN in name:
            return None
        path = self.path(name)
        if path in self.written:
            return self.written[path]
        try:
            if not path.is_file() or path.stat().st_size > _LARGEST_SCRIPT:
                return None
            return path.read_bytes().decode(errors="replace")
        except OSError:
            return None


def _behind(redirect: Node) -> list[Node]:
    """What stands on the line of a here-document behind it: `<<EOF | bash`."""
    found = []
    for child in redirect.named_children:
        if child.type == "pipeline":
            found += child.named_children
        elif child.type in ("command", "list", "redirected_statement"):
            found.append(child)
    return found
