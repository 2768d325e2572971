"""Approval requests of agents, and their answers, in the database."""

from __future__ import annotations

import json
import sqlite3

from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.domain.event import Event, EventType
from labwright.domain.session import ApprovalRequest
from labwright.store.database import Transaction
from labwright.store.paging import page_before
from labwright.store.statements import SESSIONS


def insert(tx: Transaction, approval: ApprovalRequest, actor: str) -> None:
    tx.execute(SESSIONS["insert_approval"], id=approval.id, record=_json(approval))
    _emit(tx, EventType.APPROVAL_ASKED, approval, actor)


def change(tx: Transaction, approval: ApprovalRequest, actor: str) -> None:
    tx.execute(SESSIONS["update_approval"], id=approval.id, record=_json(approval))
    _emit(tx, EventType.APPROVAL_ANSWERED, approval, actor)


def get(connection: sqlite3.Connection, approval_id: str) -> ApprovalRequest:
    row = connection.execute(SESSIONS["get_approval"], {"id": approval_id}).fetchone()
    if row is None:
        raise NotFound(f"There is no approval {approval_id}.", hint="List them with GET /approvals.")
    return ApprovalRequest.from_dict(json.loads(row[0]))


def page(
    connection: sqlite3.Connection, status: str | None, session_id: str | None, limit: int, before: int | None
) -> tuple[list[ApprovalRequest], int | None]:
    values = {"status": status, "session_id": session_id}
    sql = SESSIONS["approvals_page"]
    return page_before(connection, sql, values, read=ApprovalRequest.from_dict, limit=limit, before=before)


def _emit(tx: Transaction, kind: EventType, approval: ApprovalRequest, actor: str) -> None:
    data = {
        "approval_id": approval.id,
        "session_id": approval.session_id,
        "question": approval.question,
        "status": approval.status,
    }
    tx.emit(Event(type=kind, actor=actor, time=now(), data=data))


def _json(approval: ApprovalRequest) -> str:
    return json.dumps(approval.to_dict(), ensure_ascii=False)
