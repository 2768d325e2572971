"""`labwright mcp`: this project's verbs as tools for a coding assistant."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from labwright.cli.options import Project, project_folder
from labwright.cli.screen import note

DEFAULT_PORT = 8485


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Over HTTP on this machine instead of standard input.")] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, metavar="PORT", help="With --http; 0 chooses a free one.")
    ] = DEFAULT_PORT,
    project: Project = None,
) -> None:
    """The assistant starts this itself; see docs/how-to/use-with-editors.md. What it does, it does as an agent."""
    folder = project_folder(project)
    if not http and sys.stdin.isatty():
        note("Waiting for an assistant on standard input; Ctrl-C ends it.")
        note("It is added, for example, by: claude mcp add labwright -- labwright mcp")
    from labwright.mcp.serve import serve_http, serve_stdio  # heavy: not for --help

    if http:
        serve_http(folder, port, _tell_address)
    else:
        serve_stdio(folder)


def _tell_address(address: str) -> None:
    note(f"MCP at {address}")
    note("It asks for a token: labwright token --scope agent --ttl 7d")
