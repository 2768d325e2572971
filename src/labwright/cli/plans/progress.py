"""Watching a plan while the server works on it: its nodes while it is compiled, its steps while it is executed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from labwright.cli.formatting import duration, one_line, shorten
from labwright.cli.screen import Screen, has_colours, note
from labwright.client.follow import asked, follow_events
from labwright.client.lab import LabClient
from labwright.domain.event import EventType

Json = dict[str, Any]
_TYPES = ",".join((EventType.PLAN_NODE, EventType.PLAN_STEP, EventType.PLAN_UPDATED, EventType.PLAN_STATUS))
_NEWS = (EventType.PLAN_NODE, EventType.PLAN_STEP)
_ABOUT = {
    "IngestReport": "the request, as it came",
    "DraftReportDigest": "what is asked for",
    "DraftImplementationPlan": "the plan document",
    "CompileWorkflowIR": "steps and grid",
    "CompileTaskIR": "what each step does",
    "GenerateWorkflowSkeleton": "the workflow",
    "GenerateTaskTests": "its tests",
    "GenerateTaskImplementations": "its code",
    "ValidateWorkspace": "every check, and the rehearsal",
    "HumanReview": "a person's review",
    "FinalHandoffCheck": "every check again",
}
REDONE_BY = tuple(name for name in _ABOUT if name not in ("HumanReview", "FinalHandoffCheck"))  # after a "no"
_LOOKS = {"finished": ("done", "green"), "failed": ("failed", "red"), "suspended": ("waits", "yellow")}
_NODE_WIDTH = 28


class Lines(Protocol):
    """Lines that stay, above one that tells what goes on."""

    def say(self, text: str, word: str, style: str, after: str) -> None: ...

    def now(self, text: str) -> None: ...


def follow_compilation(screen: Screen, client: LabClient, plan: Json, before: Json | None = None) -> Json:
    """The plan once nobody is at work on it. `before`: how it was, so that only what is new is told."""
    told = _node_facts(before) if before else set()
    with _lines(screen) as lines:
        for look, news in _looks_and_news(client, plan["id"]):
            if news and news["status"] == "waiting":  # said also where there is no progress to see
                note(one_line(news["message"]))
            for node in look["planning"]["progress"]:
                fact = (node["node"], node["status"], node["seconds"])
                if node["status"] in _LOOKS and fact not in told:
                    told.add(fact)
                    _tell_node(lines, node)
            lines.now(look["planning"]["node"] or "starting")
            if not look["compiling_by"]:
                return look
    raise AssertionError("the stream ends only with the plan")


def _node_facts(plan: Json) -> set[tuple[Any, ...]]:
    progress = plan["planning"]["progress"] if plan["planning"] else []
    return {(node["node"], node["status"], node["seconds"]) for node in progress}


def _tell_node(lines: Lines, node: Json) -> None:
    word, style = _LOOKS[node["status"]]
    taken = duration(node["seconds"]) if node["status"] != "suspended" else ""
    lines.say(f"{node['node']:<{_NODE_WIDTH}}{_ABOUT.get(node['node'], ''):<32}", f"{word:<7}", style, taken)


def follow_execution(screen: Screen, client: LabClient, plan: Json) -> Json:
    """The plan once it is not executing any more."""
    with _lines(screen) as lines:
        lines.now("starting")
        for look, step in _looks_and_news(client, plan["id"]):
            if step and "step" in step:
                _tell_step(lines, step)
            if look["status"] != "executing":
                return look
    raise AssertionError("the stream ends only with the plan")


def _tell_step(lines: Lines, step: Json) -> None:
    started = step.get("sweep_id") or step.get("run_id") or ""
    if step["status"] == "paused":  # said also where there is no progress to see: else it would look like a hang
        note(f"{step['step']}: {started} is paused: {one_line(step['message'])} Answer it: labwright alerts")
    if step["status"] in _LOOKS:
        word, style = _LOOKS[step["status"]]
        taken = duration(step["seconds"]) if step.get("seconds") is not None else ""
        lines.say(f"{step['step']:<{_NODE_WIDTH}}{started:<32}", f"{word:<7}", style, taken)
    else:
        lines.now(f"{step['step']} {one_line(str(step['status']))} {started}".strip())


def _looks_and_news(client: LabClient, plan_id: str) -> Iterator[tuple[Json, Json | None]]:
    """The plan as it is, first when the stream is open, so that no end is missed; and what a node or a step tells."""
    for frame in follow_events(client, {"types": _TYPES}, note):
        own = frame.event in ("hello", "reset")
        if own or frame.data["data"]["plan_id"] == plan_id:
            plan = asked(client, lambda: client.plan(plan_id), note)
            yield plan, frame.data["data"] if frame.event in _NEWS else None


@contextmanager
def _lines(screen: Screen) -> Iterator[Lines]:
    if screen.as_json or not sys.stderr.isatty():
        yield _Silent()
    elif not has_colours(sys.stderr):
        yield _Plain()
    else:
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        with console.status("") as status:
            yield _Live(console, status)


class _Silent:
    def say(self, text: str, word: str, style: str, after: str) -> None:
        pass

    def now(self, text: str) -> None:
        pass


class _Plain(_Silent):
    def say(self, text: str, word: str, style: str, after: str) -> None:  # noqa: ARG002 - there is no colour
        note(f"  {text}{word}{after}".rstrip())


class _Live(_Silent):
    def __init__(self, console: Any, status: Any) -> None:
        self._console = console
        self._status = status

    def say(self, text: str, word: str, style: str, after: str) -> None:
        from rich.text import Text

        line = Text.assemble("  ", text, (word, style), (after, "dim"))
        self._console.print(line, soft_wrap=True)

    def now(self, text: str) -> None:
        from rich.text import Text

        self._status.update(Text(shorten(one_line(text), max(20, self._console.width - 4))))
