"""Questions about everything beside runs: sweeps, files, the machine, alerts, plans, notes."""

from __future__ import annotations

import re
import shlex

from labwright.agent.offline.reply import Ask, Reply, Results

_GOAL = """\
Experiments need a plan. Plan mode makes one by rules: `labwright chat --mode plan`, or

```
labwright plan new {goal}
```

To start a single command, say `run COMMAND`."""
_HEAD = 40  # lines of a file


def sweeps(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_sweeps", {"limit": 10})]
    found = results[0]["sweeps"]
    lines = [f"- {sweep['id']} `{sweep['name']}`: {sweep['method']}, {sweep['status']}" for sweep in found]
    return "\n".join(lines) or "There are no sweeps."


def alerts(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_alerts", {})]
    lines = [
        f"- {alert['id']} ({alert['severity']}): `{alert['message']}`; choices: {', '.join(alert['choices'])}"
        for alert in results[0]["alerts"]
    ]
    return "\n".join(lines) or "No open alerts."


def plans(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_plans", {})]
    lines = [f"- @{plan['id']} `{plan['title']}`: {plan['status']}" for plan in results[0]["plans"]]
    return "\n".join(lines) or "No plans."


def machine(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("get_cluster", {})]
    cluster = results[0]
    size = f"{cluster['gpu_count']} GPUs, {cluster['cpu_count']} cores [{cluster['evidence']}]"
    lines = [f"{cluster['type']}, {cluster['status']}: {size}."]
    for gpu in cluster["gpus"]:
        holder = f"held by {gpu['lease']['run_id']}" if gpu.get("lease") else "no lease"
        lines.append(f"- GPU{gpu['index']} `{gpu['name']}`: {holder}")
    return "\n".join(lines)


def files(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_files", {})]
    return "\n".join(f"- `{name}`" for name in results[0]["files"]) or "The project's folder is empty."


def file(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("read_file", {"path": match["path"]})]
    lines = results[0]["text"].splitlines()
    shown, rest = "\n".join(lines[:_HEAD]), "\n… and more." if len(lines) > _HEAD else ""
    return f"The start of `{results[0]['path']}` [{results[0]['evidence']}]:\n```\n{shown}\n```{rest}"


def goal(match: re.Match[str], _results: Results) -> Reply:
    return _GOAL.format(goal=shlex.quote(match.group(0)))


def remember(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("add_memory", {"text": match["note"]})]
    return f"Saved as {results[0]['id']}. Other conversations see it after you accept it."
