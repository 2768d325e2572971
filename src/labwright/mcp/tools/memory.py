"""What is worth knowing in later work."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from labwright.client.lab import LabClient
from labwright.mcp.tools.briefly import Json


def recall(lab: LabClient) -> list[Json]:
    """What is remembered of this project, newest first."""
    return [memory for memory in lab.memories() if memory["accepted"]]


def remember(lab: LabClient, text: Annotated[str, Field(description="one fact, in a sentence")]) -> Json:
    """Propose something to be remembered; it counts once a person has accepted it."""
    return lab.add_memory(text)
