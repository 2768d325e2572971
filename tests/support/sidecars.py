"""Find the processes of a run, to kill or stop them."""

from __future__ import annotations

import json
import os

from labwright.processes import children_of, start_time
from labwright.sidecar.relay import is_relay
from tests.support.live_server import LiveServer


def supervisor_of(server: LiveServer, run_id: str) -> int:
    claim = json.loads((server.state / "runs" / run_id / "claim").read_text())
    return int(claim["pid"])


def monitors_of(server: LiveServer) -> set[int]:
    return {pid for pid in _helpers_of(server) if not is_relay(pid)}


def relays_of(server: LiveServer) -> set[int]:
    return {pid for pid in _helpers_of(server) if is_relay(pid)}


def _helpers_of(server: LiveServer) -> set[int]:
    """Return the children of each live supervisor that share its session.

    A job shares that session for a moment after its start. A supervisor counts only once its job has its own session,
    so that no test harms the job.
    """
    supervisors = {supervisor_of(server, claim.parent.name) for claim in (server.state / "runs").glob("*/claim")}
    alive = [pid for pid in supervisors if start_time(pid) is not None]
    return {child for pid in alive for child in _beside_the_job(pid)}


def _beside_the_job(supervisor: int) -> set[int]:
    sessions = {child: _session_of(child) for child in children_of(supervisor)}
    has_job = any(session not in (None, supervisor) for session in sessions.values())
    return {child for child, session in sessions.items() if has_job and session == supervisor}


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None
