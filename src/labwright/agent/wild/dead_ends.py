"""What is not tried again: a configuration that this loop has tried, and one in a region where runs failed before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labwright.agent.wild.experiment import Experiment
from labwright.compute.lab import Lab
from labwright.domain.clock import now
from labwright.domain.wild import Wild
from labwright.services.runs import failures


def dead_end(lab: Lab, wild: Wild, experiment: Experiment, params: Mapping[str, Any]) -> str:
    """Why it is one; empty where nothing speaks against trying."""
    return _tried(wild, experiment, params) or _failed(lab, wild, experiment, params)


def _tried(wild: Wild, experiment: Experiment, params: Mapping[str, Any]) -> str:
    label = experiment.label(params)
    for iteration in wild.iterations:
        if not iteration.was_refused and experiment.label(iteration.params) == label:
            return f"the same configuration was tried in iteration {iteration.number}"
    return ""


def _failed(lab: Lab, wild: Wild, experiment: Experiment, params: Mapping[str, Any]) -> str:
    command = experiment.command(params, wild.seeds[0])
    found = failures.like(lab, command, params, ended_before=now())
    if found is None:
        return ""
    return f"{found['run_id']} failed in this region: {found['signature'].split(' < ')[0]}"
