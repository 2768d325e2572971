"""Orders to Slurm that went wrong in a way nobody foresaw: logged, and told in /health until they are over."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from labwright.domain.run import Run

log = logging.getLogger(__name__)


class Faults:
    def __init__(self) -> None:
        self._words: dict[str, str] = {}  # by run

    def note(self, runs: Iterable[Run], error: Exception) -> str:
        words = f"An order to Slurm failed unexpectedly: {error!r}."
        log.error("%s", words, exc_info=True)
        self._words.update({run.id: words for run in runs})
        return words

    def over(self, run_ids: Iterable[str]) -> None:
        """The order was carried out after all, or its run has ended."""
        for run_id in run_ids:
            self._words.pop(run_id, None)

    def over_but_for(self, run_ids: Collection[str]) -> None:
        self.over(self._words.keys() - run_ids)

    @property
    def first(self) -> str:
        return next(iter(list(self._words.values())), "")
