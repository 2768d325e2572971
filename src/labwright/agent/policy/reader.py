"""Read a shell command without running it, and find the parts that should be runs.

The reader follows variables, loops, `bash -c`, here-documents, pipes into a shell, scripts of the project, and scripts
that the command itself writes. If only running the command would show what it does, the reader says so.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from labwright.agent.policy import commands
from labwright.agent.policy.bash import UNKNOWN, BashWords, TooMuch, parse, source

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST = 8
_MOST_TURNS = 20  # of a loop
_MOST_STEPS = 3000
_LARGEST_SCRIPT = 1 << 20
_LOOPS = ("for_statement", "while_statement", "c_style_for_statement")
_INPUTS = ("file_redirect", "herestring_redirect", "heredoc_redirect")
_SILENT = ("cd", ":", "conda", "mamba", "micromamba", "pyenv", "direnv", "ssh-agent", "brew")  # eval "$(conda …)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    why: str
    words: list[str]
    folder: Path
    is_all: bool  # the words alone say what to run
    variables: dict[str, str] = field(default_factory=dict)


class Reader:
    def __init__(self, project: Path) -> None:
        self.folder = project
        self.words = BashWords(self._output_of, self._as_file, self._matching)
        self.written: dict[Path, str] = {}  # files that the command itself writes
        self._depth = 0
        self._steps = 0
        self._is_all = True
        self._has_input = False  # the current command reads something on its input

    def read(self, text: str) -> Iterator[FoundRun]:
        """Yield the runs in a piece of shell, in the order in which they would start."""
        if self._depth >= _DEEPEST:
            yield self.found("It is nested too deeply to be read", [text])
            return
        self._depth += 1
        root = parse(text)
        self._is_all = self._is_all and root.named_child_count == 1 and root.named_children[0].type != "list"
        yield from self.visit(root)
        self._depth -= 1

    def found(self, why: str, words: list[str]) -> FoundRun:
        return FoundRun(why=f"{why}.", words=words, folder=self.folder, is_all=self._is_all and not self._has_input)

    def run(self, words: list[str], given: str | None = None) -> Iterator[FoundRun]:
        """Yield the runs that one simple command starts."""
        words = words[next((at for at, word in enumerate(words) if word), len(words)) :]
        if words:
            yield from commands.judge(self, words, given)

    def visit(self, node: Node, given: str | None = None) -> Iterator[FoundRun]:
        """`given` is what the node reads on its input, or None."""
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
                given = self._printed(stage, given)
        elif kind == "variable_assignment":
            name, *value = node.named_children
            yield from self._each(node, None)
            self.words.variables[source(name)] = self.words.value(value[0]) if value else ""
        elif kind in _LOOPS:
            yield from self._loop(node, given)
        elif kind == "subshell":
            with self._apart():
                yield from self._each(node, given)
        else:
            yield from self._each(node, given)

    def _each(self, node: Node, given: str | None) -> Iterator[FoundRun]:
        for child in node.named_children:
            yield from self.visit(child, given)

    @contextmanager
    def _apart(self) -> Iterator[None]:
        folder, variables = self.folder, dict(self.words.variables)
        yield
        self.folder, self.words.variables = folder, variables

    def _loop(self, node: Node, given: str | None) -> Iterator[FoundRun]:
        """Visit the body once for each value that is written down."""
        self._is_all = True
        if node.type != "for_statement":
            yield from self._each(node, given)
            return
        variable, *values = node.named_children[:-1]
        known = [word for value in values for word in self.words.of(value)] or [UNKNOWN]
        for value in values:
            yield from self._each(value, None)
        for word in known[:_MOST_TURNS]:
            self.words.variables[source(variable)] = word
            yield from self.visit(node.named_children[-1], given)

    def _redirected(self, node: Node, given: str | None) -> Iterator[FoundRun]:
        body = node.child_by_field_name("body")
        target: Path | None = None
        further: list[Node] = []
        for redirect in (child for child in node.named_children if child.type in _INPUTS):
            given, target = self._redirect(redirect, given, target)
            further += _behind(redirect)
        if body is not None:
            yield from self.visit(body, given)
        output = self._printed(body, given) if body is not None else given or ""
        if target is not None:
            self.written[target] = output
        for stage in further:
            yield from self.visit(stage, output)
            output = self._printed(stage, output)

    def _redirect(self, node: Node, given: str | None, target: Path | None) -> tuple[str | None, Path | None]:
        """Return what is read on the input, and the file that the output goes to."""
        if node.type == "heredoc_redirect":
            bodies = [source(child) for child in node.named_children if child.type == "heredoc_body"]
            for redirect in (child for child in node.named_children if child.type == "file_redirect"):
                _, target = self._redirect(redirect, given, target)
            return bodies[0] if bodies else "", target
        value = self.words.value(node.named_children[-1]) if node.named_children else ""
        if node.type == "herestring_redirect":
            return value, target
        operator = next((source(child) for child in node.children if not child.is_named), "")
        if operator == "<":
            return self.text_of(value) or UNKNOWN, target
        return given, self.path(value) if operator in (">", ">>", "&>", ">|") else target

    def _command(self, node: Node, given: str | None) -> Iterator[FoundRun]:
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
        outer, self._has_input = self._has_input, given is not None
        for found in self.run(words, given):
            yield replace(found, variables=variables)
        self._has_input = outer

    def _substituted(self, node: Node) -> Iterator[FoundRun]:
        """Visit the commands inside of words: they run, too."""
        if node.type in ("command_substitution", "process_substitution"):
            with self._apart():
                yield from self._each(node, None)
        else:
            for child in node.named_children:
                yield from self._substituted(child)

    def _printed(self, node: Node, given: str | None) -> str:
        """Return what a command prints, as far as that is known."""
        if node.type == "pipeline":
            for stage in node.named_children:
                given = self._printed(stage, given)
            return given or ""
        if node.type in ("list", "subshell", "compound_statement", "program"):
            return "".join(self._printed(child, given) for child in node.named_children)
        if node.type == "redirected_statement":
            for child in (child for child in node.named_children if child.type in _INPUTS):
                given, _ = self._redirect(child, given, None)
            body = node.child_by_field_name("body")
            return self._printed(body, given) if body is not None else ""
        if node.type != "command":
            return UNKNOWN
        words: list[str] = []
        for child in node.named_children:
            if child.type == "herestring_redirect":
                given = self.words.value(child.named_children[-1])
            elif child.type not in ("variable_assignment", "file_redirect", "comment"):
                words += self.words.of(child)
        return self._printed_by(words, given) if words else ""

    def _printed_by(self, words: list[str], given: str | None) -> str:
        program, arguments = words[0], words[1:]
        plain = [word for word in arguments if not word.startswith("-")]
        if program == "echo":
            return " ".join(plain if arguments[:1] in (["-n"], ["-e"], ["-ne"], ["-en"]) else arguments) + "\n"
        if program == "printf":
            text = "".join(arguments[:1]).encode().decode("unicode_escape", "replace")
            for value in arguments[1:]:
                text = text.replace("%s", value, 1) if "%s" in text else f"{text} {value}"
            return text
        if program == "cat" and plain:
            texts = map(self.text_of, plain)
            return "".join(UNKNOWN if content is None else content for content in texts)
        if program in ("cat", "tee"):
            return given or ""
        if program in ("which", "command"):
            return plain[0] if plain else UNKNOWN
        if program in _SILENT:
            return ""
        return {"nproc": "1", "pwd": "."}.get(program, UNKNOWN)

    def _output_of(self, node: Node) -> str:
        return "".join(self._printed(child, None) for child in node.named_children).rstrip("\n")

    def _as_file(self, node: Node) -> str:
        path = self.path(f"/dev/fd/{len(self.written)}")
        self.written[path] = self._output_of(node)
        return str(path)

    def _matching(self, pattern: str) -> list[str]:
        if UNKNOWN in pattern or pattern.startswith(("-", "/", "~")) or "**" in pattern:
            return []
        try:
            found = self.folder.glob(pattern)
            return sorted(str(path.relative_to(self.folder)) for path in itertools.islice(found, _MOST_TURNS))
        except (ValueError, NotImplementedError, OSError):
            return []  # not a pattern of file names

    def path(self, name: str) -> Path:
        return Path(os.path.normpath(self.folder / os.path.expanduser(name)))

    def text_of(self, name: str) -> str | None:
        """Return the text of a file that exists or that the command writes, or None."""
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
    """Return the commands on the line of a here-document after it: `<<EOF | bash`."""
    found = []
    for child in redirect.named_children:
        if child.type == "pipeline":
            found += child.named_children
        elif child.type in ("command", "list", "redirected_statement"):
            found.append(child)
    return found
