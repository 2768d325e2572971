"""Replies without a model: what each request asks of the tools, and how their answers are put."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Results = Sequence[Json]  # of the tools that this request has called so far


@dataclass(frozen=True, slots=True)
class Ask:
    tool: str
    arguments: Json


Reply = list[Ask] | str
Rule = Callable[[re.Match[str], Results], Reply]

ABOUT = """\
I am a set of rules, not a language model, so I understand plain requests only:

- what is running, which runs failed, which run is the best by METRIC
- show RUN, METRIC of RUN, metrics of RUN, logs of RUN, why did RUN fail, how long did RUN take
- compare RUN and RUN by METRIC
- sweeps, best of SWEEP
- run COMMAND (and tell me when it is done), stop RUN, rerun RUN (with OPTION VALUE), delete RUN
- tell me when RUN is done (or SWEEP)
- show FILE, files, gpus, alerts, plans, remember NOTE

RUN is an id, its beginning, a name, `last`, or `it` for the one just spoken of.
For free conversation set LABWRIGHT_MODEL and start the server again."""
WELCOME = "You are welcome."
_GOAL = """\
What to try is for a plan, and planning is a mode of its own, which works by rules too: `labwright chat --mode plan`, or

```
labwright plan new {goal}
```

To start one command as it is, say `run COMMAND`."""
_TAIL = 12  # lines of a traceback or a log that are shown
_HEAD = 40  # lines of a file
_LISTED = 20
_RANKED = 5
_COMPARED = 3  # metrics, where none was named
_MACHINE = "system/"  # what the monitor samples
_ENDS = {"fail": ("failed", "lost"), "crash": ("failed", "lost"), "finish": ("finished",), "stop": ("stopped",)}
_WAYS = {"highest": "max", "largest": "max", "lowest": "min", "smallest": "min"}


def running(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_runs", {"status": ["running", "launching", "waiting", "queued"], "limit": 20})]
    found, counts = results[0], results[0]["counts"]
    said = [f"{counts[status]} {status}" for status in ("running", "waiting", "queued", "failed", "finished")]
    lines = [f"- {named(run)}: {run['status']}{_because(run)}" for run in found["runs"]]
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
    lines = [f"- {named(run)}{_because(run)}" for run in found["runs"]]
    return "\n".join([head, *lines, *(["The newest; `labwright ps --all` has the others."] if found["more"] else [])])


def recent(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_runs", {"limit": _LISTED})]
    lines = [f"- {named(run)}: {run['status']}{_because(run)}" for run in results[0]["runs"]]
    return (
        "\n".join(["The newest first:", *lines]) if lines else "There are no runs yet. Say `run COMMAND` to start one."
    )


def _because(run: Json) -> str:
    """`exit_code` and the like in words; sentences are quoted, as the numbers in them are the server's."""
    reason = str(run.get("status_reason", ""))
    return f" ({f'`{reason}`' if ' ' in reason else reason.replace('_', ' ')})" if reason else ""


def named(run: Json) -> str:
    return f"{run['id']} `{run['name']}`"


def show(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("show_run", {"run": asked_run(match)})]
    run = results[0]
    lines = [f"{named(run)} is {run['status']}{_because(run)}.", f"Command: `{run['command']}`"]
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
        return [Ask("show_metrics", {"run": asked_run(match)})]
    found = results[0]
    lines = [
        f"- {key}: last {one['last']:.4g}, min {one['min']:.4g}, max {one['max']:.4g} [{one['evidence']}]"
        for key, one in found["metrics"].items()
        if {"last", "min", "max"} <= one.keys()
    ]
    return "\n".join([f"{found['run_id']} is {found['status']}.", *lines]) if lines else "It has no metrics yet."


