"""A reply without a model: tools that are asked, or words; and how a run is put in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Results = Sequence[Json]  # of the tools that this request has called so far


@dataclass(frozen=True, slots=True)
class Ask:
    tool: str
    arguments: Json


Reply = list[Ask] | str
Rule = Callable[[re.Match[str], Results], Reply]


def asked_run(match: re.Match[str]) -> str:
    return match["run"].strip().lstrip("@")


def named(run: Json) -> str:
    return f"{run['id']} `{run['name']}`"


def because(run: Json) -> str:
    """`exit_code` and the like in words; sentences are quoted, as the numbers in them are the server's."""
    reason = str(run.get("status_reason", ""))
    return f" ({f'`{reason}`' if ' ' in reason else reason.replace('_', ' ')})" if reason else ""
