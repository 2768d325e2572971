"""Find skills: those built into Labwright and those of the project, which take precedence."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labwright.domain.errors import Conflict, Invalid, NotFound
from labwright.files import write_whole
from labwright.skills.skill import LONGEST_TEXT, Skill, SkillSource, check_name, read_skill

SKILL_FILE = "SKILL.md"
_BUILT_IN = Path(__file__).with_name("builtin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSkill:
    """A skill, or the reason why its file is not a valid skill."""

    id: str
    source: SkillSource
    skill: Skill | None
    overrides: bool = False  # a built-in skill of the same name
    fault: str = ""

    def facts(self) -> dict[str, Any]:
        """Return everything except the text."""
        return {
            "id": self.id,
            "title": self.skill.title if self.skill else self.id,
            "description": self.skill.description if self.skill else "",
            "source": self.source,
            "overrides": self.overrides,
            "variables": list(self.skill.variables) if self.skill else [],
            "fault": self.fault,
        }


class SkillRegistry:
    def __init__(self, folder: Path) -> None:
        self._folder = folder  # the project's skills

    def every(self) -> list[ListedSkill]:
        """Return all skills by name. An unreadable one does not hide the others."""
        names = sorted(set(_names_in(_BUILT_IN)) | set(_names_in(self._folder)))
        return [self.listed(name) for name in names]

    def get(self, name: str) -> Skill:
        """Return a skill. A broken skill of the project is an error and does not fall back to the built-in one."""
        check_name(name)
        return _read(self._folder, name, SkillSource.PROJECT) if self.is_own(name) else self.built_in(name)

    def built_in(self, name: str) -> Skill:
        """Return the built-in skill, even if the project overrides it."""
        check_name(name)
        if name not in _names_in(_BUILT_IN):
            raise NotFound(
                f"There is no {'built-in ' if self.is_own(name) else ''}skill {name}.",
                hint="List them with: labwright skills list",
            )
        return _read(_BUILT_IN, name, SkillSource.BUILT_IN)

    def is_own(self, name: str) -> bool:
        return name in _names_in(self._folder)

    def save(self, text: str, name: str | None = None) -> Skill:
        """Validate the text, then write the file atomically."""
        skill = read_skill(text, SkillSource.PROJECT)
        if name is not None and skill.id != check_name(name):
            raise Invalid(
                f"The name in the skill's frontmatter is {skill.id!r}, not {name!r}.",
                hint="Use the same name in the frontmatter and in the address.",
                field=("text",),
            )
        folder = self._folder / skill.id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / SKILL_FILE, text.encode())
        return skill

    def delete(self, name: str) -> None:
        """Delete a skill of the project with its whole folder. A built-in skill of that name becomes visible again."""
        check_name(name)
        if not self.is_own(name):
            self.get(name)
            raise Conflict(
                f"The skill {name} is built in and cannot be deleted.",
                hint="Override it with a skill of the same name.",
            )
        aside = self._folder / f".{name}.deleted"  # not a valid skill name, so a half-deleted folder is never listed
        shutil.rmtree(aside, ignore_errors=True)
        (self._folder / name).rename(aside)
        shutil.rmtree(aside)

    def listed(self, name: str) -> ListedSkill:
        own, built_in = self.is_own(name), name in _names_in(_BUILT_IN)
        source = SkillSource.PROJECT if own else SkillSource.BUILT_IN
        try:
            return ListedSkill(id=name, source=source, skill=self.get(name), overrides=own and built_in)
        except Invalid as error:
            return ListedSkill(id=name, source=source, skill=None, overrides=own and built_in, fault=error.message)


def _names_in(folder: Path) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        if (
            not entry.name.startswith(".")
            and entry.is_dir(follow_symlinks=False)
            and os.path.lexists(f"{entry.path}/{SKILL_FILE}")
        ):
            yield entry.name


def _read(folder: Path, name: str, source: SkillSource) -> Skill:
    path = folder / name / SKILL_FILE
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # refuse links, never block on a pipe
        with open(fd, "rb") as file:
            text = file.read(4 * LONGEST_TEXT + 1).decode()
        skill = read_skill(text, source)
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} cannot be read: {error}.", hint="Put a regular UTF-8 file there.") from error
    except Invalid as error:
        raise Invalid(f"{path}: {error.message}", hint=error.hint, field=error.field) from error
    if skill.id != name:
        raise Invalid(
            f"{path}: the name in the frontmatter is {skill.id!r}.", hint=f"It must equal the folder's name, {name}."
        )
    return skill
