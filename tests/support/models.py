"""A real chat model adapter in front of a fake provider, with short timeouts."""

from __future__ import annotations

from labwright.llm import Tier
from labwright.llm.choice import Prices, Target
from labwright.llm.endpoints import Endpoint, Wire
from labwright.llm.provider import ProviderChat, RetryPolicy
from tests.support.model_server import ModelServer

KEY = "sk-fake-0123456789"
PRICES = Prices(fresh=10.0, out=100.0, cache_read=1.0, cache_write=12.0)


def endpoint(server: ModelServer, wire: str) -> Endpoint:
    base_url = server.url if wire == Wire.ANTHROPIC else f"{server.url}/v1"
    return Endpoint(name="fake", wire=Wire(wire), base_url=base_url, key_variable="FAKE_KEY", needs_key=True)


def provider(
    server: ModelServer, wire: str, *, retries: int = 2, silence: float = 5.0, answer: float = 20.0, per_minute: int = 0
) -> ProviderChat:
    place = endpoint(server, wire)
    choice = {tier: Target(endpoint=place, model=f"{tier}-model", prices=PRICES) for tier in Tier}
    patience = RetryPolicy(silence_seconds=silence, answer_seconds=answer, retries=retries, first_pause_seconds=0.01)
    return ProviderChat(choice, patience, per_minute=per_minute, environ={"FAKE_KEY": KEY, "HOME": "/nonexistent"})
