"""`logs`: the output of a run, or a part of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from labwright.cli.command import INTERRUPTED, with_client
from labwright.cli.formatting import moment, size
from labwright.cli.references import LastRun
from labwright.cli.runs.view import reason_of, status_cell
from labwright.cli.screen import Screen, note
from labwright.client.follow import follow_logs
from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid

Json = dict[str, Any]
_PIECE = 1 << 20
_UNREADABLE = "\ufffd"  # replaces bytes that are not text
_BYTES = {"k": 1_000, "M": 1_000_000}


@with_client
def logs(
    screen: Screen,
    client: LabClient,
    run: LastRun = "last",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow the output until the run has ended.")] = False,
    tail: Annotated[
        str | None, typer.Option(metavar="N", help="Show the last N lines, or the last N bytes with k or M.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show all output, also on a terminal.")] = False,
    grep: Annotated[str | None, typer.Option(metavar="TEXT", help="Show only lines with this text.")] = None,
    digest: Annotated[
        bool, typer.Option("--digest", help="Show the run's end, the first error and the last lines.")
    ] = False,
) -> None:
    """A terminal shows the last 500 lines; a pipe gets all of them."""
    run_id = client.run(run)["id"]
    if digest:
        found = client.log_digest(run_id)
        screen.result(found, lambda _: _show_digest(screen, found))
    elif grep:
        _print_matches(screen, client.grep_logs(run_id, grep))
    else:
        default = "1M" if screen.as_json else "500" if screen.is_terminal else ""
        _print_output(screen, client, run_id, "" if everything else tail or default, follow=follow)


def _print_output(screen: Screen, client: LabClient, run_id: str, tail: str, *, follow: bool) -> None:
    pieces = _output_so_far(client, run_id, tail)
    if screen.as_json and not follow:
        screen.json({"run_id": run_id, **_joined(list(pieces))})
        return
    position = 0
    for piece in pieces:
        if piece["offset"] and not position and screen.is_terminal:
            note(f"… {size(piece['offset'])} not shown: labwright logs {run_id} --all")
        position = piece["next_offset"]
        if screen.as_json:
            screen.json_line({"event": "log", **piece})
        else:
            screen.write(_exact_bytes(client, run_id, piece))
    if piece["removed_at"]:
        note(_removal(piece))
    elif follow:
        try:
            end = print_until_end(screen, client, run_id, position)
        except KeyboardInterrupt:
            note(f"\n{run_id} continues.")
            raise typer.Exit(INTERRUPTED) from None
        note(f"{run_id}  {end['status']}{', exit {}'.format(end['exit_code']) if end['exit_code'] else ''}")
    elif not position and screen.is_terminal:
        note(f"{run_id} has no output yet.")


def _removal(facts: Json) -> str:
    return f"labwright gc removed this output at {moment(facts['removed_at'])}."


def print_until_end(screen: Screen, client: LabClient, run_id: str, offset: int) -> Json:
    """Print the output until the run ends. Return the facts of its end."""
    facts: Json = {}
    for frame in follow_logs(client, run_id, offset, note):
        facts = frame.data
        if screen.as_json:
            screen.json_line({"event": frame.event, **facts})
        elif frame.event == "log":
            screen.write(_exact_bytes(client, run_id, facts))
    return facts


def _exact_bytes(client: LabClient, run_id: str, piece: Json) -> bytes:
    """Return the bytes of a piece. They are requested if its text has replacement characters."""
    if _UNREADABLE not in piece["content"]:
        return str(piece["content"]).encode()
    length = min(piece["next_offset"] - piece["offset"], _PIECE)
    return client.raw_logs(run_id, offset=piece["offset"], limit=length)


def _output_so_far(client: LabClient, run_id: str, tail: str) -> Iterator[Json]:
    """Return the current output in pieces: all of it, or the last lines or bytes."""
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
    """Read backwards in pieces until there are enough lines, and return the offset of the first one."""
    end: int = client.logs(run_id, offset=-1, limit=1)["total_size"]
    block, start = b"", end
    while start > 0 and block.count(b"\n") <= count:
        start, piece_end = max(0, start - _PIECE), start
        block = client.raw_logs(run_id, offset=start, limit=piece_end - start) + block
    lines = re.findall(rb"[^\n]*\n|[^\n]+$", block)  # only \n: the \r of a progress bar does not start a line
    return max(0, end - sum(map(len, lines[-count:] if count else [])))


def _joined(pieces: list[Json]) -> Json:
    return {
        "content": "".join(piece["content"] for piece in pieces),
        "offset": pieces[0]["offset"],
        **{name: pieces[-1][name] for name in ("next_offset", "total_size", "removed_at")},
    }


def _print_matches(screen: Screen, found: Json) -> None:
    if screen.as_json:
        screen.json(found)
        return
    if found["content"]:
        screen.write(f"{found['content']}\n")
    if found["has_more_before"]:
        note("Earlier matches are not shown.")
    if found["removed_at"]:
        note(_removal(found))
    if not found["content"]:
        raise typer.Exit(1)


def _show_digest(screen: Screen, digest: Json) -> None:
    screen.item(digest["run_id"], status_cell(digest["status"]), f"  {reason_of(digest)}")
    if digest["first_error"]:
        screen.heading("First error")
        screen.write(f"{digest['first_error']}\n")
    for line in digest["gpu_contention"]:
        screen.print(("GPU: ", "yellow"), line)
    if digest["last_lines"]:
        screen.heading("Last lines")
        screen.write("".join(f"{line}\n" for line in digest["last_lines"]))
    if digest["removed_at"]:
        screen.print(_removal(digest))
    else:
        screen.suggest(f"All output ({size(digest['total_size'])}): labwright logs {digest['run_id']} --all")
