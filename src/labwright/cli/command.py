"""What commands share: their options, the screen and client they are called with, and groups that accept a goal."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer
from typer.core import TyperGroup

from labwright.cli.screen import Screen
from labwright.client.address import find_project
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid

P = ParamSpec("P")
Json = dict[str, Any]
INTERRUPTED = 130  # exit code after Ctrl-C
NEW = "new"

Project = Annotated[
    Path | None,
    typer.Option("--project", metavar="DIR", help="The project folder. Default: the nearest one with a .labwright."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise Invalid(
            "The current folder was deleted.",
            hint='If it was created again, run: cd "$PWD". Otherwise change to another folder.',
        ) from error


def project_folder(project: Path | None) -> Path:
    if project is None:
        return find_project(current_folder())
    if not project.is_dir():
        raise Invalid(f"There is no folder {project}.", hint="Name an existing folder with --project.")
    return project.resolve()


def with_client(command: Callable[Concatenate[Screen, LabClient, P], None]) -> Callable[..., None]:
    """Call a command with a screen and a client, and give it the options --project and --json.

    A group's callback is skipped if one of the group's commands follows.
    """

    @wraps(command)
    def call(*, context: typer.Context, project: Path | None, as_json: bool, **arguments: Any) -> None:
        if context.invoked_subcommand is None:
            command(Screen(as_json=as_json), LabClient(project_folder(project)), **arguments)  # type: ignore[call-arg]

    own = list(signature(command, eval_str=True).parameters.values())[2:]
    call.__signature__ = signature(command).replace(  # type: ignore[attr-defined]
        parameters=[
            *(parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own),
            Parameter("project", Parameter.KEYWORD_ONLY, default=None, annotation=Project),
            Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=AsJson),
            Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context),
        ]
    )
    return call


def group(cls: type[TyperGroup] = TyperGroup, **settings: Any) -> typer.Typer:
    return typer.Typer(cls=cls, rich_markup_mode=None, add_completion=False, **settings)


class GoalGroup(TyperGroup):
    """A group where `labwright plan "a goal"` is short for `labwright plan new "a goal"`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == ["--json"] and args[1:2] and args[1] in self.commands:
            args = [args[1], "--json", *args[2:]]  # the option belongs to the command
        if args and args[0] not in (*self.commands, "--help"):
            self._check_goal(ctx.command_path, args[0])
            args = [NEW, *args]
        return list(super().parse_args(ctx, args))

    def _check_goal(self, path: str, first: str) -> None:
        """Refuse a single word: it is more likely a mistyped command than a goal."""
        if first.startswith("-") or not first.strip() or len(first.split()) > 1:
            return
        similar = get_close_matches(first, self.commands, n=1)
        hint = f"Did you mean: {path} {similar[0]}" if similar else "Write a goal as a sentence in quotes"
        raise Invalid(f"{first!r} is not a command, and one word is not a goal.", hint=f"{hint}. See: {path} --help")
