"""/runs/{run_id}/logs: a run's output in pieces, as a live stream, as a digest, and its first error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from labwright.compute.lab import Lab
from labwright.server.auth import READERS, while_valid
from labwright.server.models.runs import FirstErrorOut, LogDigestOut, LogsOut
from labwright.server.requests import ReferenceRoute, hub_of, lab_of
from labwright.server.stream import KEEP_ALIVE, KEEP_ALIVE_SECONDS, Hub, frame
from labwright.services.runs import logs
from labwright.services.runs import verbs as runs

router = APIRouter(prefix="/runs/{run_id}/logs", route_class=ReferenceRoute, tags=["logs"])
_PIECE = 64 * 1024
_POLL_SECONDS = 0.2


@router.get("", dependencies=[READERS()])
def read_logs(
    run_id: str,
    request: Request,
    offset: Annotated[int, Query(ge=-(2**53), le=2**53, description="a negative offset counts from the end")] = -10_000,
    limit: Annotated[int, Query(ge=1, le=logs.MAX_BYTES)] = 10_000,
    grep: Annotated[str | None, Query(min_length=1, max_length=1000, description="only lines with this text")] = None,
    ignore_case: Annotated[bool, Query(description="for `grep`: ignore upper and lower case")] = False,
) -> LogsOut:
    """Return a piece of the output, or the lines that match `grep`."""
    lab = lab_of(request)
    run = runs.get(lab, run_id)
    found = logs.grep(lab, run, grep, ignore_case=ignore_case) if grep else logs.read(lab, run, offset, limit)
    return LogsOut(**found)


@router.get("/raw", dependencies=[READERS()], response_class=Response)
def read_raw_logs(
    run_id: str,
    request: Request,
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=logs.MAX_BYTES)] = logs.MAX_BYTES,
) -> Response:
    """Return the exact bytes that the run wrote."""
    lab = lab_of(request)
    content = logs.read_bytes(lab, runs.get(lab, run_id), offset, limit)
    return Response(content, media_type="application/octet-stream")


@router.get("/digest", dependencies=[READERS()])
def digest_logs(run_id: str, request: Request) -> LogDigestOut:
    """Return how the run ended, its first error with traceback, and its last lines. The size is limited."""
    lab = lab_of(request)
    return LogDigestOut(**logs.digest(lab, runs.get(lab, run_id)))


@router.get("/first-error", dependencies=[READERS()])
def find_first_error(run_id: str, request: Request) -> FirstErrorOut:
    """Find the first error in the whole log, not only in the part that the digest reads."""
    lab = lab_of(request)
    return FirstErrorOut(**logs.first_error(lab, runs.get(lab, run_id)))


@router.get("/stream", dependencies=[READERS()], response_class=StreamingResponse)
async def stream_logs(
    run_id: str,
    request: Request,
    offset: Annotated[int, Query(ge=-(2**53), le=2**53)] = 0,
    last_event_id: Annotated[str | None, Header(max_length=30)] = None,
) -> StreamingResponse:
    """Stream server-sent events: `log` with output, then `end` after the run has ended and everything was sent."""
    lab = lab_of(request)
    runs.get(lab, run_id)
    start = int(last_event_id) if last_event_id and last_event_id.isdecimal() else offset
    frames = while_valid(request, _follow(lab, hub_of(request), run_id, start))
    return StreamingResponse(frames, media_type="text/event-stream")


async def _follow(lab: Lab, hub: Hub, run_id: str, offset: int) -> AsyncGenerator[bytes, None]:
    quiet = 0.0
    while not hub.closing:
        run = runs.get(lab, run_id)  # before the read: the log of an ended run is complete
        piece = logs.read(lab, run, offset, _PIECE)
        offset = piece["next_offset"]
        if piece["content"]:
            quiet = 0.0
            yield frame("log", piece, str(offset))
        elif run.is_terminal:
            yield frame("end", {"status": run.status, "exit_code": run.exit_code}, str(offset))
            return
        else:
            await asyncio.sleep(_POLL_SECONDS)
            quiet += _POLL_SECONDS
        if quiet >= KEEP_ALIVE_SECONDS:
            quiet = 0.0
            yield KEEP_ALIVE
