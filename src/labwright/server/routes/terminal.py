"""WS /runs/{run_id}/terminal: a run's window in the browser. A viewer that passes on keys; closing it ends no job."""

from __future__ import annotations

from fastapi import APIRouter, WebSocket

from labwright.compute.lab import Lab
from labwright.compute.viewers import viewer_command
from labwright.domain.actor import Scope
from labwright.domain.errors import LabwrightError
from labwright.domain.run import LOCAL, RunStatus
from labwright.server import terminal
from labwright.services.runs import verbs as runs

router = APIRouter(tags=["runs"])
PROTOCOL = "labwright.terminal"
_REFUSED, _NOT_RUNNING, _OVER = 4403, 4409, 1000


@router.websocket("/runs/{run_id}/terminal")
async def open_terminal(socket: WebSocket, run_id: str) -> None:
    """For a person only. Bytes from the browser are keys, text is `{cols, rows}`."""
    await socket.accept(PROTOCOL if PROTOCOL in socket.scope["subprotocols"] else None)
    if socket.state.actor.scope is not Scope.PERSON:
        await socket.close(_REFUSED, "Only a person may type into a run.")
        return
    lab: Lab = socket.app.state.lab
    try:
        run = runs.find(lab, run_id)
    except LabwrightError as error:
        await socket.close(_NOT_RUNNING, error.message[:120])
        return
    if run.status is not RunStatus.RUNNING or run.pid is None or run.launcher != LOCAL:
        await socket.close(_NOT_RUNNING, f"The run is {run.status}; only one that runs here has a terminal.")
        return
    await terminal.show(socket, viewer_command(run))
    if socket.client_state.name == "CONNECTED":
        await socket.close(_OVER, "The run has ended.")
