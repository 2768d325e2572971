"""The next configuration of an adaptive sweep, from Optuna's TPE sampler.

`propose` is a pure function: the same history, sampling seed and number give the same configuration. So no state of
Optuna is stored, and a restarted server continues as before. Optuna is imported on first use: it takes a quarter of a
second and about 50 MB.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from labwright.domain.search.configurations import config_hash, draw_many
from labwright.domain.search.space import Choice, Config, Parameter, Space, applies, canonical

if TYPE_CHECKING:
    import optuna

_TRIES = 10  # attempts to get a new configuration from the sampler; then one is drawn at random
_CANDIDATES = 64  # candidates per proposal; with Optuna's 24, fewer sweeps end within 5 % of an optimum
_STARTUP = 10  # random configurations before the sampler models anything


class TrialState(StrEnum):
    OPEN = "open"
    DONE = "done"
    STOPPED_EARLY = "stopped_early"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration and its result, the mean over its seeds."""

    number: int
    config: Config
    state: TrialState
    value: float | None = None


def propose(space: Space, goal: str, history: Sequence[Trial], sampling_seed: int, number: int) -> Config | None:
    """Return a configuration that is not in the history, or None if the whole space has been tried."""
    known = {config_hash(trial.config) for trial in history}
    for attempt in range(_TRIES):
        config = _ask(space, goal, history, _seed(sampling_seed, number, attempt))
        if config_hash(config) not in known:
            return config
    drawn = draw_many(space, _seed(sampling_seed, number, _TRIES), 1, known)
    return drawn[0] if drawn else None


def _seed(sampling_seed: int, number: int, attempt: int) -> int:
    digest = hashlib.sha256(f"{sampling_seed} {number} {attempt}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def _ask(space: Space, goal: str, history: Sequence[Trial], seed: int) -> Config:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=seed,
            n_startup_trials=_STARTUP,
            n_ei_candidates=_CANDIDATES,
            multivariate=True,
            group=True,
            constant_liar=True,
        )
    study = optuna.create_study(direction="minimize" if goal == "min" else "maximize", sampler=sampler)
    for trial in sorted(history, key=lambda trial: trial.number):
        if optuna_trial := _as_optuna_trial(space, trial):
            study.add_trial(optuna_trial)
    next_trial = study.ask()
    config: Config = {}
    for parameter in space.parameters:
        if applies(parameter, config):
            config[parameter.name] = _suggested_value(next_trial, parameter)
    return config


def _suggested_value(trial: optuna.Trial, parameter: Parameter) -> Any:
    """Return the suggested value. Choices and steps go by index: Optuna takes plain values, and floats are inexact."""
    if isinstance(parameter, Choice):
        return parameter.values[trial.suggest_categorical(parameter.name, tuple(range(len(parameter.values))))]
    if parameter.step is not None:
        return parameter.grid()[trial.suggest_int(parameter.name, 0, (parameter.size or 1) - 1)]
    if parameter.whole:
        return trial.suggest_int(parameter.name, int(parameter.low), int(parameter.high), log=parameter.log)
    return parameter.snap(trial.suggest_float(parameter.name, parameter.low, parameter.high, log=parameter.log))


def _as_optuna_trial(space: Space, trial: Trial) -> optuna.trial.FrozenTrial | None:
    """Return the trial for Optuna, or None if the space was changed and no longer contains it."""
    from optuna.trial import TrialState as State
    from optuna.trial import create_trial

    params, distributions = {}, {}
    for parameter in space.parameters:
        if parameter.name not in trial.config:
            continue
        value = _number_of(parameter, trial.config[parameter.name])
        if value is None:
            return None
        params[parameter.name] = value
        distributions[parameter.name] = _distribution(parameter)
    facts: dict[str, Any] = {"params": params, "distributions": distributions}
    if trial.state is TrialState.DONE:
        return create_trial(state=State.COMPLETE, value=trial.value, **facts)
    if trial.state is TrialState.STOPPED_EARLY:
        return create_trial(state=State.PRUNED, intermediate_values={1: trial.value or 0.0}, **facts)
    return create_trial(state=State.RUNNING if trial.state is TrialState.OPEN else State.FAIL, **facts)


def _number_of(parameter: Parameter, value: Any) -> int | float | None:
    """Return the index or number that Optuna knows the value by, or None if the parameter does not allow it."""
    if isinstance(parameter, Choice):
        labels = [canonical(known) for known in parameter.values]
        return labels.index(canonical(value)) if canonical(value) in labels else None
    if not isinstance(value, int | float) or not parameter.low <= value <= parameter.high:
        return None
    if parameter.step is not None:
        return round((value - parameter.low) / parameter.step)
    return value


def _distribution(parameter: Parameter) -> optuna.distributions.BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(parameter, Choice):
        return CategoricalDistribution(tuple(range(len(parameter.values))))
    if parameter.step is not None:
        return IntDistribution(0, (parameter.size or 1) - 1)
    if parameter.whole:
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
