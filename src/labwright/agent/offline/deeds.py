"""Replies without a model that start, repeat, stop or delete something."""

from __future__ import annotations

import re
import shlex

from labwright.agent.offline.reply import Ask, Json, Reply, Results, asked_run, named

_BARE_SCRIPT = re.compile(r"[\w-]+\.py\b(?=\s|$)")  # `run train.py with lr 0.1` is no command
_CHANGE = re.compile(r"-{0,2}(?P<name>[A-Za-z_][\w.-]*?)(?:\s*=\s*|\s+(?:(?:of|to)\s+)?)(?P<value>[\w.+-]+)")
_MOST_STOPPED = 20
_BETWEEN_CHANGES = re.compile(r"\s*(?:,|\band\b)\s*")


def start(match: re.Match[str], results: Results) -> Reply:
    command = match["command"].strip().strip("`")
    if script := _BARE_SCRIPT.match(command):
        typed = f"`run python {script[0]} --FLAG VALUE`"
        return f"A shell finds no program `{script[0]}`. Say it as you would type it: {typed}."
    if not results:
        return [Ask("create_run", {"command": command})]
    found = results[0]
    if "failed_before" in found:
        return _not_started(found)
    if match["tell"]:
        return _wait_for(found)
    return f"Started {named(found)}; it is {found['status']}. Say `tell me when {found['id']} is done` to be told."


def rerun(match: re.Match[str], results: Results) -> Reply:
    return _repeated(match, results) if results else [Ask("rerun_run", {"run_id": asked_run(match)})]


def rerun_with(match: re.Match[str], results: Results) -> Reply:
    """Other values of options that the run's command has; which option would be meant otherwise is not guessed."""
    if not results:
        return [Ask("get_run", {"run_id": asked_run(match)})]
    if len(results) > 1:
        return _repeated(match, results[1:])
    command = old = results[0]["command"]
    for said in _BETWEEN_CHANGES.split(match["changes"]):
        change = _CHANGE.fullmatch(said)
        changed = _with_value(command, change["name"], change["value"]) if change else None
        if changed is None:
            what = f"an option `{change['name']}`" if change else "what to change"
            return f"I do not find {what} in its command. Say `run COMMAND` with all of it; it was: `{old}`"
        command = changed
    return [Ask("rerun_run", {"run_id": results[0]["id"], "command": command})]


def _with_value(command: str, name: str, value: str) -> str | None:
    """None unless the command has exactly one such option."""
    spelled = re.escape(name).replace("_", "[-_]").replace(r"\-", "[-_]")
    option = re.compile(rf"(?<!\S)((?:-{{1,2}}{spelled}(?:=|\s+)|{spelled}=))[^\s'\"]+(?!\S)")
    changed, count = option.subn(lambda found: f"{found[1]}{value}", command)
    return changed if count == 1 else None


def _repeated(match: re.Match[str], results: Results) -> Reply:
    found = results[0]
    if "failed_before" in found:
        return _not_started(found)
    if match["tell"]:
        return _wait_for(found)
    return f"Started {named(found)} as a rerun of {found['rerun_of']}: `{found['command']}`"


def _wait_for(found: Json) -> list[Ask]:
    return [Ask("wait_for_run", {"run_ids": [found["id"]], "note": "tell the user how it ended"})]


def _not_started(found: Json) -> str:
    before = found["failed_before"]
    return (
        f"Not started: something like it failed before, in {before['run_id']} `{before['name']}`: "
        f"`{before['signature']}`. To start it all the same: `labwright run -- …`, or rerun {before['run_id']}."
    )


def stop(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("stop_run", {"run_id": asked_run(match)})]
    found = results[0]
    return f"{found['id']}: stopping it ({found['status']})."


def stop_all(match: re.Match[str], results: Results) -> Reply:
    """Each on its own: of those that others started, a person decides one by one."""
    if not results:
        status = [match["status"].lower()] if match["status"] else ["running", "launching", "waiting", "queued"]
        return [Ask("list_runs", {"status": status, "limit": _MOST_STOPPED})]
    (listed, *stopped), runs = results, results[0]["runs"]
    if not stopped:
        return [Ask("stop_run", {"run_id": run["id"]}) for run in runs] or "Nothing is running."
    lines = [f"- {named(run)}: {_stopped_in_words(one)}" for run, one in zip(runs, stopped, strict=True)]
    return "\n".join([*lines, *(["There are more; say it again."] if listed["more"] else [])])


def _stopped_in_words(found: Json) -> str:
    if "refused" in found:
        return str(found["refused"])
    if found.get("denied"):
        return f"not allowed{': ' + found['reason'] if found['reason'] else ''}"
    return "stopping it"


def not_while_planning(match: re.Match[str], _results: Results) -> Reply:
    typed = f"labwright chat --mode agent {shlex.quote(match.string)}"
    return f"Nothing is started, stopped or deleted while a plan is made. Agent mode does that: `{typed}`"


def delete(match: re.Match[str], results: Results) -> Reply:
    return f"{results[0]['id']} is deleted." if results else [Ask("delete_run", {"run_id": asked_run(match)})]
