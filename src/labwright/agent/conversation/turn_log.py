"""What one turn writes into its session's log. After the turn has ended, writes are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.clock import now
from labwright.domain.event import CHAT_HINT, Hint
from labwright.domain.ids import APPROVAL, new_id
from labwright.domain.session import ApprovalRequest, EndReason, Piece, PieceKind, Session, SessionStatus, Wait
from labwright.store import approvals, sessions
from labwright.store.sessions import NewPiece


class TurnOver(Exception):
    """Somebody stopped the turn."""


class TurnLog:
    def __init__(self, lab: Lab, session: Session) -> None:
        self.lab = lab
        self.session_id = session.id
        self.turn = session.turn
        self.actor = Actor(Scope.AGENT, session.id)

    @property
    def session(self) -> Session:
        return sessions.get(self.lab.db.reader(), self.session_id)

    def pieces(self) -> list[Piece]:
        """Return the pieces of the whole conversation, without the parts of unfinished answers."""
        return sessions.whole_pieces(self.lab.db.reader(), self.session_id)

    def own_pieces(self) -> list[Piece]:
        return of_turn(self.pieces(), self.turn)

    def has_loose_text(self) -> bool:
        """Return whether the log ends with parts of an unfinished answer."""
        session = self.session
        last = sessions.pieces_after(self.lab.db.reader(), self.session_id, session.last_seq - 1, 1)
        return bool(last) and last[0].kind in (PieceKind.TEXT, PieceKind.THINKING)

    def write(self, *pieces: NewPiece, **facts: Any) -> Session:
        """Write pieces and change facts of the session in one transaction."""
        with self.lab.db.transaction() as tx:
            before = sessions.get(tx.connection, self.session_id)
            if before.turn != self.turn or before.status is not SessionStatus.WORKING:
                raise TurnOver
            after = sessions.append(tx, before.evolve(updated_at=now(), **facts), pieces)
            sessions.tell_of_suggestions(tx, before, pieces, str(self.actor))
            sessions.change(tx, before, after, str(self.actor))
        self.lab.publish_hint(Hint(CHAT_HINT, session_id=self.session_id))
        return after

    def end(self, why: EndReason, *before: NewPiece, wait: Wait | None = None, **data: Any) -> None:
        waits = (*self.session.waits, wait) if wait else self.session.waits
        ended: NewPiece = (PieceKind.END, {"why": why, **data})
        self.write(*before, ended, status=SessionStatus.IDLE, waits=waits)

    def ask(self, question: str, *, call_id: str, action: dict[str, Any]) -> None:
        """Store an approval. The turn pauses, without using tokens, until a person has answered."""
        approval = ApprovalRequest(
            id=new_id(APPROVAL),
            session_id=self.session_id,
            turn=self.turn,
            call_id=call_id,
            question=question,
            action=action,
            created_at=now(),
        )
        with self.lab.db.transaction() as tx:
            before = sessions.get(tx.connection, self.session_id)
            if before.turn != self.turn or before.status is not SessionStatus.WORKING:
                raise TurnOver
            approvals.insert(tx, approval, str(self.actor))
            asking = before.evolve(status=SessionStatus.ASKING, updated_at=now())
            asking = sessions.append(tx, asking, [(PieceKind.APPROVAL, approval.to_dict())])
            sessions.change(tx, before, asking, str(self.actor))
        self.lab.publish_hint(Hint(CHAT_HINT, session_id=self.session_id))


def of_turn(pieces: Sequence[Piece], turn: int) -> list[Piece]:
    return [piece for piece in pieces if piece.turn == turn]
