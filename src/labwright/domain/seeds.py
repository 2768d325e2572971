"""Which runs are one configuration with several seeds. In doubt they are not: a mean of two things is no number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from labwright.domain.configurations import SEED
from labwright.domain.run import Run
from labwright.domain.space import canonical

_SEED_ARGUMENT = re.compile(r"(?:(?<!\S)--?[\w.-]*seed[\w-]*(?:\s+|=)|(?<![\w-])[\w.]*seed\w*=)\d+", re.IGNORECASE)


def without_seed(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != SEED}


def same_but_for_seed(runs: Iterable[Run]) -> list[list[Run]]:
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(_configuration(run), []).append(run)
    return list(groups.values())


def _configuration(run: Run) -> tuple[str, ...]:
    params = canonical(without_seed(run.params))
    if run.sweep_id is not None and run.trial is not None:  # its command is made of them, the seed at any place
        return params, run.sweep_id
    env = canonical({name: value for name, value in run.env.items() if SEED not in name.lower()})
    return params, _SEED_ARGUMENT.sub("", run.command), run.workdir, env, "" if _names_a_seed(run) else _code(run)


def _names_a_seed(run: Run) -> bool:
    return run.seed is not None or SEED in run.params or _SEED_ARGUMENT.search(run.command) is not None


def _code(run: Run) -> str:
    """Where no seed is named the code counts too: people change a line and run the same command again."""
    return str((run.snapshot or {}).get("hash", ""))
