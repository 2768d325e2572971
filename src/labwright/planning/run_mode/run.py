"""`run_plan`: carry out what a handoff names, durably. Read this first."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.errors import Conflict
from labwright.domain.plan_document.reader import read
from labwright.planning.checks.entrypoint import as_planned
from labwright.planning.ir.model import read_ir
from labwright.planning.project.contained import child_for, project_python
from labwright.planning.record.state import PlanRunHandoff
from labwright.planning.results import write_results
from labwright.planning.run_mode.approved import check_approved
from labwright.planning.run_mode.codeless import without_code
from labwright.planning.run_mode.environment_step import forget_lost_environment, settle_environment, with_environment
from labwright.planning.run_mode.execution import Execution
from labwright.planning.run_mode.experiment_step import run_experiment
from labwright.planning.run_mode.python_step import run_task
from labwright.planning.scan import ProjectScan
from labwright.workflow import RunResult, Store, StoreInUse, Workflow, run
from labwright.workspace import Digest, PlanWorkspaceHandle

OnEvent = Callable[[dict[str, Any]], None]
_AT_ONCE = 16  # steps; each waits for its runs, and the scheduler says how many of those there are at a time
_CARRIES = ("sweep_id", "run_id")


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    completed: bool  # every step finished
    reason: str  # "" or which step failed and why
    report: str  # path relative to the plan folder
    suspended: bool = False  # told to stop: all is left as it is, and the next call goes on; no report yet


def run_plan(
    lab: Lab,
    handle: PlanWorkspaceHandle,
    handoff: PlanRunHandoff,
    scan: ProjectScan,
    actor: Actor,
    on_event: OnEvent,
    stopping: threading.Event,
) -> PlanOutcome:
    """Blocks until the plan's end. Calling it again goes on where it was, also after a kill.

    Raises Conflict with what changed if the workspace, the project or its environment are not what was approved.
    """
    store = Store(handle.paths.execution, sync="each")
    facts = list(store.facts())
    settle_environment(lab, handle, handoff, scan)
    approved = check_approved(handle, handoff, scan, begun=bool(facts))
    execution = Execution(
        lab=lab,
        handle=handle,
        handoff=handoff,
        scan=scan,
        actor=actor,
        stopping=stopping,
        tell=_Telling(on_event),
        title=read((handle.open_copy(handoff.digest) / "plan" / handle.paths.text.name).read_text()).sections.title,
        failed_before=Counter(fact["step"] for fact in facts if fact["fact"] == "failed"),
    )
    forget_lost_environment(execution, store)
    result = _run(execution, _workflow(execution, approved), store, approved)
    if any(outcome.status == "suspended" for outcome in result.steps.values()) and stopping.is_set():
        return PlanOutcome(False, "it was told to stop, and goes on when it is executed again", "", suspended=True)
    report = write_results(lab, handle, handoff, result)
    reason = _reason(result)
    return PlanOutcome(not reason, reason, report)


class _Telling:
    """Hands facts on; each of a step's with the sweep or run that carries it out."""

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self._made: dict[str, dict[str, Any]] = {}

    def __call__(self, fact: str, **about: Any) -> None:
        self.hand_on({"fact": fact, **about})

    def hand_on(self, line: dict[str, Any]) -> None:
        step = line.get("step", "")
        made = {name: line[name] for name in _CARRIES if name in line}
        if made:
            self._made[step] = made
        self._on_event({**self._made.get(step, {}), **line})


def _workflow(execution: Execution, approved: Digest) -> Workflow:
    """Told by a contained child that loads the approved copy; the server never imports it."""
    handoff = execution.handoff
    copy = execution.handle.open_copy(handoff.digest)
    with child_for(copy, approved, project_python(execution.scan)) as child:
        answer = child.load(handoff.module, handoff.symbol)
        ir = read_ir(PlanWorkspaceHandle(child.workspace))
    if not answer["ok"]:
        raise Conflict(f"The approved workflow does not load: {answer['fault']['message']}.", hint="Validate it again.")
    # What the code says of itself may be another thing each time; what was approved is the IR.
    for found in as_planned(ir, answer["workflow"]):
        raise Conflict(f"The approved workflow is not the planned one: {found.message}", hint="Validate it again.")
    described = without_code(answer["workflow"], lambda step_id, inputs: run_task(execution, step_id, inputs))
    return with_environment(execution, described, ir.workflow.environment)


def _run(execution: Execution, workflow: Workflow, store: Store, approved: Digest) -> RunResult:
    """What a step is known by: its code, its inputs, and the project with its environment as they were approved."""
    around = hashlib.sha256(json.dumps(approved.facts, sort_keys=True).encode()).hexdigest()
    telling = execution.tell
    assert isinstance(telling, _Telling)
    try:
        return run(
            workflow,
            store,
            concurrency=max(2, min(_AT_ONCE, len(workflow.steps))),
            environment={"approved": around},
            on_event=telling.hand_on,
            run_experiment=lambda step, inputs: run_experiment(execution, step, inputs),
            sealed=True,
        )
    except StoreInUse as error:
        raise Conflict(f"Plan {execution.handle.id} is being executed already.", hint="Wait for its end.") from error


def _reason(result: RunResult) -> str:
    """The first step that failed; those behind it were skipped for it."""
    for name, outcome in result.steps.items():
        if outcome.status in ("failed", "suspended"):
            return f"{name}: {outcome.reason}"
    return ""