def one_metric(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("show_metrics", {"run": asked_run(match), "keys": [match["key"]]})]
    found = results[0]
    if match["key"] not in found["metrics"]:
        known = ", ".join(f"`{key}`" for key in found["keys"]) or "none yet"
        return f"{found['run_id']} has no metric `{match['key']}`. It has: {known}."
    return metrics(match, results)


def duration(match: re.Match[str], results: Results) -> Reply:
    if not results or results[0].get("ended_at"):
        return show(match, results)
    run = results[0]
    still = f"{named(run)} is {run['status']}{_because(run)}. How long it still takes I cannot tell."
    return f"{still} Say `tell me when {run['id']} is done`, and I will."


def logs(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("log_digest", {"run": asked_run(match)})]
    found = results[0]
    tail = "\n".join(found.get("last_lines", [])[-_TAIL:])
    head = f"{found['run_id']} is {found['status']}. The end of its output [{found['evidence']}]:"
    return f"{head}\n```\n{tail}\n```" if tail else f"{found['run_id']} is {found['status']} and has written nothing."


def why_failed(match: re.Match[str], results: Results) -> Reply:
    name = asked_run(match)
    if not results:
        if name in ("it", "that", "the last", "last"):
            return [Ask("list_runs", {"status": ["failed", "lost"], "limit": 1})]
        return [Ask("log_digest", {"run": name})]
    if "runs" in results[-1]:
        failed = results[-1]["runs"]
        return [Ask("log_digest", {"run": failed[0]["id"]})] if failed else "No run has failed."
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


def compare(match: re.Match[str], results: Results) -> Reply:
    names = [
        name for name in re.split(r"\s*(?:,|\b(?:and|with|to|against|vs|versus)\b\.?|\s)\s*", match["runs"]) if name
    ]
    names = [name.lstrip("@") for name in names]
    if found := [one for one in results if "ranking" in one]:
        return "\n\n".join(compared_in_words(one) for one in found)
    if not match["key"] and not results:
        return [Ask("show_metrics", {"run": name}) for name in names]
    keys = [match["key"]] if match["key"] else _in_common([one["keys"] for one in results])[:_COMPARED]
    return [Ask("compare", {"runs_or_names": names, "key": key}) for key in keys] or "They have no metric in common."


def _in_common(keys: Sequence[Sequence[str]]) -> list[str]:
    """Metrics of the script's own that all of them have; of the machine's only where there are no others."""
    shared = [key for key in keys[0] if all(key in one for one in keys)]
    return [key for key in shared if not key.startswith(_MACHINE)] or shared


def best_run(match: re.Match[str], results: Results) -> Reply:
    known = results[0]["metrics"] if results and "metrics" in results[0] else []
    if results and "best" in results[-1]:
        return _best_in_words(results[-1])
    key = match["key"] or (known[0] if len(known) == 1 else "")
    if not key and results:
        names = ", ".join(f"`{one}`" for one in known)
        return f"By which metric? Say `best run by METRIC`: {names}." if known else "No run has a metric yet."
    way = _WAYS.get(match["way"].lower())
    return [Ask("best_runs", {**({"key": key} if key else {}), **({"goal": way} if way else {})})]


def _best_in_words(found: Json) -> str:
    key, cited, (first, *others) = found["key"], f"[{found['evidence']}]", found["best"][:_RANKED]
    head = f"Best by {_way(found)}: {_as(first)}: last {key} {first['last']:.4g} {cited}."
    if others and others[0]["last"] == first["last"]:
        head = f"By {_way(found)}, {_as(first)} is one of several with {first['last']:.4g} {cited}."
    lines = [f"- {_as(run)}: last {key} {run['last']:.4g} {cited}" for run in others]
    return "\n".join([head, *(["Then:", *lines] if lines else []), f"{found['runs_with_it']} runs have it {cited}."])


def _way(found: Json) -> str:
    return f"{found['key']} ({'lower' if found['goal'] == 'min' else 'higher'} is better)"


def _as(run: Json) -> str:
    return f"{run['run_id']} `{run['name']}`"


