"""What there is beside runs: sweeps, files, the machine, alerts, plans, notes; without a model."""

from __future__ import annotations

import re
import shlex

from labwright.agent.offline.reply import Ask, Json, Reply, Results

_GOAL = """\
What to try is for a plan, and planning is a mode of its own, which works by rules too: `labwright chat --mode plan`, or

```
labwright plan new {goal}
```

To start one command as it is, say `run COMMAND`."""
_HEAD = 40  # lines of a file


def sweeps(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_sweeps", {"limit": 10})]
    lines = [
        f"- {sweep['id']} `{sweep['name']}`: {sweep['method']}, {sweep['status']}" for sweep in results[0]["sweeps"]
    ]
    return "\n".join(lines) or "There are no sweeps."


def alerts(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_alerts", {})]
    lines = [
        f"- {a['id']} ({a['severity']}): `{a['message']}`; choices: {', '.join(a['choices'])}"
        for a in results[0]["alerts"]
    ]
    return "\n".join(lines) or "No open alerts."


def plans(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_plans", {})]
    return (
        "\n".join(f"- @{plan['id']} `{plan['title']}`: {plan['status']}" for plan in results[0]["plans"]) or "No plans."
    )


def machine(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("get_cluster", {})]
    found = results[0]
    size = f"{found['gpu_count']} GPUs, {found['cpu_count']} cores [{found['evidence']}]"
    head = f"{found['type']}, {found['status']}: {size}."
    cards = [f"- GPU{gpu['index']} `{gpu['name']}`: {_holder(gpu)}" for gpu in found["gpus"]]
    return "\n".join([head, *cards])


def _holder(gpu: Json) -> str:
    return f"held by {gpu['lease']['run_id']}" if gpu.get("lease") else "no lease"


def files(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_files", {})]
    return "\n".join(f"- `{name}`" for name in results[0]["files"]) or "The project's folder is empty."


def file(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("read_file", {"path": match["path"]})]
    lines = results[0]["text"].splitlines()
    rest = "\n… and more." if len(lines) > _HEAD else ""
    shown = "\n".join(lines[:_HEAD])
    return f"`{results[0]['path']}` begins [{results[0]['evidence']}]:\n```\n{shown}\n```{rest}"


def explain(match: re.Match[str], results: Results) -> Reply:
    shown = file(match, results)
    return f"I cannot explain code. {shown}" if isinstance(shown, str) else shown


def goal(match: re.Match[str], _results: Results) -> Reply:
    return _GOAL.format(goal=shlex.quote(match.group(0)))


def advice(_match: re.Match[str], _results: Results) -> Reply:
    return f"I cannot advise. {_GOAL.format(goal='GOAL')}"


def remember(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("add_memory", {"text": match["note"]})]
    return f"Noted as {results[0]['id']}. Other conversations are told it once you accept it."
