"""The project's server as an agent has it: short-lived tokens that can neither approve, delete nor change settings."""

from __future__ import annotations

from pathlib import Path

from labwright.client.address import read_token
from labwright.client.lab import LabClient
from labwright.domain.actor import Scope
from labwright.paths import ProjectPaths
from labwright.tokens import mint

_NAME = "mcp"
_TOKEN_SECONDS = 900.0


def open_lab(project: Path) -> LabClient:
    """Anew for each call: calls run side by side, servers are started again elsewhere, tokens expire."""
    return LabClient(project, _agent_token)


def _agent_token(paths: ProjectPaths) -> str:
    return mint(read_token(paths), Scope.AGENT, _NAME, _TOKEN_SECONDS)
