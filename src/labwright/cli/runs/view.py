"""How a run looks on the screen: one line in a list, or in full."""

from __future__ import annotations

import time
from typing import Any

from labwright.cli.formatting import ago, clock_time, counted, duration, number, one_line, size
from labwright.cli.screen import Cell, Column, Screen
from labwright.client.follow import is_ended
from labwright.domain.clock import epoch_seconds
from labwright.domain.run import RunStatus

Json = dict[str, Any]

STYLES = {
    RunStatus.READY: "",
    RunStatus.QUEUED: "",
    RunStatus.LAUNCHING: "blue",
    RunStatus.WAITING: "amber",
    RunStatus.RUNNING: "blue",
    RunStatus.FINISHED: "green",
    RunStatus.FAILED: "red",
    RunStatus.STOPPED: "grey",
    RunStatus.LOST: "purple",
}


def status_cell(status: str) -> Cell:
    return status, STYLES[RunStatus(status)]


def run_table(screen: Screen, runs: list[Json]) -> None:
    with_gpus = any(run["gpus"] for run in runs)
    columns = [
        Column(title="run"),
        Column(title="name", shrinks=True),
        Column(title="status"),
        Column(title="time", right=True),
        Column(title="created", right=True),
        *([Column(title="gpus", right=True)] if with_gpus else []),
        Column(title="note", shrinks=True),
    ]
    screen.table(columns, [_run_row(run, with_gpus) for run in runs])


def _run_row(run: Json, with_gpus: bool) -> list[Cell]:
    gpus: list[Cell] = [str(run["gpus"] or "")] if with_gpus else []
    return [
        run["id"],
        run["name"],
        status_cell(run["status"]),
        time_taken(run),
        (ago(run["created_at"]), "dim"),
        *gpus,
        (note_on(run), "dim"),
    ]


def time_taken(run: Json) -> str:
    if not run["started_at"]:
        return ""
    end = epoch_seconds(run["ended_at"]) if run["ended_at"] else time.time()
    return duration(max(0.0, end - epoch_seconds(run["started_at"])))


def note_on(run: Json) -> str:
    """What a reader would ask next: why it ended so, what it waits for, that it is being stopped."""
    words = []
    if run["stop_requested"] and not is_ended(run):
        words.append("stopping")
    why = why_words(run)
    words += [why] if why else []
    if run["warnings"]:
        words.append(counted(len(run["warnings"]), "warning"))
    if run["archived"]:
        words.append("archived")
    return ", ".join([*(word.rstrip(".") for word in words[:-1]), *words[-1:]])


def why_words(facts: Json) -> str:
    """The error in words, else the reason; one that is a code is spelled as words."""
    reason = facts["status_reason"]
    if facts["status"] == "stopped":
        return str(reason)
    return str(facts["error"] or (reason.replace("_", " ") if reason.replace("_", "").isalpha() else reason))


def run_line(screen: Screen, run: Json) -> None:
    """What a verb did to a run."""
    text = note_on(run)
    after = f"  ({one_line(text)})" if text else ""
    screen.say((run["id"], "bold"), "  ", status_cell(run["status"]), f"  {one_line(run['name'])}", (after, "dim"))


def run_in_full(screen: Screen, run: Json) -> None:
    screen.say((run["id"], "bold"), "  ", one_line(run["name"]))
    screen.facts(
        [
            ("status", status_cell(run["status"])),
            ("why", note_on(run)),
            ("command", _plain(run["command"])),
            ("workdir", run["workdir"]),
            *_times(run),
            *_machine(run),
            *_settings(run),
            ("snapshot", _snapshot_words(run["snapshot"])),
            ("folder", run["run_dir"] or ""),
        ]
    )
    if run["summary"]:
        _metrics(screen, run["summary"])
        if run.get("summary_left_out"):  # not in records of older versions
            screen.say(f"and {run['summary_left_out']} more metrics: labwright metrics {run['id']}")
    refused_line(screen, run.get("refused", {}))
    for text in run["warnings"]:
        screen.say(("warning: ", "amber"), text)


def refused_line(screen: Screen, refused: Json) -> None:
    """What was logged and not kept, if anything."""
    if refused:
        screen.say(("not taken as metrics: ", "amber"), refused_words(refused))


def refused_words(refused: Json) -> str:
    reasons = "; ".join(f"{one_line(entry['key'])}: {one_line(entry['why'])}" for entry in refused["first"][:3])
    return f"{counted(refused['count'], 'time')} ({reasons})"


