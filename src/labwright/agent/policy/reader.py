"""Read a shell command without running it, and find the parts that should be runs.

The reader follows variables, loops, `bash -c`, here-documents, pipes into a shell, scripts of the project, and scripts
that the command itself writes. If only running the command would show what it does, the reader says so.
"""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
_IN_SEQUENCE = ("list", "compound_statement", "program")
_LOOPS = ("for_statement", "while_statement", "c_style_for_statement")
_REDIRECTS = ("file_redirect", "herestring_redirect", "heredoc_redirect")
_SILENT = ("cd", ":", "conda", "mamba", "micromamba", "pyenv", "direnv", "ssh-agent", "brew")  # eval "$(conda …)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    why: str
    words: list[str]
    folder: Path
    is_all: bool  # the words alone say what to run
    variables: dict[str, str]  # set in front of the command


class Reader:
    def __init__(self, project: Path) -> None:
        self.runs: list[FoundRun] = []  # in the order in which they would start
        self.folder = project
        self.words = BashWords(self._output_of, self._as_file, self._matching)
        self.written: dict[Path, str] = {}  # files that the command itself writes
        self._depth = 0
        self._steps = 0
        self._is_all = True
        self._has_input = False  # the current command reads something on its input
        self._variables: dict[str, str] = {}  # set in front of the current command

    def add(self, why: str, words: list[str]) -> None:
        is_all = self._is_all and not self._has_input
        self.runs.append(FoundRun(why=why, words=words, folder=self.folder, is_all=is_all, variables=self._variables))

    def read(self, text: str) -> None:
        """Add the runs in a piece of shell."""
        if self._depth >= _DEEPEST:
            self.add("It is nested too deeply to be read", [text])
            return
        self._depth += 1
        root = parse(text)
        self._is_all = self._is_all and root.named_child_count == 1 and root.named_children[0].type != "list"
        self.visit(root)
        self._depth -= 1

    def run(self, words: list[str], given: str | None = None) -> None:
        """Add the runs that one simple command starts."""
        if words := list(itertools.dropwhile(operator.not_, words)):
            commands.judge(self, words, given)

    def first(self, read: Callable[[], None]) -> FoundRun | None:
        """Return the first run that a reading finds, without adding it."""
        outer, self.runs = self.runs, []
        read()
        inner, self.runs = self.runs, outer
        return inner[0] if inner else None

    def visit(self, node: Node, given: str | None = None) -> str:
        """Add the runs in a node, and return what it prints. `given` is what it reads on its input, or None."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TooMuch
        if node.type == "command":
            return self._command(node, given)
        if node.type == "redirected_statement":
            return self._redirected(node, given)
        if node.type == "pipeline":
            for stage in node.named_children:
                given = self.visit(stage, given)
            return given or ""
        if node.type == "variable_assignment":
            name, *value = node.named_children
            self.words.variables[source(name)] = self.words.value(value[0]) if value else ""
            return ""
        if node.type in _LOOPS:
            return self._loop(node, given)
        if node.type == "subshell":
            with self._apart():
                return self._each(node, given)
        printed = self._each(node, given)
        return printed if node.type in _IN_SEQUENCE else UNKNOWN

    def _each(self, node: Node, given: str | None) -> str:
        return "".join([self.visit(child, given) for child in node.named_children])

    @contextmanager
    def _apart(self) -> Iterator[None]:
        folder, variables = self.folder, dict(self.words.variables)
        yield
        self.folder, self.words.variables = folder, variables

    def _loop(self, node: Node, given: str | None) -> str:
        """Visit the body once for each value that is written down."""
        self._is_all = True
        if node.type != "for_statement":
            self._each(node, given)
            return UNKNOWN
        variable, *values = node.named_children[:-1]
        known = [word for value in values for word in self.words.of(value)] or [UNKNOWN]
        for word in known[:_MOST_TURNS]:
            self.words.variables[source(variable)] = word
            self.visit(node.named_children[-1], given)
        return UNKNOWN

    def _redirected(self, node: Node, given: str | None) -> str:
        body = node.child_by_field_name("body")
        target: Path | None = None
        further: list[Node] = []
        for redirect in (child for child in node.named_children if child.type in _REDIRECTS):
            given, target = self._redirect(redirect, given, target)
            further += _behind(redirect)
        output = self.visit(body, given) if body is not None else given or ""
        if target is not None:
            self.written[target] = output
        for stage in further:
            output = self.visit(stage, output)
        return output

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
        sign = next((source(child) for child in node.children if not child.is_named), "")
        if sign == "<":
            return self.text_of(value) or UNKNOWN, target
        return given, self.path(value) if sign in (">", ">>", "&>", ">|") else target

    def _command(self, node: Node, given: str | None) -> str:
        words: list[str] = []
        variables = dict(self._variables)
        for child in node.named_children:
            if child.type == "variable_assignment":
                variables[source(child.named_children[0])] = self.words.value(child.named_children[-1])
            elif child.type in ("herestring_redirect", "file_redirect"):
                given, _ = self._redirect(child, given, None)
            elif child.type != "comment":
                words += self.words.of(child)
        outer = self._has_input, self._variables
        self._has_input, self._variables = given is not None, variables
        self.run(words, given)
        self._has_input, self._variables = outer
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
        """Return what a `$(…)` prints. Its commands run, too."""
        with self._apart():
            return self._each(node, None).rstrip("\n")

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
