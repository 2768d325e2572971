"""Workflows: Python tasks and declared experiments, connected by typed outputs, checked, and run durably.

Standard library only, Python 3.8 or newer: it runs in the project's own interpreter, where Labwright is not installed.
Names for writing a workflow are imported at once, names for checking and running it on first use.
"""

from __future__ import annotations

from labwright.workflow.experiments import (
    Configuration,
    Experiment,
    ExperimentResult,
    ExperimentRun,
    Metric,
    Resources,
)
from labwright.workflow.graph import Output, Step, Workflow
from labwright.workflow.tasks import Retry, Task, task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from labwright.workflow.contract import Finding, Report, validate_contract
    from labwright.workflow.engine import InvalidWorkflow, Outcome, RunResult, run, run_async
    from labwright.workflow.fingerprints import fingerprint
    from labwright.workflow.jobs import Failed, Suspended, TimedOut
    from labwright.workflow.load import describe, load_command, load_in_child, read_answer
    from labwright.workflow.store import Store, StoreInUse
    from labwright.workflow.values import Sealed

_LATER = {
    "Failed": "jobs",
    "Finding": "contract",
    "InvalidWorkflow": "engine",
    "Outcome": "engine",
    "Report": "contract",
    "RunResult": "engine",
    "Sealed": "values",
    "Store": "store",
    "StoreInUse": "store",
    "Suspended": "jobs",
    "TimedOut": "jobs",
    "describe": "load",
    "fingerprint": "fingerprints",
    "load_command": "load",
    "load_in_child": "load",
    "read_answer": "load",
    "run": "engine",
    "run_async": "engine",
    "validate_contract": "contract",
}

__all__ = [
    "Configuration",
    "Experiment",
    "ExperimentResult",
    "ExperimentRun",
    "Failed",
    "Finding",
    "InvalidWorkflow",
    "Metric",
    "Outcome",
    "Output",
    "Report",
    "Resources",
    "Retry",
    "RunResult",
    "Sealed",
    "Step",
    "Store",
    "StoreInUse",
    "Suspended",
    "Task",
    "TimedOut",
    "Workflow",
    "describe",
    "fingerprint",
    "load_command",
    "load_in_child",
    "read_answer",
    "run",
    "run_async",
    "task",
    "validate_contract",
]


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found
