"""`models`: which language models answer, whether their keys are there, what was spent."""

from __future__ import annotations

from typing import Any

from labwright.cli.formatting import counted
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.screen import Cell, Column, Screen

Json = dict[str, Any]
_CHOOSE = "set LABWRIGHT_MODEL, for example to anthropic:claude-sonnet-5-5"


def models(project: Project = None, as_json: AsJson = False) -> None:
    """Keys are not shown, only where they were found. Nothing is sent to a model: that does labwright doctor."""
    screen = Screen(as_json=as_json)
    found = connect(project).models()
    if as_json:
        screen.json(found)
        return
    if found["configured"]:
        _tiers(screen, found["tiers"])
    else:
        screen.say(f"No language model is configured; what answers are {found['offline']}.")
        screen.say(f"To choose one: {_CHOOSE}, then labwright down and labwright up -d.")
    screen.say("")
    screen.facts(
        [
            ("spent", _spent(found["spent"])),
            ("tokens", _tokens(found["spent"])),
            ("a session", _limits(found["session_limits"])),
        ]
    )
    if found["configured"]:
        screen.next("Ask each one small question: labwright doctor")


def _tiers(screen: Screen, tiers: list[Json]) -> None:
    columns = [
        Column(title="tier"),
        Column(title="model", shrinks=True),
        Column(title="key", shrinks=True),
        Column(title="price"),
        Column(title="calls", right=True),
        Column(title="spent", right=True),
    ]
    screen.table(columns, [_row(tier) for tier in tiers])
    for hint in dict.fromkeys(tier["hint"] for tier in tiers if tier["hint"]):
        screen.say((f"fix: {hint}", "dim"))


def _row(tier: Json) -> list[Cell]:
    return [
        tier["tier"],
        (tier["model"], "bold"),
        (tier["key"], "green" if tier["usable"] else "red"),
        "known" if tier["priced"] else ("not known", "amber"),
        str(tier["spent"]["calls"]),
        f"${tier['spent']['cost_usd']:.2f}" if tier["priced"] else "",
    ]


def _spent(sums: Json) -> str:
    if not sums["calls"]:
        return "nothing so far"
    unpriced = f", {sums['unpriced_calls']} of them without a known price" if sums["unpriced_calls"] else ""
    return f"${sums['cost_usd']:.2f} in {counted(sums['calls'], 'call')}{unpriced}"


def _tokens(sums: Json) -> str:
    if not sums["calls"]:
        return ""
    return f"{sums['tokens_in']:,} in ({sums['cache_read']:,} from a cache), {sums['tokens_out']:,} out"


def _limits(limits: Json) -> str:
    """Of one session, before it pauses and asks."""
    parts = [
        *([f"${limits['usd']:g}"] if limits["usd"] else []),
        *([f"{limits['tokens']:,} tokens"] if limits["tokens"] else []),
    ]
    return f"pauses and asks at {' or '.join(parts)}" if parts else "has no limit"
