"""`@run-…`, `@sweep-…`, `@plan-…`, `@last` or a run's `@name` in what a person says: what each of them is."""

from __future__ import annotations

import re
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.errors import LabwrightError
from labwright.services import plans, runs, sweep_views

_MENTION = re.compile(r"(?<![\w@.])@([A-Za-z0-9][\w.-]*[\w]|[A-Za-z0-9])")
_MOST = 20


def resolve(lab: Lab, message: str) -> list[dict[str, Any]]:
    names = dict.fromkeys(_MENTION.findall(message))
    return [_resolved(lab, name) for name in list(names)[:_MOST]]


def _resolved(lab: Lab, name: str) -> dict[str, Any]:
    try:
        return {"mention": f"@{name}", **_facts(lab, name)}
    except LabwrightError as error:
        return {"mention": f"@{name}", "kind": "unknown", "text": error.message}


def _facts(lab: Lab, name: str) -> dict[str, Any]:
    if name.startswith("sweep-"):
        sweep = sweep_views.get(lab, name)
        done, total = sweep["progress"]["finished"], sweep["progress"]["total"]
        text = f"the sweep {sweep['name']!r}, {sweep['status']}, {done} of {total} runs finished"
        return {"kind": "sweep", "id": sweep["id"], "text": text}
    if name.startswith("plan-"):
        plan = plans.get(lab, name)
        return {"kind": "plan", "id": plan["id"], "text": f"the plan {plan['title']!r}, {plan['status']}"}
    run = runs.find(lab, name)
    return {"kind": "run", "id": run.id, "text": f"the run {run.name!r}, {run.status}"}
