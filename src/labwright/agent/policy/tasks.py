"""Task runners: what the targets that they are told to make would run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from labwright.agent.policy import programs
from labwright.agent.policy.names import names_a_run
from labwright.agent.policy.recipes import recipe

if TYPE_CHECKING:
    from labwright.agent.policy.reader import Finding, Reader

Findings = Iterator["Finding"]
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")


def make(reader: Reader, words: list[str], _given: str | None) -> Findings:
    program = "just" if os.path.basename(words[0]) == "just" else "make"
    targets, named, folder, rest = [], None, reader.folder, words[1:]
    if {"-n", "--dry-run", "--just-print", "--list", "-l", "-q", "-p"} & set(rest) or programs.only_asks(rest):
        return
    while rest:
        word = rest.pop(0)
        if word in ("-f", "--file") and rest:
            named = rest.pop(0)
        elif word in ("-C", "--directory", "-d") and rest:
            folder = reader.path(rest.pop(0))
        elif word.startswith("-") or _VARIABLE.match(word):
            continue
        else:
            targets.append(word)
    yield from _targets(reader, words, recipe(program, reader.text_of, folder, named, targets), targets)


def _targets(reader: Reader, words: list[str], text: str | None, targets: list[str]) -> Findings:
    if named := next((target for target in targets if names_a_run(target)), None):
        yield reader.finding(f"The target {named} runs an experiment, by its name", words)
    elif text:
        for found in reader.read(text):
            yield reader.finding(f"Its recipe does: {found.why.rstrip('.')}", words)


def by_name(reader: Reader, words: list[str], _given: str | None) -> Findings:
    """npm, task, invoke, tox and the like: by the names of what they are told to run."""
    yield from _targets(reader, words, None, [word for word in words[1:] if not word.startswith("-")])
