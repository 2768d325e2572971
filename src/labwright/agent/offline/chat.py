"""Conversation without a language model: plain requests, recognised by rules and answered through the same tools.

It says what it is. What no rule recognises gets the list of what is, and never a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from labwright.agent.conversation.history import OURS, WOKEN
from labwright.agent.offline import deeds
from labwright.agent.offline.comparing import next_best
from labwright.agent.offline.planning import NEEDS_INPUT, planned, planning_of, still_missing
from labwright.agent.offline.reply import Ask, Json, Reply, Results, Rule
from labwright.agent.offline.rules import ABOUT, PLANNING_RULES, RULES, plain
from labwright.agent.offline.runs import why_failed, woken
from labwright.llm.chat import CallPiece, ChatMessage, ChatPiece, ChatRequest, EndPiece, TextPiece, ToolCall
from labwright.llm.model import Usage
from labwright.llm.stand_ins import OFFLINE_NAME

_IT = ("it", "that", "this", "that one", "this one")
_LAST_FAILED = re.compile(r"(?:last|latest|newest) (?:failed|failing)(?: one)?", re.IGNORECASE)
_WHICH = "Which run? Say it with the run's id or name."


class RulesChat:
    name = OFFLINE_NAME

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        place = max(i for i, message in enumerate(request.messages) if message.role == "user")
        said, since = _without_notes(request.messages[place].text), request.messages[place + 1 :]
        before = _planned_before(request.messages[:place]) if _is_planning(request) else None
        reply = _reply(said, _results(since), before, request.messages[:place])
        if isinstance(reply, str):
            yield TextPiece(reply)
            yield EndPiece(Usage(), self.name, "end")
            return
        for number, ask in enumerate(reply):
            call_id = f"rule-{len(request.messages)}-{number}"
            yield CallPiece(ToolCall(id=call_id, name=ask.tool, arguments=ask.arguments))
        yield EndPiece(Usage(), self.name, "calls")


def _is_planning(request: ChatRequest) -> bool:
    """Where plans can be made and nothing can be started."""
    names = {tool.name for tool in request.tools}
    return "create_plan" in names and "create_run" not in names


def _turn_before(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    places = [i for i, message in enumerate(messages) if message.role == "user"]
    return messages[places[-1] :] if places else ()


def _planned_before(messages: Sequence[ChatMessage]) -> Results:
    """What the newest turn showed that was about the plan: whoever looks at a run in between has not answered yet."""
    while turn := _turn_before(messages):
        if not _rule(_sentence(_without_notes(turn[0].text)), PLANNING_RULES):
            return _results(turn)
        messages = messages[: -len(turn)]
    return []


def _run_spoken_of(messages: Sequence[ChatMessage]) -> str:
    """The one run that the newest turn with runs in it was about; nothing if there were several.

    Not of a turn that began by itself: the person may not have seen it yet.
    """
    while turn := _turn_before(messages):
        told = () if turn[0].text.startswith(WOKEN) else _results(turn)
        if found := {run_id for result in told for run_id in _runs_in(result)}:
            return found.pop() if len(found) == 1 else ""
        messages = messages[: -len(turn)]
    return ""


def _runs_in(result: Json) -> list[str]:
    shown = [result, *result.get("runs", ())]
    ids = [str(one.get("run_id") or one.get("id") or "") for one in shown]
    return [run_id for run_id in ids if run_id.startswith("run-")]


def _without_notes(text: str) -> str:
    """What the person said, without the lines that the server put below it."""
    if text.startswith(WOKEN):
        return text
    return "\n".join(line for line in text.splitlines() if not line.startswith((OURS, "[@"))).strip()


def _reply(said: str, results: Results, before: Results | None, earlier: Sequence[ChatMessage]) -> Reply:
    """`before`: what the last turn about the plan showed, while a plan is made; none otherwise."""
    found = None if said.startswith(WOKEN) else _rule(_sentence(said), RULES if before is None else PLANNING_RULES)
    if failure := _not_done(results[:1] if found and found[1] is deeds.stop_all else results):
        missing = still_missing(results) if before is not None else None
        return missing or failure
    if said.startswith(WOKEN):
        return woken(json.loads(said.removeprefix(WOKEN)), results)
    if found:
        return _by_rule(*found, results, earlier)
    if before is None:
        return ABOUT
    return planned(
        said, next((found for found in before if planning_of(found).get("status") == NEEDS_INPUT), None), results
    )


def _sentence(said: str) -> str:
    return plain(said.splitlines()[0]) if said.strip() else ""


def _not_done(results: Results) -> str:
    """Why nothing came of what was asked; empty if it did."""
    if refused := next((result for result in results if "refused" in result), None):
        return f"That did not work: {refused['refused']} {refused['hint']}".strip()
    if denied := next((result for result in results if result.get("denied")), None):
        return f"It was not allowed{': ' + denied['reason'] if denied['reason'] else ''}, so nothing was done."
    return ""


def _rule(sentence: str, rules: Sequence[tuple[re.Pattern[str], Rule]]) -> tuple[re.Match[str], Rule] | None:
    return next(((match, rule) for pattern, rule in rules if (match := pattern.fullmatch(sentence))), None)


def _by_rule(match: re.Match[str], rule: Rule, results: Results, earlier: Sequence[ChatMessage]) -> Reply:
    """With what the words point to: `it`, `the last failed run`, or the metric that was spoken of."""
    if _LAST_FAILED.fullmatch(match.groupdict().get("run") or ""):
        return _of_last_failed(match, rule, results)
    if rule is next_best and not match["key"] and (key := _key_spoken_of(earlier)):
        match = match.re.fullmatch(f"{match.string} by {key}") or match
    match = _with_run(match, _run_spoken_of(earlier)) if _says_it(match) else match
    return _WHICH if _says_it(match) and rule is not why_failed else rule(match, results)


def _of_last_failed(match: re.Match[str], rule: Rule, results: Results) -> Reply:
    if not results:
        return [Ask("list_runs", {"status": ["failed", "lost"], "limit": 1})]
    failed = results[0]["runs"]
    return rule(_with_run(match, failed[0]["id"]), results[1:]) if failed else "No run has failed."


def _key_spoken_of(messages: Sequence[ChatMessage]) -> str:
    """The metric that runs were last ranked by."""
    keys = [result["key"] for result in _results(messages) if "best" in result and "key" in result]
    return str(keys[-1]) if keys else ""


def _says_it(match: re.Match[str]) -> bool:
    return (match.groupdict().get("run") or "").lower() in _IT


def _with_run(match: re.Match[str], spoken_of: str) -> re.Match[str]:
    """`stop it`, with the run that was spoken of."""
    named = f"{match.string[: match.start('run')]}{spoken_of}{match.string[match.end('run') :]}"
    return (spoken_of and match.re.fullmatch(named)) or match


def _results(since: Sequence[ChatMessage]) -> Results:
    return [_loaded(message.text) for message in since if message.role == "tool"]


def _loaded(text: str) -> Json:
    try:
        found = json.loads(text)
    except ValueError:
        return {"refused": "the answer of a tool was too long to be read.", "hint": "Ask for less."}
    return _entries(found) if isinstance(found, dict) else {}


def _entries(value: Any) -> Any:
    """Lists without the words that stand for the entries that a long one has lost."""
    if isinstance(value, dict):
        return {name: _entries(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_entries(one) for one in value if isinstance(one, dict)] or value
    return value
