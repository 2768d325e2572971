"""Skills: instructions for models. List, show and render them, and install them for coding assistants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labwright.cli.command import AsJson, Project, group, project_folder, with_client
from labwright.cli.formatting import parse_pair
from labwright.cli.screen import Cell, Column, Screen, warn
from labwright.client.lab import LabClient
from labwright.paths import ProjectPaths
from labwright.skills.install import Editor, InstallOutcome, install, installed_text, unanswered
from labwright.skills.registry import ListedSkill, SkillRegistry
from labwright.skills.skill import Skill

SkillName = Annotated[str, typer.Argument(metavar="SKILL", help="The skill's name.")]
_STYLES = {
    InstallOutcome.WRITTEN: "green",
    InstallOutcome.UPDATED: "green",
    InstallOutcome.UNCHANGED: "dim",
    InstallOutcome.EDITED: "yellow",
}

skills = group(no_args_is_help=True)


@skills.callback()
def _skills() -> None:
    pass


@skills.command("list")
def list_skills(project: Project = None, as_json: AsJson = False) -> None:
    """List the skills: built-in ones and the project's own. The project's own take precedence."""
    screen, found = Screen(as_json=as_json), _registry(project).every()
    if as_json:
        screen.json([listed.facts() for listed in found])
        return
    screen.table(_COLUMNS, found)
    screen.suggest("Show one: labwright skills show SKILL")


def _source(listed: ListedSkill) -> str:
    return f"{listed.source}, replaces the built-in one" if listed.overrides else str(listed.source)


def _description(listed: ListedSkill) -> Cell:
    return (f"invalid: {listed.fault}", "red") if listed.skill is None else listed.skill.description


_COLUMNS = [
    Column("skill", lambda listed: (listed.id, "bold" if listed.skill else "")),
    Column("from", _source),
    Column("description", _description, shrinks=True),
]


@skills.command("show")
def show(
    name: SkillName,
    built_in: Annotated[
        bool, typer.Option("--built-in", help="Show the built-in skill, even if the project replaces it.")
    ] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Show the text of a skill. Variables are not filled in."""
    screen, registry = Screen(as_json=as_json), _registry(project)
    skill = registry.built_in(name) if built_in else registry.get(name)
    if as_json:
        listed = ListedSkill(id=name, source=skill.source, skill=skill) if built_in else registry.listed(name)
        screen.json({**listed.facts(), "text": skill.text})
    else:
        screen.write(skill.text)


@skills.command("render")
@with_client
def render(
    screen: Screen,
    client: LabClient,
    name: SkillName,
    given: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="The value of a variable, such as goal=…")
    ] = None,
    remote: Annotated[
        bool, typer.Option("--remote", help="For a shell on another machine: put the token into the text.")
    ] = False,
) -> None:
    """Print a skill for a model, with the project's current values and an agent's token."""
    variables = dict(parse_pair(text, "--set") for text in given or [])
    found = client.render_skill(name, variables, "remote" if remote else None)
    screen.result(found, lambda _: screen.write(found["text"]))


@skills.command("install")
def install_skills(
    names: Annotated[list[str] | None, typer.Argument(metavar="SKILL", help="Skills. Default: all.")] = None,
    editors: Annotated[
        list[Editor] | None,
        typer.Option("--for", metavar="EDITOR", help="claude, opencode, codex or cursor. Can be repeated."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace edited files too.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Write skills to .claude/skills and .agents/skills for coding assistants. They contain no token."""
    screen, folder = Screen(as_json=as_json), project_folder(project)
    done = [
        result
        for skill in _chosen(_registry(project), names)
        for result in install(skill, folder, editors or list(Editor), overwrite=overwrite)
    ]
    shown = [(str(result.path.relative_to(folder)), result.outcome) for result in done]
    if as_json:
        screen.json([{"path": path, "outcome": outcome} for path, outcome in shown])
    else:
        for path, outcome in shown:
            screen.print((outcome.ljust(11), _STYLES[outcome]), path)
        screen.suggest("To add the tools too, see docs/how-to/use-with-editors.md")
    edited = [result for result in done if result.outcome is InstallOutcome.EDITED]
    for result in edited:
        warn(f"{result.path} was edited and is not replaced. Use --overwrite to replace it.")
    if edited:
        raise typer.Exit(1)


def _chosen(registry: SkillRegistry, names: list[str] | None) -> list[Skill]:
    """Return the named skills, which must all be valid; or all valid skills, with a warning for each invalid one."""
    if names:
        found = [registry.get(name) for name in names]
        for skill in found:
            installed_text(skill)  # fails before the first file is written
        return found
    fit = []
    for listed in registry.every():
        if listed.skill is None:
            warn(f"{listed.id} is skipped: {listed.fault}")
        elif unknown := unanswered(listed.skill):
            warn(f"{listed.id} is skipped: unknown variables {', '.join(unknown)}.")
        else:
            fit.append(listed.skill)
    return fit


def _registry(project: Path | None) -> SkillRegistry:
    return SkillRegistry(ProjectPaths(project_folder(project)).skills)
