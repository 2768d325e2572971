"""The model that is none: fixed rules answer what they cover, and say so. Needs no key, no network, costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from labwright.domain.errors import Invalid
from labwright.llm.model import Answer, Request, Value

Rule = Callable[[Request[Any]], Any]
NAME = "offline rules (not a language model)"


class NoRule(Invalid):
    """No rule covers this; a language model is needed for it."""


class OfflineModel:
    name = NAME

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = dict(rules)  # by the node that asks

    def answer(self, request: Request[Value]) -> Answer[Value]:
        rule = self._rules.get(request.node)
        if rule is None:
            raise NoRule(f"The offline rules have no answer for {request.node}.", hint="Configure a language model.")
        value = rule(request)
        if not isinstance(value, request.wanted):
            raise TypeError(f"the rule for {request.node} gave {type(value).__name__}, not {request.wanted.__name__}")
        return Answer(value=value, model=self.name)
