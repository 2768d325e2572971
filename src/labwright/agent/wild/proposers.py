"""Who proposes in a loop: the model that the settings choose; with none, the search by rules."""

from __future__ import annotations

from typing import Protocol

from labwright.llm.model import Model
from labwright.llm.models import Models


class Proposers(Protocol):
    def model(self, wild_id: str) -> Model | None: ...

    def spent(self, wild_id: str) -> tuple[int, float]:
        """Tokens, and dollars where they are known."""
        ...

    def allow_more(self, wild_id: str) -> None:
        """A person has granted the loop as many tokens again as it had."""
        ...


class ProjectProposers:
    def __init__(self, models: Models) -> None:
        self._models = models

    def model(self, wild_id: str) -> Model | None:
        if not self._models.configured:
            return None
        from labwright.agent.wild.model_search import PROMPTS
        from labwright.llm.stand_ins import OfflineModel

        return self._models.answers(wild_id, PROMPTS, OfflineModel({}))

    def spent(self, wild_id: str) -> tuple[int, float]:
        found = self._models.ledger(wild_id).spent
        return found.tokens, found.cost_usd

    def allow_more(self, wild_id: str) -> None:
        first = self._models.limits
        self._models.ledger(wild_id).allow(tokens=first.tokens, usd=first.usd)
