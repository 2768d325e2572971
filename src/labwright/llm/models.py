"""The models of a project as its settings choose them: for conversations, for planning, and to be looked at."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from labwright.llm.answering import ChatAnswers
from labwright.llm.chat import ChatModel, ChatRequest, Message, whole
from labwright.llm.choice import Choice, Target, load_choice
from labwright.llm.endpoints import Endpoint, load_endpoints
from labwright.llm.faults import ModelFault
from labwright.llm.keys import find_key
from labwright.llm.ledger import Book, Ledger, Limits, Spent
from labwright.llm.metered import MeteredChat
from labwright.llm.model import Model, Tier
from labwright.llm.offline import NAME as OFFLINE
from labwright.llm.patience import Patience
from labwright.llm.prices import is_priced
from labwright.llm.provider import ProviderChat
from labwright.paths import ProjectPaths
from labwright.settings import Settings

_CHECK_SECONDS = 10.0
_CHECK_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a model said to one small question."""

    model: str
    ok: bool
    said: str
    hint: str = ""


class Models:
    """A mistake in the settings is told when they are taken, and no SDK is loaded before somebody asks."""

    def __init__(self, paths: ProjectPaths, settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
        self._project = paths.project
        self._environ = environ
        self.use(settings)
        self.book = Book(paths.spending)
        self._has_state = paths.state.is_dir()  # looking alone makes no folder

    def use(self, settings: Settings) -> None:
        """From the next question on; answers under way end as they began."""
        self._choice: Choice = self.choice(settings)
        self._settings = settings
        self._provider = self._make_provider(Patience.from_settings(settings)) if self._choice else None

    def choice(self, settings: Settings) -> Choice:
        """What these settings would choose, or what is wrong with them."""
        return load_choice(self._project, settings, self._environ)

    def _make_provider(self, patience: Patience) -> ProviderChat:
        return ProviderChat(
            self._choice,
            patience,
            per_minute=self._settings.model_requests_per_minute,
            max_tokens=self._settings.model_max_tokens,
            environ=self._environ,
        )

    @property
    def configured(self) -> bool:
        return self._provider is not None

    @property
    def proposer(self) -> str:
        """Who answers questions that are neither easy nor hard; empty where no model is configured."""
        return self._choice[Tier.DEFAULT].name if self._choice else ""

    @property
    def key_variables(self) -> frozenset[str]:
        """What no run is to have."""
        return frozenset(target.endpoint.key_variable for target in self._choice.values())

    @property
    def limits(self) -> Limits:
        return Limits.from_settings(self._settings)

    def ledger(self, session_id: str) -> Ledger:
        return Ledger(self.book, session_id, self.limits)

    def chat(self, session_id: str, otherwise: ChatModel) -> ChatModel:
        """For one session: its calls are counted, and refused with `BudgetReached` once it has spent what it may.

        `otherwise` talks where no model is configured.
        """
        return otherwise if self._provider is None else self._metered(self._provider, session_id)

    def answers(self, session_id: str, prompts: Mapping[str, str], otherwise: Model) -> Model:
        """The same for structured questions."""
        if self._provider is None:
            return otherwise
        return ChatAnswers(self._metered(self._provider, session_id), prompts)

    def _metered(self, provider: ProviderChat, session_id: str) -> MeteredChat:
        return MeteredChat(provider, self.ledger(session_id), provider.cost)

    def spent(self, session_id: str) -> dict[str, Any]:
        return _sums(self.book.of_session(session_id))

    def view(self) -> dict[str, Any]:
        """All that may be shown to anybody: which models, whether their keys are there, what was spent."""
        limits = self.limits
        return {
            "configured": self.configured,
            "tiers": [self._tier_view(tier, target) for tier, target in self._choice.items()],
            "offline": "" if self.configured else OFFLINE,
            "spent": _sums(self.book.total()),
            "session_limits": {"tokens": limits.tokens, "usd": limits.usd},
            "providers": [self._provider_view(endpoint) for endpoint in self.endpoints().values()],
        }

    def endpoints(self) -> dict[str, Endpoint]:
        return load_endpoints(self._project, self._environ)

    def _provider_view(self, endpoint: Endpoint) -> dict[str, Any]:
        usable, words, hint = self._key_state(endpoint)
        return {
            "name": endpoint.name,
            "address": endpoint.base_url,
            "needs_key": endpoint.needs_key,
            "key": words,
            "usable": usable,
            "hint": hint,
        }

    def _key_state(self, endpoint: Endpoint) -> tuple[bool, str, str]:
        """Whether a key can be used, where it comes from or what is wrong, and how to mend that."""
        try:
            key = find_key(endpoint, self._environ)
        except ModelFault as fault:
            return False, fault.message, fault.hint
        return True, f"from {key.source}" if key else "none needed", ""

    def _tier_view(self, tier: Tier, target: Target) -> dict[str, Any]:
        usable, words, hint = self._key_state(target.endpoint)
        return {
            "tier": tier,
            "model": target.name,
            "address": target.endpoint.base_url,
            "key": words,
            "usable": usable,
            "hint": hint,
            "priced": is_priced(target),
            "spent": _sums(self.book.of_model(target.name)),
        }

    def check(self) -> list[Checked]:
        """Ask each model one small question, soon given up. Blocks."""
        patience = Patience(silence_seconds=_CHECK_SECONDS, answer_seconds=_CHECK_SECONDS, retries=0)
        provider = self._make_provider(patience)
        ledger = Ledger(self.book, "doctor", Limits())
        chat = MeteredChat(provider, ledger, provider.cost) if self._has_state else provider
        tiers = {target.name: tier for tier, target in self._choice.items()}

        async def ask_all() -> list[Checked]:
            return await asyncio.gather(*(_check(chat, name, tier) for name, tier in tiers.items()))

        return asyncio.run(ask_all())


async def _check(chat: ChatModel, name: str, tier: Tier) -> Checked:
    question = ChatRequest(
        system="",
        messages=(Message(role="user", text="Answer with the one word: ready"),),
        tier=tier,
        max_tokens=_CHECK_TOKENS,
    )
    try:
        reply = await whole(chat, question)
    except ModelFault as fault:
        return Checked(model=name, ok=False, said=fault.message, hint=fault.hint)
    return Checked(model=name, ok=True, said=f"{name} answers, {reply.end.usage.tokens} tokens")


def _sums(spent: Spent) -> dict[str, Any]:
    return {name: value for name, value in asdict(spent).items() if not name.startswith("granted")}
