"""Proposals without a language model: a plain adaptive search by Optuna, and what a person's words ask for.

Pure in the loop's record: after a kill the same record gives the same proposal.
"""

from __future__ import annotations

import hashlib
from typing import Any

from labwright.agent.wild.experiment import Experiment
from labwright.agent.wild.goal import steered
from labwright.agent.wild.proposal import NothingLeft, Proposal
from labwright.compute.lab import Lab
from labwright.domain.search.space import Space, parse_space
from labwright.domain.wild import Iteration, Wild
from labwright.planning.results.words import params_text
from labwright.planning.scan import scan_project
from labwright.services.sweeps.adaptive import Trial, TrialState, propose


def next_proposal(lab: Lab, wild: Wild, experiment: Experiment) -> Proposal | NothingLeft:
    assert wild.best is not None
    waiting = [said for said in wild.steering if said["taken_in"] is None]
    parameters = wild.parameters
    for place, said in enumerate(waiting, 1):
        searched, values = steered(said["text"], scan_project(lab.paths.project), wild.script)
        parameters = {**parameters, **searched}
        if values:
            return _asked_for(wild, experiment, values, said["text"], parameters, place)
    space = parse_space(parameters)
    config = propose(space, wild.metric["goal"], _history(wild, space), _seed(wild), len(wild.iterations))
    if config is None:
        return NothingLeft(reason="every configuration of the search space was tried", taken=len(waiting))
    return Proposal(
        hypothesis=f"{params_text(config)} may do better (adaptive search, no language model)",
        change=_beside(config, wild.best["params"]),
        params=config,
        parent=wild.best["number"],
        parameters=parameters,
        taken=len(waiting),
    )


def _asked_for(
    wild: Wild, experiment: Experiment, values: dict[str, Any], text: str, parameters: dict[str, Any], place: int
) -> Proposal:
    assert wild.best is not None
    return Proposal(
        hypothesis=f"asked for: {text}",
        change=values,
        params={**wild.best["params"], **values},
        parent=wild.best["number"],
        fault=experiment.fault_in(values),
        parameters=parameters,
        taken=place,
    )


def _beside(config: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if params.get(name) != value} or config


def _seed(wild: Wild) -> int:
    return int.from_bytes(hashlib.sha256(wild.id.encode()).digest()[:4], "big")


def _history(wild: Wild, space: Space) -> list[Trial]:
    """Those that have a value for all that is searched now."""
    fitting = [one for one in wild.iterations if set(space.names) <= one.params.keys()]
    return [_trial(iteration, space) for iteration in fitting]


def _trial(iteration: Iteration, space: Space) -> Trial:
    config = {name: iteration.params[name] for name in space.names}
    if iteration.is_open:
        return Trial(iteration.number, config, TrialState.OPEN)
    mean = (iteration.result or {}).get("mean")
    if mean is None:
        return Trial(iteration.number, config, TrialState.FAILED)
    return Trial(iteration.number, config, TrialState.DONE, mean)
