"""Questions about runs: their status, logs, metrics and failures, comparisons and the best run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from labwright.agent.offline.reply import Ask, Json, Reply, Results, because, named, requested_run

_TAIL = 12  # lines of a traceback or a log that are shown
_LISTED = 20
_RANKED = 5
_COMPARED = 3  # metrics, if the request names none
_MACHINE = "system/"  # metrics of the machine, not of the script
_STATUSES = {"fail": ("failed", "lost"), "crash": ("failed", "lost"), "finish": ("finished",), "stop": ("stopped",)}
_DIRECTIONS = {"highest": "max", "largest": "max", "lowest": "min", "smallest": "min"}


def running(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_runs", {"status": ["running", "launching", "waiting", "queued"], "limit": _LISTED})]
    counts = results[0]["counts"]
    totals = ", ".join(
        f"{counts[status]} {status}" for status in ("running", "waiting", "queued", "failed", "finished")
    )
    head = f"{totals} [{counts['evidence']}]."
    lines = [f"- {named(run)}: {run['status']}{because(run)}" for run in results[0]["runs"]]
    return "\n".join([head, *lines]) if lines else f"Nothing is running: {head}"


def listed(match: re.Match[str], results: Results) -> Reply:
    word = match["status"].lower()
    statuses = next((found for verb, found in _STATUSES.items() if word.startswith(verb)), (word,))
    if not results:
        return [Ask("list_runs", {"status": list(statuses), "limit": _LISTED})]
    found, counts = results[0], results[0]["counts"]
    totals = ", ".join(f"{counts[status]} {status}" for status in statuses)
    head = f"{totals} [{counts['evidence']}]{':' if found['runs'] else '.'}"
    lines = [f"- {named(run)}{because(run)}" for run in found["runs"]]
    return "\n".join([head, *lines, *(["Only the newest; see `labwright ps --all`."] if found["more"] else [])])


def recent(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_runs", {"limit": _LISTED})]
    lines = [f"- {named(run)}: {run['status']}{because(run)}" for run in results[0]["runs"]]
    return "\n".join(["Newest first:", *lines]) if lines else "There are no runs yet. Say `run COMMAND` to start one."


def show(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("get_run", {"run_id": requested_run(match)})]
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


def duration(match: re.Match[str], results: Results) -> Reply:
    if not results or results[0].get("ended_at"):
        return show(match, results)
    run = results[0]
    status = f"{named(run)} is {run['status']}{because(run)}. I cannot tell how long it will take."
    return f"{status} Say `tell me when {run['id']} is done`, and I will."


def metrics(match: re.Match[str], results: Results) -> Reply:
    key = match.groupdict().get("key")
    if not results:
        return [Ask("get_metrics", {"run_id": requested_run(match), **({"keys": [key]} if key else {})})]
    found = results[0]
    if key and key not in found["metrics"]:
        known = ", ".join(f"`{key}`" for key in found["keys"]) or "none yet"
        return f"{found['run_id']} has no metric `{key}`. It has: {known}."
    lines = [
        f"- {key}: last {one['last']:.4g}, min {one['min']:.4g}, max {one['max']:.4g} [{one['evidence']}]"
        for key, one in found["metrics"].items()
        if {"last", "min", "max"} <= one.keys()
    ]
    return "\n".join([f"{found['run_id']} is {found['status']}.", *lines]) if lines else "It has no metrics yet."


def logs(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("digest_logs", {"run_id": requested_run(match)})]
    found = results[0]
    tail = "\n".join(found.get("last_lines", [])[-_TAIL:])
    head = f"{found['run_id']} is {found['status']}. The end of its output [{found['evidence']}]:"
    return f"{head}\n```\n{tail}\n```" if tail else f"{found['run_id']} is {found['status']} and has no output."


def why_failed(match: re.Match[str], results: Results) -> Reply:
    name = requested_run(match)
    if not results:
        if name in ("it", "that", "the last", "last"):
            return [Ask("list_runs", {"status": ["failed", "lost"], "limit": 1})]
        return [Ask("digest_logs", {"run_id": name})]
    if "runs" in results[-1]:
        failed = results[-1]["runs"]
        return [Ask("digest_logs", {"run_id": failed[0]["id"]})] if failed else "No run has failed."
    return _failure(results[-1])


def _failure(found: Json) -> str:
    code = f" with exit code {found['exit_code']} [{found['evidence']}]" if "exit_code" in found else ""
    if found["status"] in ("finished", "running", "queued"):
        return f"{found['run_id']} did not fail: it is {found['status']}."
    lines = [f"{found['run_id']} {found['status']}{code}."]
    if "first_error" in found:
        error = "\n".join(found["first_error"].splitlines()[-_TAIL:])
        lines.append(f"The first error in its output [{found['evidence']}]:\n```\n{error}\n```")
    elif reason := found.get("error") or found.get("status_reason"):
        lines.append(f"Reason [{found['evidence']}]: {reason}")
    return "\n".join(lines)


def compare(match: re.Match[str], results: Results) -> Reply:
    if comparisons := [result for result in results if "ranking" in result]:
        return "\n\n".join(_comparison(comparison) for comparison in comparisons)
    parts = re.split(r"\s*(?:,|\b(?:and|with|to|against|vs|versus)\b\.?|\s)\s*", match["runs"])
    names = [name.lstrip("@") for name in parts if name]
    if not match["key"] and not results:
        return [Ask("get_metrics", {"run_id": name}) for name in names]
    if match["key"]:
        keys = [match["key"]]
    else:  # the script's metrics that all runs have, or the machine's if there are no others
        shared = [key for key in results[0]["keys"] if all(key in result["keys"] for result in results)]
        keys = ([key for key in shared if not key.startswith(_MACHINE)] or shared)[:_COMPARED]
    return [Ask("compare_metrics", {"run_ids": names, "key": key}) for key in keys] or "They have no metric in common."


def _comparison(found: Json) -> str:
    key, names = found["key"], {run["run_id"]: run["name"] for run in found["runs"]}
    ranking, best = found["ranking"], found["ranking"]["order"][0]
    head = f"Best by {_direction(found)}: {best} `{names[best]}` [{ranking['evidence']}]."
    if ranking["place_1"] == ranking["place_2"]:
        head = f"By {_direction(found)}, {best} `{names[best]}` shares the first place [{ranking['evidence']}]."
    lines = [
        f"- {run['run_id']} `{run['name']}`: last {key} {run['last']:.4g} [{run['evidence']}]" for run in found["runs"]
    ]
    gaps = [
        f"- {one['second'][0]} differs from it by {one['difference']:.4g}"
        f"{' (' + format(one['percent'], '.3g') + '%)' if 'percent' in one else ''} [{one['evidence']}]"
        for one in found["differences"]
        if len(one["first"]) == 1
    ]
    return "\n".join([head, *lines, *gaps])


def best_run(match: re.Match[str], results: Results) -> Reply:
    if results and "best" in results[-1]:
        return _best(results[-1])
    known = results[0]["metrics"] if results and "metrics" in results[0] else []
    key = match["key"] or (known[0] if len(known) == 1 else "")
    if not key and results:
        names = ", ".join(f"`{one}`" for one in known)
        return f"By which metric? Say `best run by METRIC`: {names}." if known else "No run has a metric yet."
    direction = _DIRECTIONS.get(match["way"].lower())
    return [Ask("best_runs", {**({"key": key} if key else {}), **({"goal": direction} if direction else {})})]


def _best(found: Json) -> str:
    key, cited, (first, *others) = found["key"], f"[{found['evidence']}]", found["best"][:_RANKED]
    head = f"Best by {_direction(found)}: {first['run_id']} `{first['name']}`: last {key} {first['last']:.4g} {cited}."
    if others and others[0]["last"] == first["last"]:
        tied = f"{first['run_id']} `{first['name']}` is one of several with {first['last']:.4g}"
        head = f"By {_direction(found)}, {tied} {cited}."
    lines = [f"- {run['run_id']} `{run['name']}`: last {key} {run['last']:.4g} {cited}" for run in others]
    count = f"{found['runs_with_it']} runs have it {cited}."
    return "\n".join([head, *(["Then:", *lines] if lines else []), count])


def _direction(found: Json) -> str:
    return f"{found['key']} ({'lower' if found['goal'] == 'min' else 'higher'} is better)"


def best_of_sweep(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("get_sweep_results", {"sweep_id": match["sweep"].lstrip("@"), "limit": 3})]
    found = results[0]
    if not found.get("configurations"):
        return f"{found['id']} is {found['status']}. {found.get('note', 'None of its runs has a value yet.')}"
    first, key = found["configurations"][0], found["metric"]["key"]
    params = ", ".join(f"{name}={value}" for name, value in first["params"].items())
    spread = f" ± {first['std']:.3g}" if first["std"] is not None else ""
    head = f"Best of {found['id']}: {params}, mean {key} {first['mean']:.4g}{spread} over {first['n']} runs"
    return f"{head} [{first['evidence']}]; for example {first['run_ids'][0]}."


def wait(match: re.Match[str], results: Results) -> Reply:
    name, note = requested_run(match), {"note": "tell the user how it ended"}
    if results:
        return "I will tell you."
    if name.startswith("sweep-"):
        return [Ask("wait_for_sweep", {"sweep_id": name, **note})]
    return [Ask("wait_for_run", {"run_ids": [name], **note})]


def after_wait(news: Sequence[Json], results: Results) -> Reply:
    """Report what the conversation waited for."""
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
        return _failure(found)
    last = found.get("last_lines", [])[-1:]
    line = f" Its last line [{found['evidence']}]: `{last[0]}`" if last and last[0] else ""
    return f"{found['run_id']} finished.{line}"
