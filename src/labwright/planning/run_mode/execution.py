"""What the steps of one plan share while it runs: the server's lab, the approved bytes, names that stay the same."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.ids import id_of
from labwright.planning.record.state import PlanRunHandoff
from labwright.planning.run_mode.approved import check_approved
from labwright.planning.runs.waiting import wait_for
from labwright.planning.scan import ProjectScan
from labwright.workflow import Failed, Sealed
from labwright.workspace import PlanWorkspaceHandle

Found = TypeVar("Found")


class StepFailed(Failed):
    """What a step started came to nothing."""


@dataclass(slots=True, kw_only=True)
class Execution:
    lab: Lab
    handle: PlanWorkspaceHandle
    handoff: PlanRunHandoff
    scan: ProjectScan  # another one as soon as the environment is made
    actor: Actor
    stopping: threading.Event
    tell: Callable[..., None]  # fact, and what there is to say about it
    title: str
    failed_before: Mapping[str, int]  # by step: how often it failed in earlier executions

    def check_approved(self) -> None:
        check_approved(self.handle, self.handoff, self.scan, begun=True)

    def id_for(self, kind: str, step: str, inputs: Mapping[str, Sealed], attempt: int = 0) -> str:
        """The same after a kill, so nothing is started twice; another one when a failed step is tried anew."""
        return self._id(kind, step, inputs, self.failed_before.get(step, 0), attempt)

    def earlier_ids(self, kind: str, step: str, inputs: Mapping[str, Sealed]) -> list[str]:
        """What the step was tried with before, oldest first: of the same approved bytes, or it would be no such id."""
        return [self._id(kind, step, inputs, number, 0) for number in range(self.failed_before.get(step, 0))]

    def _id(self, kind: str, step: str, inputs: Mapping[str, Sealed], failed: int, attempt: int) -> str:
        given = {name: value.encoded for name, value in inputs.items()}
        about = [self.handle.id, self.handoff.digest, step, given, failed, attempt]
        return id_of(kind, json.dumps(about, sort_keys=True).encode())

    def wait_for(self, look: Callable[[], Found | None]) -> Found:
        return wait_for(self.lab, look, self.stopping)


def plain(encoded: Any) -> Any:
    """A value that came from another process, without any class that it names: what JSON knows, and no more."""
    if isinstance(encoded, list):
        return [plain(item) for item in encoded]
    if not isinstance(encoded, dict):
        return encoded
    if "$float" in encoded:
        return float(encoded["$float"])
    if "$path" in encoded:
        return str(encoded["$path"])
    for tag, part in (("$tuple", "items"), ("$dataclass", "fields"), ("$set", "$set")):
        if tag in encoded:
            return plain(encoded[part])
    if "$dict" in encoded:
        return {str(plain(key)): plain(item) for key, item in encoded["$dict"]}
    return {str(key): plain(item) for key, item in encoded.items()}
