"""What there is to run on, and what wants an answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from labwright.client.lab import LabClient
from labwright.mcp.tools.briefly import Json


def show_cluster(lab: LabClient) -> Json:
    """What there is to run on: type, GPUs and who holds them, processors, what is recommended; runs by status."""
    return lab.cluster()


def detect_cluster(lab: LabClient) -> Json:
    """Look again at what there is to run on. What a person set by hand stays."""
    return lab.detect_cluster()


def list_alerts(
    lab: LabClient,
    status: Literal["pending", "resolved"] | None = "pending",
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> list[Json]:
    """Alerts about runs and sweeps; pending ones wait for an answer."""
    return lab.alerts(status, limit)


def answer_alert(
    lab: LabClient,
    alert_id: str,
    choice: Annotated[str, Field(description="one of its choices; `stop` and `rerun` do what they say")],
) -> Json:
    """Answer an alert. An answer is final."""
    return lab.answer_alert(alert_id, choice)
