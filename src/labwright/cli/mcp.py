"""`labwright mcp`: the project's tools for a coding assistant."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from labwright.cli.command import Project, project_folder
from labwright.cli.screen import note

DEFAULT_PORT = 8485


def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP on this machine instead of standard input.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, metavar="PORT", help="The port for --http. 0 chooses a free port.")
    ] = DEFAULT_PORT,
    project: Project = None,
) -> None:
    """The assistant starts this command itself and acts as an agent. See docs/how-to/use-with-editors.md."""
    folder = project_folder(project)
    if not http and sys.stdin.isatty():
        note("Waiting for an assistant on standard input. Ctrl-C quits.")
        note("To add it to an assistant, for example: claude mcp add labwright -- labwright mcp")
    from labwright.mcp.serve import serve_http, serve_stdio  # slow to import, so not for --help

    if http:
        serve_http(folder, port, _show_address)
    else:
        serve_stdio(folder)


def _show_address(address: str) -> None:
    note(f"MCP at {address}")
    note("It needs a token: labwright token --scope agent --ttl 7d")
