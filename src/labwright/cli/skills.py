"""Skills: what models are told. List, read, render them; install them for coding assistants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labwright.cli.options import AsJson, Project, connect, project_folder
from labwright.cli.screen import Cell, Column, Screen, warn
from labwright.domain.errors import Invalid
from labwright.paths import ProjectPaths
from labwright.skills.install import Editor, Installed, Outcome, install, installed_text, unanswered
from labwright.skills.registry import Listed, SkillRegistry
from labwright.skills.skill import Skill

SkillName = Annotated[str, typer.Argument(metavar="SKILL", help="The skill's name.")]
_STYLES = {Outcome.WRITTEN: "green", Outcome.UPDATED: "green", Outcome.UNCHANGED: "dim", Outcome.EDITED: "amber"}

skills = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)


@skills.callback()
def _skills() -> None:
    pass


@skills.command("list")
def list_skills(project: Project = None, as_json: AsJson = False) -> None:
    """List the skills: built-in ones, and the project's own, which go before them."""
    screen = Screen(as_json=as_json)
    found = _registry(project).every()
    if as_json:
        screen.json([listed.facts() for listed in found])
        return
    columns = [Column(title="skill"), Column(title="from"), Column(title="what it does", shrinks=True)]
    screen.table(columns, [_row(listed) for listed in found])
    screen.next("Read one: labwright skills show SKILL")


def _row(listed: Listed) -> list[Cell]:
    source = f"{listed.source}, over the built-in one" if listed.overrides else str(listed.source)
    if listed.skill is None:
        return [listed.id, source, (f"cannot be used: {listed.fault}", "red")]
    return [(listed.id, "bold"), source, listed.skill.description]


@skills.command("show")
def show(
    name: SkillName,
    built_in: Annotated[
        bool, typer.Option("--built-in", help="As it comes with Labwright, not the project's own over it.")
    ] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Show a skill as it is written, variables not filled in."""
    screen, registry = Screen(as_json=as_json), _registry(project)
    skill = registry.built_in(name) if built_in else registry.get(name)
    if as_json:
        listed = Listed(id=name, source=skill.source, skill=skill) if built_in else registry.listed(name)
        screen.json({**listed.facts(), "text": skill.text})
    else:
        screen.output(skill.text)


@skills.command("render")
def render(
    name: SkillName,
    given: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A variable's value, such as goal=…")
    ] = None,
    remote: Annotated[
        bool, typer.Option("--remote", help="For a shell on another machine: with the token in it, not in a file here.")
    ] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Print a skill for a model, with the project as it is now. The token it points to is an agent's."""
    screen = Screen(as_json=as_json)
    variables = dict(_assignment(text) for text in given or [])
    found = connect(project).render_skill(name, variables, "remote" if remote else None)
    if as_json:
        screen.json(found)
    else:
        screen.output(found["text"])


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Invalid(f"{text!r} is not NAME=VALUE.", hint='For example --set goal="find the best learning rate".')
    return name, value


@skills.command("install")
def install_skills(
    names: Annotated[list[str] | None, typer.Argument(metavar="SKILL", help="Default: all of them.")] = None,
    editors: Annotated[
        list[Editor] | None, typer.Option("--for", metavar="EDITOR", help="claude, opencode, codex or cursor; repeat.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Also files that somebody has edited.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Write skills into .claude/skills and .agents/skills, where coding assistants look. No token is in them."""
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
            screen.say((outcome.ljust(11), _STYLES[outcome]), path)
        screen.next("Add the tools as well: docs/how-to/use-with-editors.md")
    _tell_of_edits(done)


def _chosen(registry: SkillRegistry, names: list[str] | None) -> list[Skill]:
    """All that are named must be fit; of all that are there, an unfit one is told and passed over."""
    if names:
        found = [registry.get(name) for name in names]
        for skill in found:
            installed_text(skill)  # before the first file is written
        return found
    fit = []
    for listed in registry.every():
        if listed.skill is None:
            warn(f"{listed.id} is left out: {listed.fault}")
        elif unknown := unanswered(listed.skill):
            warn(f"{listed.id} is left out: no command answers {', '.join(unknown)}.")
        else:
            fit.append(listed.skill)
    return fit


def _tell_of_edits(done: list[Installed]) -> None:
    for result in done:
        if result.outcome is Outcome.EDITED:
            warn(f"{result.path} was edited and is left as it is; --overwrite replaces it.")
    if any(result.outcome is Outcome.EDITED for result in done):
        raise typer.Exit(1)


def _registry(project: Path | None) -> SkillRegistry:
    return SkillRegistry(ProjectPaths(project_folder(project)).skills)