def compared_in_words(found: Json) -> str:
    key, names = found["key"], {run["run_id"]: run["name"] for run in found["runs"]}
    lines = [
        f"- {run['run_id']} `{run['name']}`: last {key} {run['last']:.4g} [{run['evidence']}]" for run in found["runs"]
    ]
    ranking, best = found["ranking"], found["ranking"]["order"][0]
    head = f"Best by {_way(found)}: {best} `{names[best]}` [{ranking['evidence']}]."
    if ranking["place_1"] == ranking["place_2"]:
        head = f"By {_way(found)}, {best} `{names[best]}` shares the first place [{ranking['evidence']}]."
    gaps = [
        f"- {one['second'][0]} differs from it by {one['difference']:.4g}"
        f"{' (' + format(one['percent'], '.3g') + '%)' if 'percent' in one else ''} [{one['evidence']}]"
        for one in found["differences"]
        if len(one["first"]) == 1
    ]
    return "\n".join([head, *lines, *gaps])


def sweeps(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_sweeps", {"limit": 10})]
    lines = [
        f"- {sweep['id']} `{sweep['name']}`: {sweep['method']}, {sweep['status']}" for sweep in results[0]["sweeps"]
    ]
    return "\n".join(lines) or "There are no sweeps."


def best(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("sweep_results", {"sweep": match["sweep"].lstrip("@"), "limit": 3})]
    found = results[0]
    if not found.get("configurations"):
        return f"{found['id']} is {found['status']}. {found.get('note', 'No run of it has a value yet.')}"
    first = found["configurations"][0]
    params = ", ".join(f"{name}={value}" for name, value in first["params"].items())
    spread = f" ± {first['std']:.3g}" if first["std"] is not None else ""
    key = found["metric"]["key"]
    head = f"Best of {found['id']}: {params}, mean {key} {first['mean']:.4g}{spread} over {first['n']} runs"
    return f"{head} [{first['evidence']}]; for example {first['run_ids'][0]}."


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


def files(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_files", {})]
    return "\n".join(f"- `{name}`" for name in results[0]["files"]) or "The project's folder is empty."


def goal(match: re.Match[str], _results: Results) -> Reply:
    return _GOAL.format(goal=shlex.quote(match.group(0)))


def advice(_match: re.Match[str], _results: Results) -> Reply:
    return f"I cannot advise. {_GOAL.format(goal='GOAL')}"


def tell(match: re.Match[str], results: Results) -> Reply:
    name = asked_run(match)
    if not results:
        what = {"sweep": name} if name.startswith("sweep-") else {"run_ids": [name]}
        return [Ask("wait_for", {**what, "note": "tell the user how it ended"})]
    return "I will tell you."


def woken(news: Sequence[Json], results: Results) -> Reply:
    """What was waited for has happened: look at it once more, and tell."""
    happened = [one for item in news for one in item["happened"]]
    runs = [one["run_id"] for one in happened if one.get("run_id") and one["status"] != "deleted"][:5]
    if runs and not results:
        return [Ask("log_digest", {"run": run_id}) for run_id in runs]
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


def machine(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("show_cluster", {})]
    found = results[0]
    size = f"{found['gpu_count']} GPUs, {found['cpu_count']} cores [{found['evidence']}]"
    head = f"{found['type']}, {found['status']}: {size}."
    cards = [f"- GPU{gpu['index']} `{gpu['name']}`: {_holder(gpu)}" for gpu in found["gpus"]]
    return "\n".join([head, *cards])


def _holder(gpu: Json) -> str:
    return f"held by {gpu['lease']['run_id']}" if gpu.get("lease") else "no lease"


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


def remember(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("remember", {"note": match["note"]})]
    return f"Noted as {results[0]['id']}. Other conversations are told it once you accept it."


def asked_run(match: re.Match[str]) -> str:
    return match["run"].strip().lstrip("@")