def _plain(text: str) -> str:
    return "\n".join(one_line(line) if not line.isprintable() else line for line in text.splitlines())


def _times(run: Json) -> list[tuple[str, Cell]]:
    def moment(name: str) -> str:
        return f"{clock_time(run[name])}  ({ago(run[name])})" if run[name] else ""

    return [
        ("created", f"{moment('created_at')} by {run['created_by']}"),
        ("started", moment("started_at")),
        ("ended", moment("ended_at")),
        ("time", time_taken(run)),
        ("time limit", duration(run["time_limit_seconds"]) if run["time_limit_seconds"] else ""),
    ]


def _machine(run: Json) -> list[tuple[str, Cell]]:
    usage = run["usage"]
    used = [
        f"{duration(usage['cpu_seconds'])} of CPU" if usage.get("cpu_seconds") is not None else "",
        f"{size(usage['max_memory_mb'] * 2**20)} of memory" if usage.get("max_memory_mb") else "",
    ]
    return [
        ("gpus", _gpu_words(run)),
        ("gpuwrap", _gpuwrap_words(run)),
        ("used", ", ".join(filter(None, used))),
        ("process", f"{run['pid']} on {run['node']}" if run["pid"] else ""),
        *_slurm(run),
        ("tmux", run["tmux_target"] or ""),
    ]


def _slurm(run: Json) -> list[tuple[str, Cell]]:
    """Which job it is and where; while it has not begun, Slurm's own word on it is in `why`."""
    if run["launcher"] != "slurm":
        return []
    asked = run["slurm"] or {}
    wishes = [
        f"{name}={asked[name]}" for name in ("partition", "account", "qos", "constraint", "gres") if asked.get(name)
    ]
    return [
        ("Slurm job", run["slurm_job_id"] or "not sent yet"),
        ("partition", run.get("slurm_partition") or asked.get("partition") or ""),
        ("node", run["node"] or ""),
        ("nodes", str(run["nodes"] or "")),
        ("asked Slurm", ", ".join([*wishes, *asked.get("extra", ())])),
        ("attempt", str(run["attempt"]) if run["attempt"] > 1 else ""),
    ]


def _gpu_words(run: Json) -> str:
    cards = ", ".join(run["gpu_uuids"])
    return f"{run['gpus']}: {cards}" if cards else str(run["gpus"] or "")


def _gpuwrap_words(run: Json) -> str:
    config = run["gpuwrap_config"]
    if not config or not config["enabled"]:
        return ""
    tries = "as long as it takes" if config["retries"] < 0 else counted(config["retries"], "retry").replace("ys", "ies")
    return f"{tries}, every {config['retry_delay_seconds']:g} s"


def _settings(run: Json) -> list[tuple[str, Cell]]:
    return [
        ("sweep", run["sweep_id"] or ""),
        ("rerun of", run["parent_run_id"] or ""),
        ("after", ", ".join(run["after"])),
        ("params", ", ".join(f"{name}={number(value)}" for name, value in run["params"].items())),
        ("seed", "" if run["seed"] is None else str(run["seed"])),
        ("tags", ", ".join(run["tags"])),
        ("priority", str(run["priority"] or "")),
        ("environment", ", ".join([*(f"{k}={v}" for k, v in run["env"].items()), *_hidden(run["secret_env"])])),
        ("notes", _plain(run["notes"])),
    ]


def _hidden(names: list[str]) -> list[str]:
    return [f"{name}=(secret)" for name in names]


def _snapshot_words(snapshot: Json | None) -> str:
    if not snapshot:
        return ""
    commit = f"commit {snapshot['git_commit'][:10]}" if snapshot["git_commit"] else "no git"
    changed = " with changes" if snapshot["git_commit"] and snapshot["dirty"] else ""
    files = f"{counted(snapshot['files'], 'file')}, {size(snapshot['bytes'])}"
    return "  ".join([f"{snapshot['hash'][:8]}  ({commit}{changed}; {files})", *snapshot["notes"]])


def _metrics(screen: Screen, summary: Json) -> None:
    names = ("last", "min", "max", "mean", "step")
    columns = [Column(title="metric", shrinks=True), *(Column(title=name, right=True) for name in names)]
    screen.heading("Metrics")
    rows = [[key, *(number_cell(values.get(name)) for name in names)] for key, values in summary.items()]
    screen.table(columns, rows)


def number_cell(value: object) -> Cell:
    if value is None:
        return ("–", "dim")
    return (value, "red") if isinstance(value, str) else number(value)
