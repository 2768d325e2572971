"""A model that answers as its script says, and nothing beyond it."""

from __future__ import annotations

import pytest

from labwright.llm import Request, ScriptedModel


def ask(model: ScriptedModel, node: str) -> str:
    return model.answer(Request(node=node, wanted=str)).value


def test_answers_come_in_order_for_each_node_and_what_was_asked_is_kept() -> None:
    model = ScriptedModel({"Draft": ["one", "two"], "Check": ["three"]})
    assert [ask(model, "Draft"), ask(model, "Check"), ask(model, "Draft")] == ["one", "three", "two"]
    assert [request.node for request in model.asked] == ["Draft", "Check", "Draft"]


def test_beyond_the_script_another_model_answers_or_it_says_that_none_is_left() -> None:
    last = ScriptedModel({"Draft": ["from the other"]})
    model = ScriptedModel({"Draft": [ValueError("no JSON")]}, otherwise=last)
    with pytest.raises(ValueError, match="no JSON"):
        ask(model, "Draft")
    assert ask(model, "Draft") == "from the other"
    with pytest.raises(LookupError, match="no answer left for Draft"):
        ask(model, "Draft")
