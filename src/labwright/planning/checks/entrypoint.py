"""The workflow loads as it will be loaded to run, keeps its contract, does nothing on import, and is the IR's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from labwright.planning.checks.subject import MODULE, SYMBOL, Found, Subject
from labwright.planning.ir.model import PlanIR
from labwright.planning.ir.workflow import IRTypes, workflow_from
from labwright.workflow import describe

_HINT = "Generate the code again, or change the IR."
_DECIDED = ("kind", "inputs", "over", "collect", "after", "when")


def check_entrypoint(subject: Subject) -> Iterator[Found]:
    if folder := subject.child.barred_from:
        yield _out_of_reach(subject.child.python, folder)
        return
    answer = subject.child.load(MODULE, SYMBOL)
    try:
        yield from list(_told(answer))
        described = answer["workflow"] if answer["ok"] else None
    except (KeyError, TypeError, AttributeError) as error:
        yield _unreadable(error)
        return
    if answer["ok"]:
        yield from as_planned(subject.ir, described)


def _out_of_reach(python: str, folder: str) -> Found:
    words = (
        f"{python} cannot be started by a user without rights, as whom code is checked: {folder} is closed to others."
    )
    hint = f"Make bubblewrap work (see `labwright doctor`), or an environment elsewhere, or open it: chmod o+x {folder}"
    return Found(code="python_out_of_reach", place=MODULE, message=words, hint=hint)


def _told(answer: dict[str, Any]) -> Iterator[Found]:
    for effect in answer.get("effects", []):
        words = f"Importing it {effect['what']}: {effect['target']}."
        yield Found(code="import_effect", place=MODULE, message=words, hint="Do it in a task's body.")
    if not answer["ok"]:
        fault = answer["fault"]
        yield Found(code=fault["code"], place=MODULE, message=fault["message"], hint=fault["hint"])
        return
    for finding in answer["contract"]["findings"]:
        yield Found(**{name: str(finding[name]) for name in ("code", "place", "message", "hint")})


def as_planned(ir: PlanIR, loaded: Any) -> Iterator[Found]:
    """Hold the description that code gave of itself against the one that the IR gives: steps, edges, declared runs."""
    wanted = _plain(describe(workflow_from(ir, IRTypes(ir.workflow))))
    try:
        pairs = {"results": (loaded["results"], wanted["results"]), "name": (loaded["name"], wanted["name"])}
        have, want = _facts(loaded), _facts(wanted)
    except (KeyError, TypeError, AttributeError) as error:
        yield _unreadable(error)
        return
    pairs |= {name: (have.get(name), want.get(name)) for name in {**want, **have}}
    for name, (coded, planned) in pairs.items():
        if coded != planned:
            words = f"The code's {name} is {_short(coded)}, the IR's {_short(planned)}."
            yield Found(code="code_ir_mismatch", place=MODULE, message=words, hint=_HINT)


def _unreadable(error: Exception) -> Found:
    words = f"What the code says of itself cannot be read: {error!r}."
    return Found(code="unreadable", place=MODULE, message=words, hint="Return the Workflow that was built.")


def _facts(described: dict[str, Any]) -> dict[str, Any]:
    """What is decided by a description, by step and name; not what a task is inside."""
    found: dict[str, Any] = {"steps": [step["id"] for step in described["steps"]]}
    for step in described["steps"]:
        found |= {f"{step['id']}'s {name}": step[name] for name in _DECIDED}
        found |= {f"{step['id']}'s {name}": value for name, value in step.get("experiment", {}).items()}
    return found


def _plain(description: dict[str, Any]) -> dict[str, Any]:
    """As it is after the way through a pipe."""
    return dict(json.loads(json.dumps(description)))


def _short(value: Any) -> str:
    return str(value)[:300]
