"""`@run-…`, `@sweep-…`, `@plan-…`, `@last` or a run's `@name` in what a person says: what each of them is."""

from __future__ import annotations

import re
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.errors import LabwrightError
from labwright.planning import plans
from labwright.services.runs import verbs as runs
from labwright.services.sweeps import results as sweep_views

_MENTION = re.compile(r"(?<![\w@.])@([A-Za-z0-9][\w.-]*[\w]|[A-Za-z0-9])")
_MOST = 20


def resolve(lab: Lab, message: str) -> list[dict[str, Any]]:
    names = dict.fromkeys(_MENTION.findall(message))
    return [_resolved(lab, name) for name in list(names)[:_MOST]]


def with_names(message: str, mentions: list[dict[str, Any]]) -> str:
    """As a person would say it: what is mentioned by its id goes by its name."""
    names = {one["mention"]: one["name"] for one in mentions if one.get("name", "").strip()}
    return _MENTION.sub(lambda found: names.get(found[0], found[0]), message)


def _resolved(lab: Lab, name: str) -> dict[str, Any]:
    try:
        return {"mention": f"@{name}", **_facts(lab, name)}
    except LabwrightError as error:
        return {"mention": f"@{name}", "kind": "unknown", "text": f"not known: {error.message}"}


def _facts(lab: Lab, name: str) -> dict[str, Any]:
    if name.startswith("sweep-"):
        sweep = sweep_views.get(lab, name)
        done, total = sweep["progress"]["finished"], sweep["progress"]["total"]
        text = f"the sweep {sweep['name']!r}, {sweep['status']}, {done} of {total} runs finished"
        return {"kind": "sweep", "id": sweep["id"], "name": sweep["name"], "text": text}
    if name.startswith("plan-"):
        plan = plans.get_document(lab, name)
        text = f"the plan {plan['title']!r}, {plan['status']}"
        return {"kind": "plan", "id": plan["id"], "name": plan["title"], "text": text}
    run = runs.find(lab, name)
    text = f"the run {run.id} {run.name!r}, {run.status}"  # by its id: the name may be another's soon
    return {"kind": "run", "id": run.id, "name": run.name, "text": text}
