"""A page of the docs as a reader types it: every command, in order, in one shell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
THE_END = "typed to its end"  # printed by whichever shell comes that far
_PROMPT = "$ "
_IS_SETUP = "make "  # done already where tests run
_AS_TYPED = (
    (re.compile(r"^(labwright logs -f .*?)(#.*)?$", re.MULTILINE), r"timeout -s INT 5 \1 || true"),  # left by Ctrl-C
    (re.compile(r"^(curl -sN .*)$", re.MULTILINE), r"timeout -s INT 3 \1 || true"),  # likewise
    (re.compile(r"^(labwright mcp --http.*?)(#.*)?$", re.MULTILINE), r"timeout -s INT 5 \1 || true"),  # likewise
    (re.compile(r"^(labwright wait .*?)(# failed.*)$", re.MULTILINE), r"! \1"),  # it says so by its exit code
    (re.compile(r"^(labwright sim .* -- bash)$", re.MULTILINE), r"\1 -ex"),
)


@dataclass(frozen=True, kw_only=True)
class Page:
    path: str
    place: str = ""  # the folder of the clone to type in
    before: str = ""  # what the reader has by then
    instead: Mapping[str, str] = field(default_factory=dict)  # for what is the reader's own: ids, addresses, folders
    after: str = ""

    @property
    def session(self) -> str:
        typed = "".join(commands_of(ROOT / self.path))
        for pattern, form in _AS_TYPED:
            typed = pattern.sub(form, typed)
        for theirs, ours in self.instead.items():
            assert theirs in typed, f"{self.path} has no {theirs!r} any more"
            typed = typed.replace(theirs, ours)
        return f"set -ex\n{self.before}\n{typed}\n{self.after}\necho '{THE_END}'\n"


def commands_of(page: Path) -> list[str]:
    """What stands in blocks without a language: all of it, or what follows a prompt where output is shown too."""
    blocks = [text for language, text in _BLOCK.findall(page.read_text()) if language == ""]
    return [_without_output(block) for block in blocks if _IS_SETUP not in block]


def block_of(page: str, language: str) -> str:
    """The first file of that kind that the page tells to write."""
    found = _BLOCK.findall((ROOT / page).read_text())
    return next(text for kind, text in found if kind == language)


def _without_output(block: str) -> str:
    lines = block.splitlines(keepends=True)
    typed = [line.removeprefix(_PROMPT) for line in lines if line.startswith(_PROMPT)]
    return "".join(typed or lines)
