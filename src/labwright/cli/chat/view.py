"""How a conversation is shown: text as it arrives, tool calls, and warnings about unsupported numbers."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from labwright.cli.formatting import one_line, shorten, visible
from labwright.cli.markdown import LiveMarkdown
from labwright.cli.screen import Screen, discard_typed_input, has_colours

Json = dict[str, Any]
_ARGUMENTS = 100
_NUMBERS = 8  # shown in one line
_NOT_DONE = re.compile(r'^\{"(?:executed|started)": false, ')
_END_MESSAGES = {
    "waiting": "The conversation continues automatically when that has happened. No model is used until then.",
    "stopped": "Stopped.",
    "rounds": "Stopped after too many tool calls. Send `continue` to continue.",
    "denied": "Stopped because the request was denied.",
}


class ChatView:
    """Prints the pieces of a conversation in order."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._answer = LiveMarkdown(screen) if has_colours(sys.stdout) else _PlainText(screen)

    def show(self, piece: Json) -> None:
        if self._screen.as_json:
            self._screen.json_line(piece)
            return
        show = getattr(self, f"_{piece['kind']}", None)
        if show is not None:
            show(piece["data"])

    def replay(self, piece: Json) -> None:
        """Print a piece of an old conversation: complete messages instead of their parts."""
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
            self._screen.print((visible(line), style))

    def _wake(self, data: Json) -> None:
        happened = [one for news in data["news"] for one in news["happened"]]
        names = ", ".join(f"{one.get('run_id') or one.get('sweep_id')} {one['status']}" for one in happened)
        self._line(f"· continued after: {names}", "dim")

    def _call(self, data: Json) -> None:
        given = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in data["arguments"].items()
        )
        self._line(f"· {data['name']} {shorten(one_line(given), _ARGUMENTS)}".rstrip(), "dim")

    def _result(self, data: Json) -> None:
        if why := _refusal(data):
            self._line(f"  {shorten(one_line(why), _ARGUMENTS)}", "yellow")

    def _notice(self, data: Json) -> None:
        self._line(f"· {data['text']}", "dim")

    def _plan(self, data: Json) -> None:
        if data["status"] == "waiting":
            self._line(f"· {data['message']}", "yellow")
        elif data["status"] != "started":
            seconds = f" ({data['seconds']:.1f} s)" if data["seconds"] else ""
            why = f": {one_line(data['message'])}" if data["status"] == "failed" else ""
            self._line(f"· {data['node']} {data['status']}{seconds}{why}", "dim")

    def _summary(self, data: Json) -> None:
        self._line(f"· the first {data['through']} turns were summarized for the model", "dim")

    def _approval(self, data: Json) -> None:
        if data["status"] == "pending":
            self._line(f"? {one_line(data['question'])}", "yellow")
            self._line(f"  labwright approvals answer {data['id']} approve|deny", "dim")
        else:
            self._line(f"· {data['status']}", "dim")

    def _message(self, data: Json) -> None:
        by_detail: dict[str, list[str]] = {}
        for mark in data["marks"]:
            by_detail.setdefault(one_line(mark["detail"]), []).append(one_line(mark["text"]))
        for detail, numbers in by_detail.items():  # one line per warning, not per number
            more = f" and {len(numbers) - _NUMBERS} more" if len(numbers) > _NUMBERS else ""
            self._line(f"⚠ {', '.join(numbers[:_NUMBERS])}{more}: {detail}", "yellow")

    def _end(self, data: Json) -> None:
        for question in data.get("questions", ()):
            self._line(f"? {one_line(question)}", "bold")
        if data["why"] == "failed":
            self._line(f"✗ {data['error']['message']}", "red")
            self._line(f"  {data['error']['hint']}", "dim")
        elif data["why"] in _END_MESSAGES:
            self._line(_END_MESSAGES[data["why"]], "dim")
        elif data.get("cut"):
            self._line("The answer was cut off at the model's length limit.", "yellow")
        self._answer.end()


class _PlainText:
    """Prints text as it arrives, for pipes and plain terminals."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._in_line = False  # whether the current line has text

    def add(self, text: str) -> None:
        self._screen.write(visible(text))
        self._in_line = not text.endswith("\n")

    def end(self) -> None:
        if self._in_line:
            self._screen.write("\n")
        self._in_line = False


def _refusal(data: Json) -> str:
    """Return why a call was not carried out: it was refused, or returned to the model; otherwise ''."""
    if data["ok"] and not _NOT_DONE.search(data["text"]):
        return ""
    result = json.loads(data["text"])
    if not result.get("executed", True):
        return f"not executed: {result['why']}"
    if not result.get("started", True):
        before = result["failed_before"]
        first = before[0] if isinstance(before, list) else before
        return f"not started: {first['run_id']} failed the same way: {first['error']}"
    return str(result.get("refused", ""))


def ask(question: str) -> bool:
    """Ask a yes/no question on standard error."""
    discard_typed_input()
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
