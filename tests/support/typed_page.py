"""Type a page of the docs as a reader does: every command, in order, in one shell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
THE_END = "typed to its end"  # printed when the shell reaches this point
_PROMPT = "$ "
_IS_SETUP = "make "  # already done where tests run
_AS_TYPED = (
    (re.compile(r"^(labwright logs -f .*?)(#.*)?$", re.MULTILINE), r"timeout -s INT 5 \1 || true"),  # ends with Ctrl-C
    (re.compile(r"^(curl -sN .*)$", re.MULTILINE), r"timeout -s INT 3 \1 || true"),  # ends with Ctrl-C
    (re.compile(r"^(labwright mcp --http.*?)(#.*)?$", re.MULTILINE), r"timeout -s INT 5 \1 || true"),  # Ctrl-C
    (re.compile(r"^(labwright wait .*?)(# failed.*)$", re.MULTILINE), r"! \1"),  # fails on purpose, with an exit code
    (re.compile(r"^(labwright sim .* -- bash)$", re.MULTILINE), r"\1 -ex"),
)


@dataclass(frozen=True, kw_only=True)
class Page:
    path: str
    place: str = ""  # the folder of the clone in which commands are typed
    before: str = ""  # files that the reader has by then
    instead: Mapping[str, str] = field(default_factory=dict)  # for the reader's own ids and addresses
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
    """Return the commands of blocks without a language: all lines, or those after a prompt if output is shown too."""
    blocks = [text for language, text in _BLOCK.findall(page.read_text()) if language == ""]
    return [_without_output(block) for block in blocks if _IS_SETUP not in block]


def block_of(page: str, language: str) -> str:
    """Return the first block of this language on the page."""
    found = _BLOCK.findall((ROOT / page).read_text())
    return next(text for kind, text in found if kind == language)


def _without_output(block: str) -> str:
    lines = block.splitlines(keepends=True)
    typed = [line.removeprefix(_PROMPT) for line in lines if line.startswith(_PROMPT)]
    return "".join(typed or lines)
