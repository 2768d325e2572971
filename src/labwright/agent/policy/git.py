"""Git, by the verbs and settings that start a program of somebody's choice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from labwright.agent.policy.embedded import values_of

if TYPE_CHECKING:
    from labwright.agent.policy.reader import Finding, Reader

_BEFORE_THE_VERB = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path"})
_FILTERS = ("env", "tree", "index", "parent", "msg", "commit", "tag-name")
_PACKS = ("--upload-pack", "--receive-pack", "--exec")
# Options of a verb whose value is a command.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "rebase": ("-x", "--exec"),
    "difftool": ("-x", "--extcmd"),
    "filter-branch": ("--setup", *(f"--{name}-filter" for name in _FILTERS)),
    **dict.fromkeys(("fetch", "pull", "clone", "push", "ls-remote", "archive"), _PACKS),
}
# Words of a verb behind which a command stands.
_BEHIND = {"bisect": "run", "submodule": "foreach"}
_SETTING = re.compile(
    r"(?:core\.(?:pager|editor|sshcommand|askpass|fsmonitor|gitproxy)|sequence\.editor|diff\.external|pager\.\S+?"
    r"|interactive\.difffilter|(?:diff|merge|filter|difftool|mergetool|browser|man)\.\S+?\."
    r"(?:command|textconv|driver|clean|smudge|process|cmd))[= ](.+)"
    r"|(?:alias\.[\w-]+|credential\.(?:\S+?\.)?helper)[= ]!(.+)",
    re.DOTALL | re.IGNORECASE,
)


def git(reader: Reader, words: list[str], _given: str | None) -> Iterator[Finding]:
    settings = values_of(("-c",), words)
    verb, *arguments = _from_the_verb(words[1:]) or [""]
    if verb == "config":
        names = [word for word in arguments if not word.startswith("-")]
        settings = [*settings, " ".join(names[1:] if names[:1] == ["set"] else names)]
    for setting in settings:
        if found := _SETTING.fullmatch(setting):
            yield from reader.read(found[1] or found[2])
    for setting in values_of(("--config-env",), words):
        if _SETTING.fullmatch(f"{setting.partition('=')[0]}=!any"):
            yield reader.finding("Which program it starts can only be told by running it", words)
    for command in values_of(_OPTIONS.get(verb, ()), arguments):
        yield from reader.read(command)
    if _BEHIND.get(verb) in arguments:
        yield from _command(reader, arguments[arguments.index(_BEHIND[verb]) + 1 :])


def _from_the_verb(words: list[str]) -> list[str]:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in _BEFORE_THE_VERB else rest[1:]
    return rest


def _command(reader: Reader, words: list[str]) -> Iterator[Finding]:
    rest = [word for at, word in enumerate(words) if at or not word.startswith("-")]  # `foreach --recursive`
    yield from reader.read(rest[0]) if len(rest) == 1 else reader.run(rest)
