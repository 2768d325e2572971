"""Options and arguments that many commands share, and how they become a client."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labwright.client.address import find_project
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid

Project = Annotated[
    Path | None,
    typer.Option("--project", metavar="DIR", help="The project's folder. Default: the nearest one with a .labwright."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
RunRef = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, its beginning, its name, or `last`.")]
LastRun = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, its beginning, its name, or `last`.", show_default=False)
]
RunRefs = Annotated[list[str], typer.Argument(metavar="RUN", help="Ids, their beginnings, names, or `last`.")]


def present_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise Invalid(
            "The folder that you are in was deleted.", hint='If it was made anew: cd "$PWD". Else go to another one.'
        ) from error


def project_folder(project: Path | None) -> Path:
    if project is None:
        return find_project(present_folder())
    if not project.is_dir():
        raise Invalid(f"There is no folder {project}.", hint="Name an existing one with --project.")
    return project.resolve()


def connect(project: Path | None) -> LabClient:
    return LabClient(project_folder(project))
