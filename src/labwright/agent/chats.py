"""Which model answers in a session: the one that the settings choose, or rules if none is chosen."""

from __future__ import annotations

from typing import Protocol

from labwright.agent.wild.verbs import RULES
from labwright.llm.chat import ChatModel
from labwright.llm.models import Models


class Chats(Protocol):
    @property
    def proposer(self) -> str:
        """The name of what proposes experiments in wild loops, as shown to people."""
        ...

    def chat(self, session_id: str) -> ChatModel: ...

    def allow_more(self, session_id: str) -> None:
        """Grant the session its budget a second time, as a person has allowed."""
        ...


class ProjectChats:
    def __init__(self, models: Models) -> None:
        self._models = models

    @property
    def proposer(self) -> str:
        return self._models.proposer or RULES

    def chat(self, session_id: str) -> ChatModel:
        from labwright.agent.offline.chat import RulesChat  # here, because it imports all rules

        return self._models.chat(session_id, fallback=RulesChat())

    def allow_more(self, session_id: str) -> None:
        first = self._models.limits
        self._models.ledger(session_id).allow(tokens=first.tokens, usd=first.usd)
