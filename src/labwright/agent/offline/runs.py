"""Runs, one or many: how they stand, what they say and why they failed; without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from labwright.agent.offline.reply import Ask, Json, Reply, Results, asked_run, because, named

_TAIL = 12  # lines of a traceback or a log that are shown
_LISTED = 20
_ENDS = {"fail": ("failed", "lost"), "crash": ("failed", "lost"), "finish": ("finished",), "stop": ("stopped",)}


def running(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_runs", {"status": ["running", "launching", "waiting", "queued"], "limit": 20})]
    found, counts = results[0], results[0]["counts"]
    said = [f"{counts[status]} {status}" for status in ("running", "waiting", "queued", "failed", "finished")]
    lines = [f"- {named(run)}: {run['status']}{because(run)}" for run in found["runs"]]
    head = f"{', '.join(said)} [{counts['evidence']}]."
    return "\n".join([head, *lines]) if lines else f"Nothing is running: {head}"


def listed(match: re.Match[str], results: Results) -> Reply:
    """Runs of one status, whatever form of the word was used."""
    word = match["status"].lower()
    status = next((ends for verb, ends in _ENDS.items() if word.startswith(verb)), (word,))
    if not results:
        return [Ask("list_runs", {"status": list(status), "limit": _LISTED})]
    found, counts = results[0], results[0]["counts"]
    head = (
        f"{', '.join(f'{counts[one]} {one}' for one in status)} [{counts['evidence']}]{':' if found['runs'] else '.'}"
    )
    lines = [f"- {named(run)}{because(run)}" for run in found["runs"]]
    return "\n".join([head, *lines, *(["The newest; `labwright ps --all` has the others."] if found["more"] else [])])


def recent(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_runs", {"limit": _LISTED})]
    lines = [f"- {named(run)}: {run['status']}{because(run)}" for run in results[0]["runs"]]
    return (
        "\n".join(["The newest first:", *lines]) if lines else "There are no runs yet. Say `run COMMAND` to start one."
    )


def show(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("get_run", {"run_id": asked_run(match)})]
    run = results[0]
    lines = [f"{named(run)} is {run['status']}{because(run)}.", f"Command: `{run['command']}`"]
    if run.get("exit_code") is not None:
        lines.append(f"Exit code {run['exit_code']} [{run['evidence']}].")
    if seconds := run.get("usage", {}).get("wall_seconds"):
        lines.append(f"It took {seconds:.4g} s [{run['evidence']}].")
    if run.get("params"):
        lines.append(f"Parameters: {', '.join(f'`{name}={value}`' for name, value in run['params'].items())}.")
    if run["metrics"]:
        lines.append(f"Metrics: {', '.join(f'`{key}`' for key in run['metrics'][:20])}.")
    return "\n".join(lines)


def metrics(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("get_metrics", {"run_id": asked_run(match)})]
    found = results[0]
    lines = [
        f"- {key}: last {one['last']:.4g}, min {one['min']:.4g}, max {one['max']:.4g} [{one['evidence']}]"
        for key, one in found["metrics"].items()
        if {"last", "min", "max"} <= one.keys()
    ]
    return "\n".join([f"{found['run_id']} is {found['status']}.", *lines]) if lines else "It has no metrics yet."


def one_metric(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("get_metrics", {"run_id": asked_run(match), "keys": [match["key"]]})]
    found = results[0]
    if match["key"] not in found["metrics"]:
        known = ", ".join(f"`{key}`" for key in found["keys"]) or "none yet"
        return f"{found['run_id']} has no metric `{match['key']}`. It has: {known}."
    return metrics(match, results)


def duration(match: re.Match[str], results: Results) -> Reply:
    if not results or results[0].get("ended_at"):
        return show(match, results)
    run = results[0]
    still = f"{named(run)} is {run['status']}{because(run)}. How long it still takes I cannot tell."
    return f"{still} Say `tell me when {run['id']} is done`, and I will."


def logs(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("digest_logs", {"run_id": asked_run(match)})]
    found = results[0]
    tail = "\n".join(found.get("last_lines", [])[-_TAIL:])
    head = f"{found['run_id']} is {found['status']}. The end of its output [{found['evidence']}]:"
    return f"{head}\n```\n{tail}\n```" if tail else f"{found['run_id']} is {found['status']} and has written nothing."


def why_failed(match: re.Match[str], results: Results) -> Reply:
    name = asked_run(match)
    if not results:
        if name in ("it", "that", "the last", "last"):
            return [Ask("list_runs", {"status": ["failed", "lost"], "limit": 1})]
        return [Ask("digest_logs", {"run_id": name})]
    if "runs" in results[-1]:
        failed = results[-1]["runs"]
        return [Ask("digest_logs", {"run_id": failed[0]["id"]})] if failed else "No run has failed."
    return failure(results[-1])


def failure(found: Json) -> str:
    code = f" with exit code {found['exit_code']} [{found['evidence']}]" if "exit_code" in found else ""
    if found["status"] in ("finished", "running", "queued"):
        return f"{found['run_id']} did not fail: it is {found['status']}."
    lines = [f"{found['run_id']} {found['status']}{code}."]
    if "first_error" in found:
        error = "\n".join(found["first_error"].splitlines()[-_TAIL:])
        lines.append(f"The first error in its output [{found['evidence']}]:\n```\n{error}\n```")
    elif found.get("error") or found.get("status_reason"):
        lines.append(f"Reason [{found['evidence']}]: {found.get('error') or found['status_reason']}")
    return "\n".join(lines)


def tell(match: re.Match[str], results: Results) -> Reply:
    name = asked_run(match)
    if not results:
        note = {"note": "tell the user how it ended"}
        if name.startswith("sweep-"):
            return [Ask("wait_for_sweep", {"sweep_id": name, **note})]
        return [Ask("wait_for_run", {"run_ids": [name], **note})]
    return "I will tell you."


def woken(news: Sequence[Json], results: Results) -> Reply:
    """What was waited for has happened: look at it once more, and tell."""
    happened = [one for item in news for one in item["happened"]]
    runs = [one["run_id"] for one in happened if one.get("run_id") and one["status"] != "deleted"][:5]
    if runs and not results:
        return [Ask("digest_logs", {"run_id": run_id}) for run_id in runs]
    lines = [f"{one['sweep_id']} `{one.get('name', '')}` is {one['status']}." for one in happened if "sweep_id" in one]
    lines += [_ended(found) for found in results]
    lines += [f"{one['run_id']} was deleted." for one in happened if one["status"] == "deleted" and "run_id" in one]
    return "\n".join(lines)


def _ended(found: Json) -> str:
    if found["status"] != "finished":
        return failure(found)
    last = found.get("last_lines", [])[-1:]
    said = f" Its last line [{found['evidence']}]: `{last[0]}`" if last and last[0] else ""
    return f"{found['run_id']} finished.{said}"
