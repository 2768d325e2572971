"""Who answers in a session: the model that the settings choose, or rules where none is chosen."""

from __future__ import annotations

from typing import Protocol

from labwright.agent.wild.verbs import RULES
from labwright.llm.chat import ChatModel
from labwright.llm.models import Models


class Chats(Protocol):
    @property
    def proposer(self) -> str:
        """Who proposes in wild loops, as a person is told."""
        ...

    def chat(self, session_id: str) -> ChatModel: ...

    def allow_more(self, session_id: str) -> None:
        """A person has granted the session as much again as it had."""
        ...


class ProjectChats:
    def __init__(self, models: Models) -> None:
        self._models = models

    @property
    def proposer(self) -> str:
        return self._models.proposer or RULES

    def chat(self, session_id: str) -> ChatModel:
        from labwright.agent.offline.chat import RulesChat  # here, as it brings all the tools along

        return self._models.chat(session_id, otherwise=RulesChat())

    def allow_more(self, session_id: str) -> None:
        first = self._models.limits
        self._models.ledger(session_id).allow(tokens=first.tokens, usd=first.usd)
