"""A conversation on a terminal: words as they come, what is done on the way, and what is wrong with the numbers."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from labwright.cli.asking import forget_typed_ahead
from labwright.cli.formatting import counted, one_line, shorten, visible
from labwright.cli.markdown import AnswerOnTerminal
from labwright.cli.screen import Screen, has_colours

Json = dict[str, Any]
_ARGUMENTS = 100
_NUMBERS = 8  # that are named in a line
_HELD_BACK = re.compile(r'^\{"(?:executed|started)": false, ')
_WHY = {
    "waiting": "It goes on by itself when that has happened; until then no model is asked.",
    "stopped": "Stopped.",
    "rounds": "It took too many rounds of tools and was ended; say `go on` if it should.",
    "denied": "It ended, since it was not allowed to go on.",
}


class ChatScreen:
    """Shows pieces one after the other, in the order of the log."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._answer = AnswerOnTerminal(screen) if has_colours(sys.stdout) else _PlainAnswer(screen)

    def show(self, piece: Json) -> None:
        if self._screen.as_json:
            self._screen.json_line(piece)
            return
        showing = getattr(self, f"_{piece['kind']}", None)
        if showing is not None:
            showing(piece["data"])

    def show_again(self, piece: Json) -> None:
        """Of a conversation that is over: whole messages instead of their parts."""
        if piece["kind"] == "message" and piece["data"]["text"] and not self._screen.as_json:
            self._text(piece["data"])
        if piece["kind"] == "user" and not self._screen.as_json:
            self._line(f"you: {piece['data']['text']}", "bold")
        elif piece["kind"] not in ("text", "thinking"):
            self.show(piece)

    def _text(self, data: Json) -> None:
        self._answer.add(data["text"])

    def _line(self, text: str, style: str) -> None:
        self._answer.end()
        for line in text.splitlines():
            self._screen.say((visible(line), style))

    def _wake(self, data: Json) -> None:
        happened = [one for news in data["news"] for one in news["happened"]]
        names = ", ".join(f"{one.get('run_id') or one.get('sweep_id')} {one['status']}" for one in happened)
        self._line(f"· woken: {names}", "dim")

    def _call(self, data: Json) -> None:
        given = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in data["arguments"].items()
        )
        self._line(f"· {data['name']} {shorten(one_line(given), _ARGUMENTS)}".rstrip(), "dim")

    def _result(self, data: Json) -> None:
        if why := _why_not_done(data):
            self._line(f"  {shorten(one_line(why), _ARGUMENTS)}", "amber")

    def _notice(self, data: Json) -> None:
        self._line(f"· {data['text']}", "dim")

    def _plan(self, data: Json) -> None:
        if data["status"] == "waiting":
            self._line(f"· {data['message']}", "amber")
        elif data["status"] != "started":
            seconds = f" ({data['seconds']:.1f} s)" if data["seconds"] else ""
            why = f": {one_line(data['message'])}" if data["status"] == "failed" else ""
            self._line(f"· {data['node']} {data['status']}{seconds}{why}", "dim")

    def _summary(self, data: Json) -> None:
        self._line(f"· the first {data['through']} turns are summed up for the model", "dim")

    def _approval(self, data: Json) -> None:
        if data["status"] == "pending":
            self._line(f"? {one_line(data['question'])}", "amber")
            self._line(f"  labwright approvals answer {data['id']} approve|deny", "dim")
        else:
            self._line(f"· {data['status']}", "dim")

    def _message(self, data: Json) -> None:
        alike: dict[str, list[str]] = {}
        for mark in data["marks"]:
            alike.setdefault(one_line(mark["detail"]), []).append(one_line(mark["text"]))
        for detail, numbers in alike.items():  # code may be full of them: one line a fault, not one a number
            more = f" and {len(numbers) - _NUMBERS} more" if len(numbers) > _NUMBERS else ""
            self._line(f"⚠ {', '.join(numbers[:_NUMBERS])}{more}: {detail}", "amber")

    def _end(self, data: Json) -> None:
        for question in data.get("questions", ()):
            self._line(f"? {one_line(question)}", "bold")
        if data["why"] == "failed":
            self._line(f"✗ {data['error']['message']}", "red")
            self._line(f"  {data['error']['hint']}", "dim")
        elif data["why"] in _WHY:
            self._line(_WHY[data["why"]], "dim")
        elif data.get("cut"):
            self._line("The answer was cut off at the longest that the model may give.", "amber")
        self._answer.end()


class _PlainAnswer:
    """For pipes and terminals that cannot be drawn on: its words as they come."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._in_line = False  # whether words stand in the present line

    def add(self, words: str) -> None:
        self._screen.output(visible(words))
        self._in_line = not words.endswith("\n")

    def end(self) -> None:
        if self._in_line:
            self._screen.output("\n")
        self._in_line = False


def _why_not_done(data: Json) -> str:
    """Of a call that came to nothing: refused, or held back for the model to think about."""
    if data["ok"] and not _HELD_BACK.search(data["text"]):
        return ""
    told = json.loads(data["text"])
    if not told.get("executed", True):
        return f"not executed: {told['why']}"
    if not told.get("started", True):
        before = told["failed_before"]
        first = before[0] if isinstance(before, list) else before
        return f"not started: {first['run_id']} failed like that: {first['error']}"
    return str(told.get("refused", ""))


def ask(question: str) -> bool:
    forget_typed_ahead()
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def waits_in_words(session: Json) -> str:
    waits = session["waits"]
    return f"waits for {counted(len(waits), 'event')}" if waits else ""
