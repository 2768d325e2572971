"""The models that a project's settings choose, for conversations and for planning."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from labwright.llm.answering import ChatAnswers
from labwright.llm.chat import ChatMessage, ChatModel, ChatRequest, read_reply
from labwright.llm.choice import Target, TierTargets, is_priced, load_targets
from labwright.llm.endpoints import Endpoint, find_key, load_endpoints
from labwright.llm.faults import ModelFault
from labwright.llm.ledger import Ledger, MeteredChat, Spending, SpendingLimits, SpendingLog
from labwright.llm.model import Model, Tier
from labwright.llm.provider import ProviderChat, RetryPolicy
from labwright.llm.stand_ins import OFFLINE_NAME
from labwright.paths import ProjectPaths
from labwright.settings import Settings

_CHECK_SECONDS = 10.0
_CHECK_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCheck:
    """The result of one small test request."""

    model: str
    ok: bool
    said: str
    hint: str = ""


class Models:
    """Wrong settings raise an error when they are applied. No SDK is loaded before the first request."""

    def __init__(self, paths: ProjectPaths, settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
        self._project = paths.project
        self._environ = environ
        self.use(settings)
        self.log = SpendingLog(paths.spending)
        self._has_state = paths.state.is_dir()  # reading alone must not create the folder

    def use(self, settings: Settings) -> None:
        """Apply new settings to the next requests. Requests in progress keep the old ones."""
        self._targets: TierTargets = self.targets(settings)
        self._settings = settings
        self._provider = self._make_provider(RetryPolicy.from_settings(settings)) if self._targets else None

    def targets(self, settings: Settings) -> TierTargets:
        """Return the models that these settings would choose, or raise Invalid."""
        return load_targets(self._project, settings, self._environ)

    def _make_provider(self, policy: RetryPolicy) -> ProviderChat:
        return ProviderChat(
            self._targets,
            policy,
            per_minute=self._settings.model_requests_per_minute,
            max_tokens=self._settings.model_max_tokens,
            environ=self._environ,
        )

    @property
    def configured(self) -> bool:
        return self._provider is not None

    @property
    def proposer(self) -> str:
        """The name of the default tier's model, or empty if no model is configured."""
        return self._targets[Tier.DEFAULT].name if self._targets else ""

    @property
    def key_variables(self) -> frozenset[str]:
        """The variables with keys, which no run may see."""
        return frozenset(target.endpoint.key_variable for target in self._targets.values())

    @property
    def limits(self) -> SpendingLimits:
        return SpendingLimits.from_settings(self._settings)

    def ledger(self, session_id: str) -> Ledger:
        return Ledger(self.log, session_id, self.limits)

    def chat(self, session_id: str, fallback: ChatModel) -> ChatModel:
        """Return a chat model whose calls count for this session, or `fallback` if no model is configured.

        The model raises `BudgetReached` at the session's spending limit.
        """
        return fallback if self._provider is None else self._metered(self._provider, session_id)

    def answers(self, session_id: str, prompts: Mapping[str, str], fallback: Model) -> Model:
        """Like `chat`, for structured questions."""
        if self._provider is None:
            return fallback
        return ChatAnswers(self._metered(self._provider, session_id), prompts)

    def _metered(self, provider: ProviderChat, session_id: str) -> MeteredChat:
        return MeteredChat(provider, self.ledger(session_id), provider.cost)

    def spent(self, session_id: str) -> dict[str, Any]:
        return _sums(self.log.of_session(session_id))

    def view(self) -> dict[str, Any]:
        """Return what anyone may see: the models, whether their keys exist, and the spending."""
        limits = self.limits
        return {
            "configured": self.configured,
            "tiers": [self._tier_view(tier, target) for tier, target in self._targets.items()],
            "offline": "" if self.configured else OFFLINE_NAME,
            "spent": _sums(self.log.total()),
            "session_limits": {"tokens": limits.tokens, "usd": limits.usd},
            "providers": [self._provider_view(endpoint) for endpoint in self.endpoints().values()],
        }

    def endpoints(self) -> dict[str, Endpoint]:
        return load_endpoints(self._project, self._environ)

    def _provider_view(self, endpoint: Endpoint) -> dict[str, Any]:
        usable, key_text, hint = self._key_status(endpoint)
        return {
            "name": endpoint.name,
            "address": endpoint.base_url,
            "needs_key": endpoint.needs_key,
            "key": key_text,
            "usable": usable,
            "hint": hint,
        }

    def _key_status(self, endpoint: Endpoint) -> tuple[bool, str, str]:
        """Return whether the key is usable, its source or the problem, and a hint how to fix it."""
        try:
            key = find_key(endpoint, self._environ)
        except ModelFault as fault:
            return False, fault.message, fault.hint
        return True, f"from {key.source}" if key else "none needed", ""

    def _tier_view(self, tier: Tier, target: Target) -> dict[str, Any]:
        usable, key_text, hint = self._key_status(target.endpoint)
        return {
            "tier": tier,
            "model": target.name,
            "address": target.endpoint.base_url,
            "key": key_text,
            "usable": usable,
            "hint": hint,
            "priced": is_priced(target),
            "spent": _sums(self.log.of_model(target.name)),
        }

    def check(self) -> list[ModelCheck]:
        """Send one small request to each model, with a short timeout and no retries. Blocks."""
        policy = RetryPolicy(silence_seconds=_CHECK_SECONDS, answer_seconds=_CHECK_SECONDS, retries=0)
        provider = self._make_provider(policy)
        ledger = Ledger(self.log, "doctor", SpendingLimits())
        chat = MeteredChat(provider, ledger, provider.cost) if self._has_state else provider
        tiers = {target.name: tier for tier, target in self._targets.items()}

        async def check_all() -> list[ModelCheck]:
            return await asyncio.gather(*(_check(chat, name, tier) for name, tier in tiers.items()))

        return asyncio.run(check_all())


async def _check(chat: ChatModel, name: str, tier: Tier) -> ModelCheck:
    question = ChatRequest(
        system="",
        messages=(ChatMessage(role="user", text="Answer with the one word: ready"),),
        tier=tier,
        max_tokens=_CHECK_TOKENS,
    )
    try:
        reply = await read_reply(chat, question)
    except ModelFault as fault:
        return ModelCheck(model=name, ok=False, said=fault.message, hint=fault.hint)
    return ModelCheck(model=name, ok=True, said=f"{name} answers, {reply.end.usage.tokens} tokens")


def _sums(spent: Spending) -> dict[str, Any]:
    return {name: value for name, value in asdict(spent).items() if not name.startswith("granted")}
