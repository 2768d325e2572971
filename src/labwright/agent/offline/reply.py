"""Replies of the rule-based chat: tool calls or text, and how runs are written in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Results = Sequence[Json]  # results of the tools that this request has called so far


@dataclass(frozen=True, slots=True)
class Ask:
    """A tool call."""

    tool: str
    arguments: Json


Reply = list[Ask] | str
Rule = Callable[[re.Match[str], Results], Reply]


def requested_run(match: re.Match[str]) -> str:
    return match["run"].strip().lstrip("@")


def named(run: Json) -> str:
    return f"{run['id']} `{run['name']}`"


def because(run: Json) -> str:
    """Return the reason of a status in brackets. Sentences are quoted: their numbers come from the server."""
    reason = str(run.get("status_reason", ""))
    return f" ({f'`{reason}`' if ' ' in reason else reason.replace('_', ' ')})" if reason else ""
