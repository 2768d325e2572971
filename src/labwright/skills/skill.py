"""One skill: the format of SKILL.md (Agent Skills), and filling in its `{{variables}}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from labwright.domain.errors import Invalid

LONGEST_TEXT = 200_000
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FRONTMATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_LONGEST_FRONTMATTER = 16_000
_VARIABLE = re.compile(r"[a-z_][a-z0-9_]*")
_HOW = "A skill starts with ---, then name and description, then ---; see docs/how-to/write-a-skill.md."


class SkillSource(StrEnum):
    BUILT_IN = "built-in"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    id: str  # the name of the skill and of its folder
    title: str
    description: str
    variables: tuple[str, ...]
    body: str  # the text for the model, with variables not yet filled in
    text: str  # the whole file
    source: SkillSource


def is_name(text: str) -> bool:
    """Return whether the text has only lower-case letters, digits and single hyphens."""
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None


def check_name(text: str) -> str:
    if not is_name(text):
        raise Invalid(
            f"{text[:LONGEST_NAME]!r} is not a valid skill name.",
            hint=f"Use lower-case letters, digits and single hyphens, at most {LONGEST_NAME} characters.",
            field=("name",),
        )
    return text


def read_skill(text: str, source: SkillSource) -> Skill:
    """Parse and validate a skill. Every mistake that would matter later is reported here."""
    if len(text) > LONGEST_TEXT:
        raise Invalid(
            f"A skill may have {LONGEST_TEXT:,} characters at most.", hint="Shorten it, or split it into two skills."
        )
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
    import yaml  # imported here: it is large and rarely needed

    try:
        facts = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # an invalid date is a ValueError
        problem = " ".join(str(error).split())[:300]
        raise Invalid(f"The frontmatter is not valid YAML: {problem}.", hint=_HOW) from error
    if not isinstance(facts, dict):
        raise Invalid("The frontmatter must be a mapping of names to values.", hint=_HOW)
    return facts, text[match.end() :]


def _description(facts: dict[str, Any]) -> str:
    found = facts.get("description")
    if not isinstance(found, str) or not found.strip() or len(found) > LONGEST_DESCRIPTION:
        raise Invalid(
            f"A skill needs a description of 1 to {LONGEST_DESCRIPTION} characters.",
            hint="Describe what the skill does and when to use it. A model chooses skills by this text alone.",
            field=("description",),
        )
    return " ".join(found.split())


def _metadata(facts: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    found = facts.get("metadata") or {}
    if not isinstance(found, dict):
        raise Invalid("`metadata` must be a mapping of names to values.", hint=_HOW, field=("metadata",))
    given = found.get("variables") or ""
    # The format allows only text in metadata, but most people write a list.
    names = given if isinstance(given, list) else re.split(r"[\s,]+", str(given).strip())
    variables = tuple(dict.fromkeys(str(name) for name in names if name))
    for name in variables:
        if not _VARIABLE.fullmatch(name):
            raise Invalid(
                f"{name!r} is not a valid variable name.",
                hint="Use lower-case letters, digits and underscores.",
                field=_VARIABLES_FIELD,
            )
    return " ".join(str(found.get("title") or "").split())[:200], variables


_VARIABLES_FIELD = ("metadata", "variables")


def _check_variables(skill: Skill) -> None:
    undeclared = [name for name in variables_in(skill.body) if name not in skill.variables]
    if undeclared:
        raise Invalid(
            f"The skill uses {{{{{undeclared[0]}}}}} without declaring it.",
            hint="List every variable in metadata.variables of the frontmatter.",
            field=_VARIABLES_FIELD,
        )


_SLOT = re.compile(r"\{\{[ \t]*([a-z_][a-z0-9_]*)[ \t]*\}\}")


def variables_in(body: str) -> list[str]:
    """Return each variable once, in order. Raise Invalid for braces that are not a variable."""
    rest = _SLOT.sub("", body)
    if "{{" in rest:
        line = next(line for line in rest.splitlines() if "{{" in line)
        raise Invalid(
            f"This is not a variable: {line[line.index('{{') :][:60]!r}.",
            hint="A variable is {{name}}, in lower-case letters. Two opening braces have no other meaning in a skill.",
        )
    return list(dict.fromkeys(_SLOT.findall(body)))


def rendered(body: str, values: Mapping[str, str]) -> str:
    """Fill in the variables. A value is plain text: variables inside a value are not replaced."""
    missing = [name for name in variables_in(body) if name not in values]
    if missing:
        raise Invalid(
            f"There is no value for {', '.join(f'{{{{{name}}}}}' for name in missing)}.",
            hint="Set it in `variables` over HTTP, or with --set NAME=VALUE on the command line.",
            field=("variables", missing[0]),
        )
    return _SLOT.sub(lambda slot: values[slot[1]], body)
