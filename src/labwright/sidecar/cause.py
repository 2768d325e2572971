"""Find the line of the output that says why a command failed, such as `KeyError: 'huber' (train.py:42)`."""

from __future__ import annotations

import os
import re

_TAIL_BYTES = 1 << 16
_LONGEST = 300  # characters of a cause
_LINES_SEARCHED = 200  # from the end
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_HEADER = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s+File "(?P<file>[^"]+)", line (?P<line>\d+)')
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: |:$|$)")
_SYNTAX_ERROR = re.compile(r"(?:Syntax|Indentation|Tab)Error: ")
_LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages|lib(?:64)?[/\\]python\d[\d.]*)[/\\]|^<")
# These exceptions only report that another process failed. Its own traceback is in the same output.
_OF_ANOTHER_PROCESS = re.compile(
    r"[\w.]*\b(?:ChildFailedError|ProcessRaisedException|ProcessExitedException|CalledProcessError)\b"
)
_SAYS_WHY = re.compile(
    r"(?i:\b(?:error|fatal|panic)\b(?:\[\w+\])?: *(?![-+.\d\s]*\d)\S)"
    r"|^[\w.]*(?:Error|Exception)\b: *\S"
    r"|command not found|No such file or directory|can't open file|Permission denied|No space left on device"
    r"|out of memory|Segmentation fault|^\s*what\(\): |^Killed\b"
)


def cause_in(path: str, start: int = 0) -> str | None:
    """Return the cause that the end of an output names, or None. `start` is where the last attempt began."""
    return cause_in_text(tail_of(path, start))


def cause_in_text(text: str) -> str | None:
    lines = _lines_of(text)[-_LINES_SEARCHED:]
    return _last_exception(lines) or _last_message(lines)


def last_line_in(path: str, start: int = 0) -> str:
    """Return the last line with text, or ""."""
    lines = reversed(_lines_of(tail_of(path, start)))
    return next((_clipped(line.strip()) for line in lines if line.strip()), "")


def tail_of(path: str, start: int) -> str:
    """Return the last 64 kB of an output, but nothing before `start`."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(start, file.tell() - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def _lines_of(text: str) -> list[str]:
    return [_COLOURS.sub("", line).rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]


def _last_exception(lines: list[str]) -> str | None:
    """Return the exception of the last traceback, but prefer one that does not merely report another process."""
    found = [cause for at, line in enumerate(lines) if _HEADER in line and (cause := _exception_after(lines, at))]
    own = [cause for cause in found if not _OF_ANOTHER_PROCESS.match(cause)]
    if own or found:
        return (own or found)[-1]
    for at in range(len(lines) - 1, 0, -1):  # a syntax error in the script itself has no traceback header
        if _SYNTAX_ERROR.match(lines[at]):
            return _with_place(lines[at].strip(), [line for line in lines[max(0, at - 4) : at] if _FRAME.match(line)])
    return None


def _exception_after(lines: list[str], header: int) -> str | None:
    prefix = lines[header].partition(_HEADER)[0]  # such as `[rank0]: `
    frames = []
    for at in range(header + 1, len(lines)):
        line = lines[at][len(prefix) :] if lines[at].startswith(prefix) else lines[at]
        if _FRAME.match(line):
            frames.append(line)
        elif line and not line[0].isspace():
            if not _EXCEPTION.match(line):
                return None
            if line.rstrip().endswith(":") and at + 1 < len(lines):  # the message begins on the next line
                line = f"{line.rstrip()} {lines[at + 1][len(prefix) :].strip()}"
            return _with_place(line.strip(), frames)
    return None


def _with_place(cause: str, frames: list[str]) -> str:
    """Add the file and line, those of the user's own code if there are any."""
    places = [(match["file"], match["line"]) for frame in frames if (match := _FRAME.match(frame))]
    own = [place for place in places if not _LIBRARY.search(place[0])]
    if not (own or places):
        return _clipped(cause)
    file, line = (own or places)[-1]
    return f"{_clipped(cause)} ({os.path.basename(file)}:{line})"


def _last_message(lines: list[str]) -> str | None:
    return next((_clipped(line.strip()) for line in reversed(lines) if _SAYS_WHY.search(line)), None)


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
