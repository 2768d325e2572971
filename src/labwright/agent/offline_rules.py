"""The rules of conversation without a model: what each request asks of the tools, and how their answers are put."""

from __future__ import annotations

import re
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

- what is running
- show RUN, metrics of RUN, logs of RUN, why did RUN fail
- compare RUN and RUN by METRIC
- sweeps, best of SWEEP
- run COMMAND (and tell me when it is done), stop RUN, rerun RUN
- tell me when RUN is done (or SWEEP)
- gpus, alerts, plans, remember NOTE

RUN is an id, its beginning, a name, or `last`. For free conversation set LABWRIGHT_MODEL and start the server again."""
_PLAN = (
    "Planning is a mode of its own, which works by rules too: `labwright chat --mode plan`, or at once with "
    '`labwright plan new "GOAL"`.'
)
_TAIL = 12  # lines of a traceback or a log that are shown


def _running(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_runs", {"status": ["running", "launching", "waiting", "queued"], "limit": 20})]
    found, counts = results[0], results[0]["counts"]
    said = [f"{counts[status]} {status}" for status in ("running", "waiting", "queued", "failed", "finished")]
    lines = [f"- {_named(run)}: {run['status']}{_because(run)}" for run in found["runs"]]
    head = f"{', '.join(said)} [{counts['evidence']}]."
    return "\n".join([head, *lines]) if lines else f"Nothing is running: {head}"


def _because(run: Json) -> str:
    return f" ({run['status_reason']})" if run.get("status_reason") else ""


def _named(run: Json) -> str:
    return f"{run['id']} `{run['name']}`"


def _show(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("show_run", {"run": _run(match)})]
    run = results[0]
    lines = [f"{_named(run)} is {run['status']}{_because(run)}.", f"Command: `{run['command']}`"]
    if run.get("exit_code") is not None:
        lines.append(f"Exit code {run['exit_code']} [{run['evidence']}].")
    if seconds := run.get("usage", {}).get("wall_seconds"):
        lines.append(f"It took {seconds:.4g} s [{run['evidence']}].")
    if run["metrics"]:
        lines.append(f"Metrics: {', '.join(f'`{key}`' for key in run['metrics'][:20])}.")
    return "\n".join(lines)


def _metrics(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("show_metrics", {"run": _run(match)})]
    found = results[0]
    lines = [
        f"- {key}: last {one['last']:.4g}, min {one['min']:.4g}, max {one['max']:.4g} [{one['evidence']}]"
        for key, one in found["metrics"].items()
        if {"last", "min", "max"} <= one.keys()
    ]
    return "\n".join([f"{found['run_id']} is {found['status']}.", *lines]) if lines else "It has no metrics yet."


def _logs(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("log_digest", {"run": _run(match)})]
    found = results[0]
    tail = "\n".join(found.get("last_lines", [])[-_TAIL:])
    head = f"{found['run_id']} is {found['status']}. The end of its output [{found['evidence']}]:"
    return f"{head}\n```\n{tail}\n```" if tail else f"{found['run_id']} is {found['status']} and has written nothing."


def _why_failed(match: re.Match[str], results: Results) -> Reply:
    name = _run(match)
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


def _compare(match: re.Match[str], results: Results) -> Reply:
    names = [name for name in re.split(r"\s*(?:,|\band\b|\bwith\b|\bto\b|\s)\s*", match["runs"]) if name]
    names = [name.lstrip("@") for name in names]
    if results and "ranking" in results[-1]:
        return compared_in_words(results[-1])
    if not match["key"] and not results:
        return [Ask("show_metrics", {"run": name}) for name in names]
    shared = [key for key in results[0]["keys"] if all(key in one["keys"] for one in results)] if results else []
    if not match["key"] and not shared:
        return "They have no metric in common."
    return [Ask("compare", {"runs_or_names": names, "key": match["key"] or shared[0]})]


def compared_in_words(found: Json) -> str:
    key, names = found["key"], {run["run_id"]: run["name"] for run in found["runs"]}
    lines = [
        f"- {run['run_id']} `{run['name']}`: last {key} {run['last']:.4g} [{run['evidence']}]" for run in found["runs"]
    ]
    best = found["ranking"]["order"][0]
    word = "lower" if found["goal"] == "min" else "higher"
    head = f"Best by {key} ({word} is better): {best} `{names[best]}` [{found['ranking']['evidence']}]."
    gaps = [
        f"- {one['second'][0]} differs from it by {one['difference']:.4g}"
        f"{' (' + format(one['percent'], '.3g') + '%)' if 'percent' in one else ''} [{one['evidence']}]"
        for one in found["differences"]
        if len(one["first"]) == 1
    ]
    return "\n".join([head, *lines, *gaps])


def _sweeps(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_sweeps", {"limit": 10})]
    lines = [
        f"- {sweep['id']} `{sweep['name']}`: {sweep['method']}, {sweep['status']}" for sweep in results[0]["sweeps"]
    ]
    return "\n".join(lines) or "There are no sweeps."


def _best(match: re.Match[str], results: Results) -> Reply:
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


def _start(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("start_run", {"command": match["command"].strip().strip("`")})]
    found = results[0]
    if found["started"] and match["tell"]:
        return [Ask("wait_for", {"run_ids": [found["id"]], "note": "tell the user how it ended"})]
    if found["started"]:
        return f"Started {_named(found)}; it is {found['status']}. Say `tell me when {found['id']} is done` to be told."
    before = found["failed_before"]
    return (
        f"Not started: something like it failed before, in {before['run_id']} `{before['name']}`: "
        f"`{before['signature']}`. To start it all the same: `labwright run -- …`, or rerun {before['run_id']}."
    )


def _stop(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("stop_run", {"run": _run(match)})]
    found = results[0]
    return f"{found['id']}: {'stopping it' if found['stopped'] else found['why']} ({found['status']})."


def _rerun(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("rerun", {"run": _run(match)})]
    return f"Started {_named(results[0])} as a rerun of {results[0]['rerun_of']}."


def _tell(match: re.Match[str], results: Results) -> Reply:
    name = _run(match)
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


def _machine(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("show_cluster", {})]
    found = results[0]
    size = f"{found['gpu_count']} GPUs, {found['cpu_count']} cores [{found['evidence']}]"
    head = f"{found['type']}, {found['status']}: {size}."
    cards = [f"- GPU{gpu['index']} `{gpu['name']}`: {_holder(gpu)}" for gpu in found["gpus"]]
    return "\n".join([head, *cards])


def _holder(gpu: Json) -> str:
    return f"held by {gpu['lease']['run_id']}" if gpu.get("lease") else "no lease"


def _alerts(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_alerts", {})]
    lines = [
        f"- {a['id']} ({a['severity']}): `{a['message']}`; choices: {', '.join(a['choices'])}"
        for a in results[0]["alerts"]
    ]
    return "\n".join(lines) or "No open alerts."


def _plans(_match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("list_plans", {})]
    return (
        "\n".join(f"- @{plan['id']} `{plan['title']}`: {plan['status']}" for plan in results[0]["plans"]) or "No plans."
    )


def _remember(match: re.Match[str], results: Results) -> Reply:
    if not results:
        return [Ask("remember", {"note": match["note"]})]
    return f"Noted as {results[0]['id']}. Other conversations are told it once you accept it."


def _run(match: re.Match[str]) -> str:
    return match["run"].strip().lstrip("@")


_REF = r"(?:the |run )?(?P<run>@?[\w.-]+(?: [\w.-]+)??)"
_DONE = "(?:done|finished|ended|over|ends|finishes)"
_AND_TELL = rf",? and (?:then )?(?:tell me|let me know) when it (?:is |has )?{_DONE}\W*"
_HAVE = "(?: (?:do (?:we|i) have|are (?:there|free|busy|in use)))?"
RULES: list[tuple[re.Pattern[str], Rule]] = [
    (re.compile(pattern, re.IGNORECASE), rule)
    for pattern, rule in (
        (r"(?:what(?:'s| is)? (?:is )?(?:running|going on|happening)(?: now)?|status|runs|ps|what runs)", _running),
        (rf"why (?:did|has|is|does) {_REF} (?:fail|failed|failing|die|crash|crashed|stop)", _why_failed),
        (rf"what (?:happened to|went wrong with) {_REF}", _why_failed),
        (r"compare (?P<runs>.+?)(?: (?:by|on|in|for) (?P<key>[\w./-]+))?", _compare),
        (r"(?:what is |show )?(?:the )?best (?:\w+ )?(?:of|in) (?:the )?(?:sweep )?(?P<sweep>@?[\w-]+)", _best),
        (r"(?:list |show )?(?:the )?sweeps", _sweeps),
        (rf"(?:show |what are )?(?:the )?metrics (?:of|for) {_REF}", _metrics),
        (rf"(?:show )?(?:the )?(?:logs?|output) (?:(?:of|for|from) )?{_REF}", _logs),
        (rf"(?:tell me|let me know|notify me|wake me) when {_REF} (?:is |has )?{_DONE}", _tell),
        (rf"wait for {_REF}", _tell),
        (rf"stop {_REF}", _stop),
        (rf"(?:rerun|repeat|run again) {_REF}", _rerun),
        (rf"(?:(?:list|show|which|what|how many)(?: the)? )?(?:gpus?|cluster|machine){_HAVE}", _machine),
        (r"(?:(?:list|show)(?: the)? )?alerts", _alerts),
        (r"(?:(?:list|show)(?: the)? )?plans", _plans),
        (r"remember (?:that )?(?P<note>.+)", _remember),
        (r"plan\b.*", lambda _match, _results: _PLAN),
        (rf"run:? (?P<command>\S.*?)(?P<tell>{_AND_TELL})?", _start),
        (rf"(?:show|describe|what is|how is) {_REF}", _show),
    )
]

# What is only looked at, and cannot be taken for a goal.
_LOOKS = (_running, _why_failed, _sweeps, _metrics, _logs, _machine, _alerts, _plans)
PLANNING_RULES = [(pattern, rule) for pattern, rule in RULES if rule in _LOOKS]
