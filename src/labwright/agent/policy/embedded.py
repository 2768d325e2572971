"""Programs that hand a piece of their own words to a shell: editors, sed, archivers and the like."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labwright.agent.policy.reader import Finding, Reader

EDITORS = frozenset({"vim", "vi", "nvim", "view", "vimdiff", "ex", "ed", "less", "more", "most"})
_ESCAPE = re.compile(r"!\s*(\S.*)|\bte(?:rm(?:inal)?)?\s+(\S.*)")  # :!command, :terminal command
_SEDS_ADDRESS = r"(?:\d+|\$|/(?:\\.|[^/\\\n])*/)"
_SEDS_LINES = rf"(?:{_SEDS_ADDRESS}(?:,\s*{_SEDS_ADDRESS})?\s*!?\s*)?"
_SEDS_E = re.compile(rf"(?:^|[;{{])\s*{_SEDS_LINES}e(?:\s*$|\s+(\S.*))", re.MULTILINE)
_SEDS_S_WITH_E = re.compile(r"s([^\w\s\\])(?:\\.|(?!\1)[^\\])*\1((?:\\.|(?!\1)[^\\])*)\1[gpiImM\d]*e", re.DOTALL)
# Options whose value is a command.
OPTIONS: dict[str, tuple[str, ...]] = {
    "tar": (
        *("--to-command", "-I", "--use-compress-program", "-F", "--info-script", "--new-volume-script"),
        *("--rsh-command", "--checkpoint-action"),
    ),
    "rsync": ("-e", "--rsh"),
    "split": ("--filter",),
    "sort": ("--compress-program",),
    "zip": ("-TT", "--unzip-command"),
    "man": ("-P", "--pager"),
}


def editor(reader: Reader, words: list[str], given: str | None) -> Iterator[Finding]:
    for text in (*words[1:], *(given or "").splitlines()):
        if found := _ESCAPE.search(text):
            yield from reader.read(found[1] or found[2])


def sed(reader: Reader, words: list[str], given: str | None) -> Iterator[Finding]:
    for word in words[1:]:
        for found in _SEDS_E.finditer(word.removeprefix("--expression=")):
            yield from reader.read(found[1] or given or "")
        for found in _SEDS_S_WITH_E.finditer(word):
            yield from reader.read(re.sub(r"\\(.)", r"\1", found[2]))


def in_options(reader: Reader, words: list[str], _given: str | None) -> Iterator[Finding]:
    for option in OPTIONS[os.path.basename(words[0])]:
        for at, word in enumerate(words[1:], 1):
            if word == option:
                value = "".join(words[at + 1 : at + 2])
            elif word.startswith(f"{option}=") or (not option.startswith("--") and word.startswith(option)):
                value = word.removeprefix(option).removeprefix("=")
            else:
                continue
            yield from reader.read(value.removeprefix("exec="))
