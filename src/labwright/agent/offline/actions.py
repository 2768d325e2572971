"""Requests that start, rerun, stop or delete runs."""

from __future__ import annotations

import re
import shlex

from labwright.agent.offline.reply import Ask, Json, Reply, Results, named, requested_run

_BARE_SCRIPT = re.compile(r"[\w-]+\.py\b(?=\s|$)")  # `run train.py with lr 0.1` is not a command
_CHANGE = re.compile(r"-{0,2}(?P<name>[A-Za-z_][\w.-]*?)(?:\s*=\s*|\s+(?:(?:of|to)\s+)?)(?P<value>[\w.+-]+)")
_BETWEEN_CHANGES = re.compile(r"\s*(?:,|\band\b)\s*")
_MOST_STOPPED = 20


def start(match: re.Match[str], results: Results) -> Reply:
    command = match["command"].strip().strip("`")
    if script := _BARE_SCRIPT.match(command):
        return f"`{script[0]}` is not a program. Write the whole command: `run python {script[0]} --FLAG VALUE`."
    return _started(match, results[0]) if results else [Ask("create_run", {"command": command})]


def rerun(match: re.Match[str], results: Results) -> Reply:
    return _started(match, results[0]) if results else [Ask("rerun_run", {"run_id": requested_run(match)})]


def rerun_with(match: re.Match[str], results: Results) -> Reply:
    """Rerun with other values of options that the run's command already has."""
    if not results:
        return [Ask("get_run", {"run_id": requested_run(match)})]
    if len(results) > 1:
        return _started(match, results[1])
    command = old = results[0]["command"]
    for text in _BETWEEN_CHANGES.split(match["changes"]):
        change = _CHANGE.fullmatch(text)
        changed = _with_value(command, change["name"], change["value"]) if change else None
        if changed is None:
            what = f"an option `{change['name']}`" if change else "this change"
            return f"I cannot find {what} in its command. Say `run COMMAND` with the whole command; it was: `{old}`"
        command = changed
    return [Ask("rerun_run", {"run_id": results[0]["id"], "command": command})]


def _with_value(command: str, name: str, value: str) -> str | None:
    """Return the command with another value, or None unless it has exactly one such option."""
    spelled = re.escape(name).replace("_", "[-_]").replace(r"\-", "[-_]")
    option = re.compile(rf"(?<!\S)((?:-{{1,2}}{spelled}(?:=|\s+)|{spelled}=))[^\s'\"]+(?!\S)")
    changed, count = option.subn(lambda part: f"{part[1]}{value}", command)
    return changed if count == 1 else None


def _started(match: re.Match[str], run: Json) -> Reply:
    if "failed_before" in run:
        before = run["failed_before"]
        return (
            f"Not started: a similar run failed before, {before['run_id']} `{before['name']}`: "
            f"`{before['signature']}`. To start it anyway: `labwright run -- …`, or rerun {before['run_id']}."
        )
    if match["tell"]:
        return [Ask("wait_for_run", {"run_ids": [run["id"]], "note": "tell the user how it ended"})]
    if run.get("rerun_of"):
        return f"Started {named(run)} as a rerun of {run['rerun_of']}: `{run['command']}`"
    return f"Started {named(run)}; it is {run['status']}. To be told: `tell me when {run['id']} is done`."


def stop(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("stop_run", {"run_id": requested_run(match)})]
    return f"{results[0]['id']}: stopping it ({results[0]['status']})."


def stop_all(match: re.Match[str], results: Results) -> Reply:
    """Stop runs one by one, since each run that another user started needs its own approval."""
    if not results:
        status = [match["status"].lower()] if match["status"] else ["running", "launching", "waiting", "queued"]
        return [Ask("list_runs", {"status": status, "limit": _MOST_STOPPED})]
    (listed, *stopped), runs = results, results[0]["runs"]
    if not stopped:
        return [Ask("stop_run", {"run_id": run["id"]}) for run in runs] or "Nothing is running."
    lines = []
    for run, result in zip(runs, stopped, strict=True):
        outcome = "stopping it"
        if "refused" in result:
            outcome = str(result["refused"])
        elif result.get("denied"):
            outcome = f"not allowed{': ' + result['reason'] if result['reason'] else ''}"
        lines.append(f"- {named(run)}: {outcome}")
    if listed["more"]:
        lines.append("There are more; repeat the request.")
    return "\n".join(lines)


def delete(match: re.Match[str], results: Results) -> Reply:
    return f"{results[0]['id']} is deleted." if results else [Ask("delete_run", {"run_id": requested_run(match)})]


def refuse_while_planning(match: re.Match[str], _results: Results) -> Reply:
    command = f"labwright chat --mode agent {shlex.quote(match.string)}"
    return f"Plan mode does not start, stop or delete runs. Agent mode does: `{command}`"
