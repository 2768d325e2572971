"""Sessions in the database, and the log of pieces of each."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.domain.event import Event, EventType
from labwright.domain.session import Piece, PieceKind, Session, SuggestionStatus
from labwright.store.database import Transaction
from labwright.store.paging import page_before
from labwright.store.statements import SESSIONS

NewPiece = tuple[PieceKind, dict[str, Any]]


def insert(tx: Transaction, session: Session, actor: str) -> None:
    tx.execute(SESSIONS["insert"], id=session.id, record=_json(session.to_dict()))
    _emit(tx, EventType.SESSION_CREATED, session, actor, {"title": session.title, "mode": session.mode})


def change(tx: Transaction, before: Session, after: Session, actor: str) -> Session:
    """Store a changed session with one event. A new piece alone makes no event: there would be too many."""
    tx.execute(SESSIONS["update"], id=after.id, record=_json(after.to_dict()))
    if after.status is not before.status:
        facts = {"from": before.status, "to": after.status, "turn": after.turn, "waits": len(after.waits)}
        _emit(tx, EventType.SESSION_STATUS, after, actor, facts)
    else:
        changed = [name for name in ("title", "mode", "waits") if getattr(before, name) != getattr(after, name)]
        if changed:
            _emit(tx, EventType.SESSION_UPDATED, after, actor, {"changed": changed})
    return after


def delete(tx: Transaction, session: Session, actor: str) -> None:
    tx.execute(SESSIONS["delete"], id=session.id)
    tx.execute(SESSIONS["delete_pieces"], session_id=session.id)
    _emit(tx, EventType.SESSION_DELETED, session, actor, {"title": session.title})


def append(tx: Transaction, session: Session, pieces: Iterable[NewPiece]) -> Session:
    """Append pieces to the log. Return the session with its newest number, which is not stored yet."""
    seq, at = session.last_seq, now()
    for kind, data in pieces:
        seq += 1
        facts = {"session_id": session.id, "seq": seq, "turn": session.turn, "kind": kind, "time": at}
        tx.execute(SESSIONS["insert_piece"], **facts, data=_json(data))
    return session.evolve(last_seq=seq)


def get(connection: sqlite3.Connection, session_id: str) -> Session:
    row = connection.execute(SESSIONS["get"], {"id": session_id}).fetchone()
    if row is None:
        raise NotFound(f"There is no session {session_id}.", hint="List them with GET /sessions.")
    return Session.from_dict(json.loads(row[0]))


def page(connection: sqlite3.Connection, limit: int, before: int | None) -> tuple[list[Session], int | None]:
    return page_before(connection, SESSIONS["page"], {}, read=Session.from_dict, limit=limit, before=before)


def at_work(connection: sqlite3.Connection) -> list[Session]:
    return [Session.from_dict(json.loads(row[0])) for row in connection.execute(SESSIONS["at_work"])]


def waiting(connection: sqlite3.Connection) -> list[Session]:
    return [Session.from_dict(json.loads(row[0])) for row in connection.execute(SESSIONS["waiting"])]


def pieces_after(connection: sqlite3.Connection, session_id: str, seq: int, limit: int) -> list[Piece]:
    rows = connection.execute(SESSIONS["pieces_after"], {"session_id": session_id, "after": seq, "limit": limit})
    return [_piece(row) for row in rows]


def whole_pieces(connection: sqlite3.Connection, session_id: str) -> list[Piece]:
    """Return all pieces except the parts of replies, which the complete messages contain too."""
    return [_piece(row) for row in connection.execute(SESSIONS["pieces_without_parts"], {"session_id": session_id})]


def suggestions(connection: sqlite3.Connection, session_id: str | None) -> list[tuple[str, dict[str, Any]]]:
    """Return every suggestion and answer with its session, in order."""
    rows = connection.execute(SESSIONS["suggestions"], {"session_id": session_id})
    return [(session, json.loads(data)) for session, data in rows]


def tell_of_suggestions(tx: Transaction, session: Session, pieces: Iterable[NewPiece], actor: str) -> None:
    for kind, data in pieces:
        if kind is PieceKind.SUGGESTION:
            made = data["status"] == SuggestionStatus.PENDING
            event = EventType.SUGGESTION_MADE if made else EventType.SUGGESTION_ANSWERED
            _emit(tx, event, session, actor, {"suggestion_id": data["id"], "status": data["status"]})


def _piece(row: tuple[str, int, int, str, str, str]) -> Piece:
    session_id, seq, turn, kind, time, data = row
    return Piece(session_id=session_id, seq=seq, turn=turn, kind=PieceKind(kind), time=time, data=json.loads(data))


def _emit(tx: Transaction, kind: EventType, session: Session, actor: str, data: dict[str, Any]) -> None:
    tx.emit(Event(type=kind, actor=actor, time=now(), data={"session_id": session.id, **data}))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
