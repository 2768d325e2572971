"""`logs`: a run's output, or the part of it that was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from labwright.cli.formatting import ago, clock_time, size
from labwright.cli.options import AsJson, LastRun, Project, connect
from labwright.cli.runs.view import status_cell, why_words
from labwright.cli.screen import Screen, note
from labwright.client.follow import follow_logs
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid

Json = dict[str, Any]
_PIECE = 1 << 20
_UNREADABLE = "\ufffd"  # stands where bytes are no text
_BYTES = {"k": 1_000, "M": 1_000_000}


def logs(
    run: LastRun = "last",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the run has ended.")] = False,
    tail: Annotated[
        str | None, typer.Option(metavar="N", help="The last N lines, or with k or M so many bytes.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="From the beginning, also on a terminal.")] = False,
    grep: Annotated[str | None, typer.Option(metavar="TEXT", help="Only lines with this text.")] = None,
    digest: Annotated[bool, typer.Option("--digest", help="How it ended, the first error, the last lines.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """A terminal gets the last 500 lines, a pipe all of it."""
    screen, client = Screen(as_json=as_json), connect(project)
    run_id = client.run(run)["id"]
    if digest:
        _print_digest(screen, client.log_digest(run_id))
    elif grep:
        _print_matches(screen, client.grep_logs(run_id, grep))
    else:
        _print_output(screen, client, run_id, "" if everything else tail or _default_tail(screen), follow=follow)


def _default_tail(screen: Screen) -> str:
    """A terminal is spared the first million lines, and so is whoever parses JSON; a pipe gets all."""
    if screen.as_json:
        return "1M"
    return "500" if screen.is_terminal else ""


def _print_output(screen: Screen, client: LabClient, run_id: str, tail: str, *, follow: bool) -> None:
    pieces = _so_far(client, run_id, tail)
    if screen.as_json and not follow:
        screen.json({"run_id": run_id, **_joined(list(pieces))})
        return
    position = 0
    for piece in pieces:
        if piece["offset"] and not position and screen.is_terminal:
            note(f"… {size(piece['offset'])} before this: labwright logs {run_id} --all")
        position = piece["next_offset"]
        if screen.as_json:
            screen.json_line({"event": "log", **piece})
        else:
            screen.output(_exact(client, run_id, piece))
    if piece["removed_at"]:
        note(_removal_words(piece))
    elif follow:
        _follow(screen, client, run_id, position)
    elif not position and screen.is_terminal:
        note(f"{run_id} has no output (yet).")


def _removal_words(found: Json) -> str:
    return f"labwright gc removed this output {clock_time(found['removed_at'])} ({ago(found['removed_at'])})."


def print_until_end(screen: Screen, client: LabClient, run_id: str, offset: int) -> Json:
    """The output as it comes. Answers the facts of its end."""
    facts: Json = {}
    for frame in follow_logs(client, run_id, offset, note):
        facts = frame.data
        if screen.as_json:
            screen.json_line({"event": frame.event, **facts})
        elif frame.event == "log":
            screen.output(_exact(client, run_id, facts))
    return facts


def _exact(client: LabClient, run_id: str, piece: Json) -> bytes:
    """The bytes of a piece; where its text does not tell them, they are asked for."""
    if _UNREADABLE not in piece["content"]:
        return str(piece["content"]).encode()
    length = min(piece["next_offset"] - piece["offset"], _PIECE)
    return client.raw_logs(run_id, offset=piece["offset"], limit=length)


def _follow(screen: Screen, client: LabClient, run_id: str, offset: int) -> None:
    try:
        end = print_until_end(screen, client, run_id, offset)
    except KeyboardInterrupt:
        note(f"\n{run_id} goes on.")
        raise typer.Exit(130) from None
    exit_words = f", exit {end['exit_code']}" if end["exit_code"] else ""
    note(f"{run_id}  {end['status']}{exit_words}")


def _so_far(client: LabClient, run_id: str, tail: str) -> Iterator[Json]:
    """The output up to now in pieces: all of it, or the last lines or bytes."""
    match = re.fullmatch(r"(\d*)([kM]?)", tail)
    if match is None or (match[2] and not match[1]):
        raise Invalid(f"--tail {tail!r} is not a number.", hint="Write 100 for lines, 64k or 2M for bytes.")
    if not tail:
        return _pieces(client, run_id, 0)
    count = int(match[1])
    if match[2]:
        return _pieces(client, run_id, -count * _BYTES[match[2]])
    return _pieces(client, run_id, _start_of_last_lines(client, run_id, count))


def _pieces(client: LabClient, run_id: str, offset: int) -> Iterator[Json]:
    while True:
        piece = client.logs(run_id, offset=offset, limit=_PIECE)
        yield piece
        offset = piece["next_offset"]
        if not piece["has_more_after"]:
            return


def _start_of_last_lines(client: LabClient, run_id: str, count: int) -> int:
    """Backwards piece by piece until there are enough."""
    end: int = client.logs(run_id, offset=-1, limit=1)["total_size"]
    block, start = b"", end
    while start > 0 and block.count(b"\n") <= count:
        start, piece_end = max(0, start - _PIECE), start
        block = client.raw_logs(run_id, offset=start, limit=piece_end - start) + block
    lines = re.findall(rb"[^\n]*\n|[^\n]+$", block)  # only \n: a progress bar's \r begins no line
    return max(0, end - sum(map(len, lines[-count:] if count else [])))


def _joined(pieces: list[Json]) -> Json:
    content = "".join(piece["content"] for piece in pieces)
    return {
        "content": content,
        "offset": pieces[0]["offset"],
        "next_offset": pieces[-1]["next_offset"],
        "total_size": pieces[-1]["total_size"],
        "removed_at": pieces[-1]["removed_at"],
    }


def _print_matches(screen: Screen, found: Json) -> None:
    if screen.as_json:
        screen.json(found)
        return
    if found["content"]:
        screen.output(f"{found['content']}\n")
    if found["has_more_before"]:
        note("Earlier matches are not shown.")
    if found["removed_at"]:
        note(_removal_words(found))
    if not found["content"]:
        raise typer.Exit(1)


def _print_digest(screen: Screen, digest: Json) -> None:
    if screen.as_json:
        screen.json(digest)
        return
    screen.say((digest["run_id"], "bold"), "  ", status_cell(digest["status"]), f"  {why_words(digest)}")
    if digest["first_error"]:
        screen.heading("First error")
        screen.output(f"{digest['first_error']}\n")
    for line in digest["gpu_contention"]:
        screen.say(("GPU: ", "amber"), line)
    if digest["last_lines"]:
        screen.heading("Last lines")
        screen.output("".join(f"{line}\n" for line in digest["last_lines"]))
    if digest["removed_at"]:
        screen.say(_removal_words(digest))
        return
    screen.next(f"{size(digest['total_size'])} in all: labwright logs {digest['run_id']} --all")
