"""Install skills as files for coding assistants, without tokens or facts that go out of date.

Variables that a server would fill in become the command that shows the value. User edits are never overwritten.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from labwright.domain.errors import Conflict, Invalid
from labwright.files import write_whole
from labwright.skills.registry import SKILL_FILE
from labwright.skills.skill import Skill, rendered

PREFIX = "labwright-"  # keeps a skill of the user with the same name untouched


class Editor(StrEnum):
    CLAUDE = "claude"
    OPENCODE = "opencode"
    CODEX = "codex"
    CURSOR = "cursor"


class InstallOutcome(StrEnum):
    WRITTEN = "written"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    EDITED = "edited"  # the user changed the file, so it was left alone


FOLDERS = {
    Editor.CLAUDE: ".claude/skills",
    Editor.OPENCODE: ".agents/skills",
    Editor.CODEX: ".agents/skills",
    Editor.CURSOR: ".agents/skills",
}
ASK = {
    "goal": "What the user asks for in this conversation.",
    "experiment_context": "Run `labwright ps`, `labwright sweeps` and `labwright alerts` to see it.",
    "existing_plans": "Run `labwright plan list` to see them.",
    "cluster_state": "Run `labwright cluster` to see it.",
    "server_url": "$(labwright url)",
    "auth_token": "$(labwright token --scope agent --ttl 1h)",
    "auth_header": '-H "@$(labwright token --scope agent --ttl 1h --header-file)"',
    "api_catalog": "`labwright skills render agent-mode` lists them; `$(labwright url)/openapi.json` has every field.",
}
_FILE_MODE = 0o644
_DIGEST = re.compile(r'^(  labwright-digest: )"[0-9a-f]*"$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    path: Path
    outcome: InstallOutcome


def install(skill: Skill, project: Path, editors: Iterable[Editor], *, overwrite: bool) -> list[Installed]:
    """Install the skill once per folder, however many editors read that folder."""
    text = installed_text(skill)
    folders = dict.fromkeys(FOLDERS[editor] for editor in editors)
    return [_place(project / folder / f"{PREFIX}{skill.id}" / SKILL_FILE, text, overwrite) for folder in folders]


def unanswered(skill: Skill) -> list[str]:
    """Return the variables that no command can provide. A skill with such variables cannot be installed."""
    return [name for name in skill.variables if name not in ASK]


def installed_text(skill: Skill) -> str:
    if unknown := unanswered(skill):
        raise Invalid(
            f"The skill {skill.id} needs {{{{{unknown[0]}}}}}, which no command provides.",
            hint="Only skills whose variables Labwright fills in can be installed.",
        )
    head = [
        "---",
        f"name: {PREFIX}{skill.id}",
        f"description: {_as_yaml(skill.description)}",
        "metadata:",
        f"  title: {_as_yaml(skill.title)}",
        '  labwright-digest: ""',
        "---",
    ]
    text = "\n".join([*head, "", rendered(skill.body, ASK)])
    return _DIGEST.sub(rf'\g<1>"{_digest(text)}"', text, count=1)


def _place(path: Path, text: str, overwrite: bool) -> Installed:
    try:
        return _written(path, text, overwrite)
    except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
        hint = "A file is where a folder must be, or a folder where the file must be. Move it away."
        raise Conflict(f"{path} cannot be written: {error.strerror}.", hint=hint) from error


def _written(path: Path, text: str, overwrite: bool) -> Installed:
    there = _read(path)
    if there == text:
        return Installed(path=path, outcome=InstallOutcome.UNCHANGED)
    if os.path.lexists(path) and not overwrite and not _is_ours(there):
        return Installed(path=path, outcome=InstallOutcome.EDITED)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode())
    path.chmod(_FILE_MODE)  # the file belongs to the project and should be committed
    return Installed(path=path, outcome=InstallOutcome.WRITTEN if there is None else InstallOutcome.UPDATED)


def _read(path: Path) -> str | None:
    """Return the text, or None if there is no file or if we cannot have written it (a link, or not text)."""
    try:
        return None if path.is_symlink() else path.read_text()
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def _is_ours(text: str | None) -> bool:
    """Return whether this or an earlier version wrote the text and nobody changed it."""
    found = _DIGEST.search(text or "")
    return found is not None and text is not None and f'"{_digest(text)}"' == found[0].removeprefix(found[1])


def _digest(text: str) -> str:
    return hashlib.sha256(_DIGEST.sub(r'\1""', text, count=1).encode()).hexdigest()[:32]


def _as_yaml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
