"""Proposals by a language model: an idea and a change of flags. The server checks both, and the numbers are its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from labwright.agent.wild.experiment import Experiment
from labwright.agent.wild.proposal import NothingLeft, Proposal
from labwright.domain.wild import Iteration, Wild
from labwright.llm.model import Model, ModelAnswer, Request

NODE = "ProposeExperiment"
_SHOWN = 30  # iterations, newest last
_WORDS = 2000
PROMPTS: Mapping[str, str] = {
    NODE: """\
You are one step of a loop that improves a machine-learning experiment by running it. You see the goal, the flags of the
script, the baseline with its noise, the best so far, and what was tried and what came of it. Propose the one experiment
that would tell most about how to reach the goal.

- `hypothesis`: one or two sentences: what you expect and why, from what was tried. Name no measured numbers of your
  own; they are looked up from the runs.
- `change`: flags with new values, beside those of the best so far. Few at a time, so that the result says something.
- Only flags from `flags`, with values of their type or among their choices.
- What was tried, or lies where runs failed, is refused: read the decisions.
- What a person said (`steering`) goes before your own ideas, as long as it is about the experiment.
- `nothing_left`: true only if no change of these flags has a fair chance; say why in `hypothesis`.
Whether the goal is met is not yours to say: it is measured."""
}


class ProposedExperiment(BaseModel):
    """The next experiment."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    hypothesis: str = Field(min_length=1, max_length=_WORDS)
    change: dict[str, bool | int | float | str] = Field(default_factory=dict, max_length=20)
    nothing_left: bool = False


def next_proposal(model: Model, wild: Wild, experiment: Experiment) -> Proposal | NothingLeft:
    assert wild.best is not None
    waiting = [said["text"] for said in wild.steering if said["taken_in"] is None]
    answer: ModelAnswer[ProposedExperiment] = model.answer(
        Request(
            node=NODE,
            value_type=ProposedExperiment,
            given=_given(wild, experiment, waiting),
            feedback=_refused_last(wild),
        )
    )
    found = answer.value
    if found.nothing_left:
        return NothingLeft(reason=f"the model sees nothing left to try: {found.hypothesis}", taken=len(waiting))
    fault = experiment.fault_in(found.change) if found.change else "It changes nothing."
    params = {**experiment.defaults(found.change), **wild.best["params"], **found.change}
    return Proposal(
        hypothesis=found.hypothesis,
        change=dict(found.change),
        params=params,
        parent=wild.best["number"],
        fault=fault,
        taken=len(waiting),
    )


def _given(wild: Wild, experiment: Experiment, steering: list[str]) -> dict[str, Any]:
    flags = [flag for flag in experiment.entry.flags if flag.name in experiment.changeable]
    shown = ("name", "type", "default", "choices", "help")
    return {
        "goal": wild.goal,
        "criterion": wild.criterion["text"],
        "metric": {"key": wild.metric["key"], "better": "more" if wild.metric["goal"] == "max" else "less"},
        "flags": [{name: getattr(flag, name) for name in shown} for flag in flags],
        "fixed": dict(experiment.fixed),
        "baseline": wild.baseline,
        "best": wild.best,
        "tried": [_tried(iteration) for iteration in wild.iterations[-_SHOWN:]],
        "budget": wild.budget,
        "used": {"runs": sum(iteration.made for iteration in wild.iterations)},
        "steering": steering,
    }


def _tried(iteration: Iteration) -> dict[str, Any]:
    shown = ("number", "parent", "hypothesis", "change", "result", "decision")
    return {name: getattr(iteration, name) for name in shown}


def _refused_last(wild: Wild) -> str:
    last = wild.iterations[-1]
    return f"Your last proposal was refused: {last.decision['reason']}" if last.was_refused and last.decision else ""
