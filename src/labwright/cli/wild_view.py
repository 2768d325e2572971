"""Wild loops on a terminal: a table of them, one with its iterations, and how one goes on."""

from __future__ import annotations

from typing import Any

from labwright.cli.formatting import ago, duration, number, one_line
from labwright.cli.screen import Cell, Column, Screen, note
from labwright.client.follow import asked, follow_events
from labwright.client.lab import LabClient
from labwright.domain.event import EventType
from labwright.domain.wild import AT_WORK

Json = dict[str, Any]
_TYPES = f"{EventType.WILD_CHANGED},{EventType.WILD_ITERATION}"
_STYLES = {"keep": "green", "baseline": "blue", "stop": "amber", "drop": "dim"}


def follow_wild(screen: Screen, client: LabClient, wild_id: str) -> Json:
    """The loop once it has ended or waits for a person; a line for each decision meanwhile."""
    told: set[int] = set()
    for frame in follow_events(client, {"types": _TYPES}, note):
        if frame.event not in ("hello", "reset") and frame.data["data"]["wild_id"] != wild_id:
            continue
        wild = asked(client, lambda: client.wild(wild_id), note)
        for iteration in wild["iterations"]:
            if iteration["decision"] and iteration["number"] not in told:
                told.add(iteration["number"])
                _tell(screen, iteration)
        if wild["status"] not in AT_WORK:
            return wild
    raise AssertionError("a stream of events without a deadline does not end")


def _tell(screen: Screen, iteration: Json) -> None:
    verdict = iteration["decision"]["verdict"]
    if not screen.as_json:
        words = one_line(f"{_changed(iteration)}  {_result(iteration)}")
        screen.say(f"{iteration['number']:>3}  ", (verdict.ljust(10), _STYLES[verdict]), words)


def list_wilds(screen: Screen, found: list[Json]) -> None:
    if screen.as_json:
        screen.json(found)
    elif not found:
        screen.say('No wild loops yet. Begin one: labwright wild "reach val_acc 0.9 by tuning lr"')
    else:
        titles = ("loop", "status", "tries", "runs", "best", "created", "goal")
        columns = [Column(title=title, shrinks=title == "goal", right=title in ("tries", "runs")) for title in titles]
        screen.table(columns, [_row(wild) for wild in found])
        screen.next("One of them: labwright wild show LOOP · its report: labwright wild report LOOP")


def _row(wild: Json) -> list[Cell]:
    best = number(wild["best"]["mean"]) if wild["best"] else ""
    tries, runs = str(len(wild["iterations"])), str(wild["used"]["runs"])
    return [wild["id"], wild["status"], tries, runs, best, (ago(wild["created_at"]), "dim"), one_line(wild["goal"])]


def show_wild(screen: Screen, wild: Json) -> None:
    if screen.as_json:
        screen.json(wild)
        return
    screen.say((wild["id"], "bold"), f"  {wild['status']}")
    screen.facts(_facts(wild))
    if wild["iterations"]:
        screen.heading("Tries")
        titles = ("#", "verdict", "change", "result", "why")
        columns = [Column(title=title, shrinks=title in ("change", "result", "why")) for title in titles]
        screen.table(columns, [_iteration(iteration) for iteration in wild["iterations"]])
    report = f"labwright wild report {wild['id']} · " if wild["report"] else ""
    screen.next(f"Next: {report}labwright wild steer {wild['id']} TEXT · labwright ps --sweep {wild['sweep_id']}")


def _facts(wild: Json) -> list[tuple[str, Cell]]:
    used, budget = wild["used"], wild["budget"]
    of = {name: f" of {number(limit)}" if limit is not None else "" for name, limit in budget.items()}
    spent = [f"{used['runs']}{of['runs']} runs", f"{used['gpu_hours']:.3g}{of['gpu_hours']} GPU-hours"]
    spent.append(f"{duration(used['wall_seconds'])} at work")
    tokens = f"{used['tokens']:,} tokens" if used["tokens"] else ""
    money = f"${used['cost']:.2f}" if used["cost"] else ""  # else free, or of no known price
    return [
        ("goal", one_line(wild["goal"])),
        ("why", one_line(wild["status_reason"])),
        ("criterion", wild["criterion"]["text"]),
        ("script", f"{wild['script']}, searched by {wild['search']}: {', '.join(wild['parameters'])}"),
        ("baseline", _found(wild["baseline"])),
        ("best", _found(wild["best"])),
        ("used", ", ".join(filter(None, [*spent, tokens, money]))),
        ("sweep", wild["sweep_id"]),
        ("protected", ", ".join(entry["path"] for entry in wild["protected"])),
    ]


def _found(found: Json | None) -> str:
    if found is None:
        return ""
    spread = "" if found["std"] is None else f" ± {found['std']:.2g}"
    params = ", ".join(f"{name} {value}" for name, value in found["params"].items())
    return f"{number(found['mean'])}{spread} (n {found['n']}), iteration {found['number']}: {params or 'as it is'}"


def _iteration(iteration: Json) -> list[Cell]:
    decision = iteration["decision"] or {"verdict": iteration["status"], "reason": iteration["hypothesis"]}
    verdict = decision["verdict"]
    style = _STYLES.get(verdict, "")
    return [str(iteration["number"]), (verdict, style), _changed(iteration), _result(iteration), decision["reason"]]


def _changed(iteration: Json) -> str:
    return ", ".join(f"{name} {value}" for name, value in iteration["change"].items()) or "as it is"


def _result(iteration: Json) -> str:
    return str(iteration["result"]["text"]).partition(": ")[0] if iteration["result"] else ""
