"""Variables whose value another program starts by itself: an editor, a pager, git's way to a server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from labwright.agent.policy.words import UNKNOWN

if TYPE_CHECKING:
    from labwright.agent.policy.reader import Finding, Reader

_COMMAND = re.compile(
    r"(?:\w+_)?(?:EDITOR|PAGER|ASKPASS|RSH)|GIT_SSH(?:_COMMAND)?|GIT_PROXY_COMMAND|GIT_EXTERNAL_DIFF|PROMPT_COMMAND"
    r"|VISUAL|BROWSER|MANPAGER|LESSOPEN|LESSCLOSE|GIT_CONFIG_VALUE_\d+"
)
_SCRIPT = {"BASH_ENV": "bash", "PYTHONSTARTUP": "python"}


def started_by(reader: Reader, name: str, value: str) -> Iterator[Finding]:
    if not value or UNKNOWN in value:
        return
    if name in _SCRIPT:
        yield from reader.run([_SCRIPT[name], value])
    elif _COMMAND.fullmatch(name):
        yield from reader.read(value.lstrip("!|-"))  # git's and LESSOPEN's ways to say that it is a command
