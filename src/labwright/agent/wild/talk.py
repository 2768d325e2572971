"""A turn of a conversation in wild mode: the first goal starts a loop, what is said later steers it.

No model reads these words: they are the loop's. How it goes is told in the conversation by `news.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from labwright.agent.conversation.turn_log import TurnLog, TurnOver, of_turn
from labwright.agent.wild import verbs
from labwright.agent.wild.news import answer, end_in_words
from labwright.agent.wild.wanted import NewWild
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.errors import LabwrightError, StorageFailed
from labwright.domain.ids import WILD, id_of
from labwright.domain.session import EndReason, Piece, PieceKind, Session
from labwright.domain.wild import AT_WORK, Wild
from labwright.store import wild as stored
from labwright.store.idempotency import IdempotencyKey

log = logging.getLogger(__name__)
_VERBS: dict[str, Callable[[Lab, str, Actor], Wild]] = {
    "stop": verbs.stop,
    "pause": verbs.pause,
    "resume": verbs.resume,
    "go on": verbs.resume,
    "continue": verbs.resume,
}
_STATUS = ("status", "how is it going", "how far is it")
_NOT_HERE = "What was waited for has happened; say it in agent mode to go on with it."


class WildTurn:
    def __init__(self, lab: Lab, session: Session, search: str) -> None:
        self._lab = lab
        self._log = TurnLog(lab, session)
        self._search = search

    async def run(self) -> None:
        with contextlib.suppress(TurnOver):  # somebody has stopped it
            try:
                words, wild = await asyncio.to_thread(self._do)
            except StorageFailed:
                raise  # nothing can be written, not even that; the worker tries again
            except LabwrightError as error:
                self._end(f"{error.message} {error.hint}".strip(), None)
                return
            except Exception as error:
                log.exception("turn %d of %s failed", self._log.turn, self._log.session_id)
                fault = {"message": f"Labwright hit a fault of its own: {error!r}.", "hint": "See the server's log."}
                self._log.end(EndReason.FAILED, error=fault)
                return
            self._end(words, wild)

    def _end(self, words: str, wild: Wild | None) -> None:
        waits = wild is not None and wild.status in AT_WORK
        why = EndReason.WAITING if waits else EndReason.DONE
        self._log.end(why, *answer(words), wild_id=wild.id if wild else None)

    def _do(self) -> tuple[str, Wild | None]:
        said = self._said()
        if said is None:
            return _NOT_HERE, None
        text, actor = str(said.data["text"]).strip(), Actor.of(said.data["by"])
        newest = stored.newest_of_session(self._lab.db.reader(), self._log.session_id)
        current = newest if newest is not None and (not newest.is_ended or newest.id == self._own_id) else None
        plain = text.lower().rstrip(".!? ")
        if current is None:
            return self._start(text, actor)
        if plain in _STATUS or current.id == self._own_id:
            return _standing(current), current
        if plain in _VERBS:
            return self._verb(plain, current, actor)
        return self._steer(text, current, actor)

    def _said(self) -> Piece | None:
        own = of_turn(self._log.pieces(), self._log.turn)
        return next((piece for piece in own if piece.kind is PieceKind.USER), None)

    @property
    def _own_id(self) -> str:
        """The same if a kill makes us ask again."""
        return id_of(WILD, f"{self._log.session_id} {self._log.turn}".encode())

    def _start(self, text: str, actor: Actor) -> tuple[str, Wild]:
        wanted = NewWild(goal=text, id=self._own_id, session_id=self._log.session_id)
        started = verbs.start(self._lab, wanted, self._search, actor)
        return _standing(started), started

    def _verb(self, word: str, wild: Wild, actor: Actor) -> tuple[str, Wild]:
        changed = _VERBS[word](self._lab, wild.id, actor)
        return _standing(changed), changed

    def _steer(self, text: str, wild: Wild, actor: Actor) -> tuple[str, Wild]:
        once = IdempotencyKey.of(f"{self._log.session_id} {self._log.turn}", "steer", b"")
        steered = verbs.steer(self._lab, wild.id, text, actor, once)
        return f"The next proposal of {wild.id} takes that into account.", steered


def _standing(wild: Wild) -> str:
    if wild.status not in AT_WORK:
        return end_in_words(wild)
    searched = ", ".join(wild.parameters)
    head = f"Wild loop {wild.id} is {wild.status}: {wild.criterion['text']}, by {searched} of {wild.script}"
    limits = ", ".join(f"{value:g} {name}" for name, value in wild.budget.items())
    tried = sum(not iteration.was_refused for iteration in wild.iterations)
    return f"{head}; at most {limits}. {tried} tried so far. Say what to look at to steer it, or pause, resume, stop."
