"""Alerts over HTTP."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from labwright.domain.alert import Severity
from labwright.server.models.fields import In, Tag, Text


class AlertIn(In):
    message: Annotated[Text, Field(min_length=1, max_length=10_000)]
    choices: list[Tag] = Field(default_factory=list, max_length=20)
    severity: Severity = Severity.WARNING


class AlertAnswer(In):
    choice: Tag
