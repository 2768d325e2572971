"""One skill as a value, read from the text of a SKILL.md in the Agent Skills format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from labwright.domain.errors import Invalid
from labwright.skills.render import variables_in

LONGEST_TEXT = 200_000
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FRONTMATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_LONGEST_FRONTMATTER = 16_000
_VARIABLE = re.compile(r"[a-z_][a-z0-9_]*")
_HOW = "A skill begins with ---, then name and description, then ---; see docs/how-to/write-a-skill.md."


class SkillSource(StrEnum):
    BUILT_IN = "built-in"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    id: str  # its name, which is also its folder's
    title: str
    description: str
    variables: tuple[str, ...]
    body: str  # what a model is given, once the variables are filled in
    text: str  # the whole file
    source: SkillSource


def is_name(text: str) -> bool:
    """Small letters, digits and single hyphens: safe in a path, an address and a shell."""
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None


def check_name(text: str) -> str:
    if not is_name(text):
        raise Invalid(
            f"{text[:LONGEST_NAME]!r} is no name for a skill.",
            hint=f"Use small letters, digits and single hyphens, at most {LONGEST_NAME} characters.",
            field=("name",),
        )
    return text


def read_skill(text: str, source: SkillSource) -> Skill:
    """Everything that could go wrong when it is used is told here."""
    if len(text) > LONGEST_TEXT:
        raise Invalid(f"A skill may have {LONGEST_TEXT:,} characters at most.", hint="Say less, or make two of it.")
    facts, body = _parts(text)
    title, variables = _metadata(facts)
    name = check_name(str(facts.get("name", "")))
    skill = Skill(
        id=name,
        title=title or name,
        description=_description(facts),
        variables=variables,
        body=body.strip() + "\n",
        text=text,
        source=source,
    )
    _check_variables(skill)
    return skill


def _parts(text: str) -> tuple[dict[str, Any], str]:
    match = _FRONTMATTER.match(text)
    if match is None:
        raise Invalid("The skill has no frontmatter.", hint=_HOW)
    if len(match[1]) > _LONGEST_FRONTMATTER:
        raise Invalid(f"The frontmatter may have {_LONGEST_FRONTMATTER:,} characters at most.", hint=_HOW)
    import yaml  # here, as it is large and skills are read now and then

    try:
        facts = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that is none is a ValueError
        words = " ".join(str(error).split())[:300]
        raise Invalid(f"The frontmatter is not valid YAML: {words}.", hint=_HOW) from error
    if not isinstance(facts, dict):
        raise Invalid("The frontmatter must be names and values.", hint=_HOW)
    return facts, text[match.end() :]


def _description(facts: dict[str, Any]) -> str:
    found = facts.get("description")
    if not isinstance(found, str) or not found.strip() or len(found) > LONGEST_DESCRIPTION:
        raise Invalid(
            f"A skill needs a description of 1 to {LONGEST_DESCRIPTION} characters.",
            hint="Say what it does and when to use it: that is all a model sees before it chooses the skill.",
            field=("description",),
        )
    return " ".join(found.split())


def _metadata(facts: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    found = facts.get("metadata") or {}
    if not isinstance(found, dict):
        raise Invalid("`metadata` must be names and values.", hint=_HOW, field=("metadata",))
    given = found.get("variables") or ""
    # The format knows text alone in its metadata; a list is what most people write.
    names = given if isinstance(given, list) else re.split(r"[\s,]+", str(given).strip())
    variables = tuple(dict.fromkeys(str(name) for name in names if name))
    for name in variables:
        if not _VARIABLE.fullmatch(name):
            raise Invalid(
                f"{name!r} is no name for a variable.", hint="Use small letters, digits and underscores.", field=_PLACE
            )
    return " ".join(str(found.get("title") or "").split())[:200], variables


_PLACE = ("metadata", "variables")


def _check_variables(skill: Skill) -> None:
    undeclared = [name for name in variables_in(skill.body) if name not in skill.variables]
    if undeclared:
        raise Invalid(
            f"The skill uses {{{{{undeclared[0]}}}}} without declaring it.",
            hint="Name every variable in metadata.variables of the frontmatter.",
            field=_PLACE,
        )
