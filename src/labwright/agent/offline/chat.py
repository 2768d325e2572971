"""A chat without a language model: rules recognise plain requests and answer them through the same tools.

The chat says that it is a set of rules. A request that no rule recognises gets the list of those that are understood.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from labwright.agent.conversation.history import OURS, WOKEN
from labwright.agent.offline import actions
from labwright.agent.offline.grammar import ABOUT, PLANNING_RULES, RULES, plain
from labwright.agent.offline.planning import NEEDS_INPUT, planned, planning_of, still_missing
from labwright.agent.offline.reply import Ask, Json, Reply, Results, Rule
from labwright.agent.offline.runs import after_wait, why_failed
from labwright.llm.chat import CallPiece, ChatMessage, ChatPiece, ChatRequest, EndPiece, TextPiece, ToolCall
from labwright.llm.model import Usage
from labwright.llm.stand_ins import OFFLINE_NAME

_IT = ("it", "that", "this", "that one", "this one")
_LAST_FAILED = re.compile(r"(?:last|latest|newest) (?:failed|failing)(?: one)?", re.IGNORECASE)
_WHICH = "Which run? Repeat the request with the run's id or name."


class RulesChat:
    name = OFFLINE_NAME

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        place = max(i for i, message in enumerate(request.messages) if message.role == "user")
        text, since = _without_notes(request.messages[place].text), request.messages[place + 1 :]
        tools = {tool.name for tool in request.tools}
        is_planning = "create_plan" in tools and "create_run" not in tools
        before = _last_planning(request.messages[:place]) if is_planning else None
        reply = _reply(text, _results(since), before, request.messages[:place])
        if isinstance(reply, str):
            yield TextPiece(reply)
            yield EndPiece(Usage(), self.name, "end")
            return
        for number, ask in enumerate(reply):
            call_id = f"rule-{len(request.messages)}-{number}"
            yield CallPiece(ToolCall(id=call_id, name=ask.tool, arguments=ask.arguments))
        yield EndPiece(Usage(), self.name, "calls")


def _reply(text: str, results: Results, before: Results | None, earlier: Sequence[ChatMessage]) -> Reply:
    """Return the reply. In plan mode, `before` has the results of the last turn about the plan, else it is None."""
    woken = text.startswith(WOKEN)
    rule = None if woken else _find_rule(_sentence(text), RULES if before is None else PLANNING_RULES)
    failure = ""
    for result in results[:1] if rule and rule[1] is actions.stop_all else results:
        if "refused" in result:
            failure = f"That did not work: {result['refused']} {result['hint']}".strip()
            break
        if result.get("denied") and not failure:
            failure = f"It was not allowed{': ' + result['reason'] if result['reason'] else ''}, so nothing was done."
    if failure:
        missing = still_missing(results) if before is not None else None
        return missing or failure
    if woken:
        return after_wait(json.loads(text.removeprefix(WOKEN)), results)
    if rule:
        return _apply(*rule, results, earlier)
    if before is None:
        return ABOUT
    waiting = (plan for plan in before if planning_of(plan).get("status") == NEEDS_INPUT)
    return planned(text, next(waiting, None), results)


def _find_rule(sentence: str, rules: Sequence[tuple[re.Pattern[str], Rule]]) -> tuple[re.Match[str], Rule] | None:
    return next(((match, rule) for pattern, rule in rules if (match := pattern.fullmatch(sentence))), None)


def _apply(match: re.Match[str], rule: Rule, results: Results, earlier: Sequence[ChatMessage]) -> Reply:
    """Apply a rule after replacing `it` or `the last failed run` with the run's id."""
    run = (match.groupdict().get("run") or "").lower()
    if _LAST_FAILED.fullmatch(run):
        if not results:
            return [Ask("list_runs", {"status": ["failed", "lost"], "limit": 1})]
        failed = results[0]["runs"]
        return rule(_with_run(match, failed[0]["id"]), results[1:]) if failed else "No run has failed."
    if run in _IT:
        last = _last_run(earlier)
        if not last and rule is not why_failed:
            return _WHICH
        match = _with_run(match, last) if last else match
    return rule(match, results)


def _with_run(match: re.Match[str], run_id: str) -> re.Match[str]:
    text = f"{match.string[: match.start('run')]}{run_id}{match.string[match.end('run') :]}"
    return match.re.fullmatch(text) or match


def _last_turn(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    places = [i for i, message in enumerate(messages) if message.role == "user"]
    return messages[places[-1] :] if places else ()


def _last_planning(messages: Sequence[ChatMessage]) -> Results:
    """Return the results of the last turn about the plan. A question about runs in between does not answer it."""
    while turn := _last_turn(messages):
        if not _find_rule(_sentence(_without_notes(turn[0].text)), PLANNING_RULES):
            return _results(turn)
        messages = messages[: -len(turn)]
    return []


def _last_run(messages: Sequence[ChatMessage]) -> str:
    """Return the one run of the newest turn with runs, or an empty text if there were several.

    Turns that started by themselves do not count: the user may not have seen them yet.
    """
    while turn := _last_turn(messages):
        results = () if turn[0].text.startswith(WOKEN) else _results(turn)
        shown = [one for result in results for one in (result, *result.get("runs", ()))]
        ids = {str(one.get("run_id") or one.get("id") or "") for one in shown}
        if runs := {run_id for run_id in ids if run_id.startswith("run-")}:
            return runs.pop() if len(runs) == 1 else ""
        messages = messages[: -len(turn)]
    return ""


def _without_notes(text: str) -> str:
    """Return the user's message without the lines that the server added."""
    if text.startswith(WOKEN):
        return text
    return "\n".join(line for line in text.splitlines() if not line.startswith((OURS, "[@"))).strip()


def _sentence(text: str) -> str:
    return plain(text.splitlines()[0]) if text.strip() else ""


def _results(messages: Sequence[ChatMessage]) -> Results:
    results: list[Json] = []
    for message in messages:
        if message.role == "tool":
            try:
                content = json.loads(message.text)
            except ValueError:
                content = {"refused": "the tool's result was too long to read.", "hint": "Request less."}
            results.append(_entries(content) if isinstance(content, dict) else {})
    return results


def _entries(value: Any) -> Any:
    """Remove from shortened lists the text that replaces the missing entries."""
    if isinstance(value, dict):
        return {name: _entries(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_entries(item) for item in value if isinstance(item, dict)] or value
    return value
