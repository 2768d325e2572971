"""All sources of one run, looked at together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from labwright.domain.gpu import Gpu
from labwright.paths import RunPaths
from labwright.sidecar.record import RunRecord
from labwright.sidecar.sources.metric_file import MetricFile
from labwright.sidecar.sources.output import OutputSource, is_worth_a_look
from labwright.sidecar.sources.start import Start, declared_files
from labwright.sidecar.sources.system import SystemSource
from labwright.sidecar.sources.workdir_files import WorkdirFiles

_SYSTEM_SECONDS = 5.0
_COUNT_SECONDS = 5.0


class RunMetrics:
    def __init__(
        self,
        paths: RunPaths,
        spec: dict[str, Any],
        record: RunRecord,
        start: Start,
        tree: Callable[[], set[int]],
        hear: Callable[[bytes], None],
    ) -> None:
        attempt: int = spec["run"]["attempt"]
        options = spec["sidecar"].get("metrics", {})
        self._record = record
        self._count_at = 0.0
        self._output_file = MetricFile(paths.metrics, "output", attempt)
        self._system_file = MetricFile(paths.metrics, "system", attempt)
        began = (start.sizes.get(os.path.realpath(paths.output), (0, 0))[1], 0)
        self._output = OutputSource(paths.output, self._output_file, options, began, hear, start.time)
        self._files = WorkdirFiles(paths, spec, start, tree)
        seconds = options.get("system_seconds", _SYSTEM_SECONDS)
        self._system = SystemSource(self._system_file, start.time, seconds, spec["sidecar"]["workdir"], tree)

    def look(self, *, last: bool = False) -> bool:
        """Answers whether there is more to read."""
        more = self._output.look(last=last)
        self._files.look(last=last)
        self._system.look()
        self._count_refused(last)
        self._flush()
        return more

    @property
    def output_read_to(self) -> int:
        return self._output.read_to

    def pass_output_over(self, end: int) -> None:
        """What lies before it is about to be dropped. Said first: whoever is killed in between has not hidden it."""
        self._output.pass_over(end)
        self._flush()

    def _count_refused(self, last: bool) -> None:
        if last or time.monotonic() >= self._count_at:
            self._count_at = time.monotonic() + _COUNT_SECONDS
            for file in self._all_files():
                file.tell_refused_again(time.time())

    def add_cards(self, cards: list[Gpu]) -> None:
        self._system.add_cards(cards)
        self._flush()

    @property
    def is_behind(self) -> bool:
        """Something could not be written yet: the disk is full."""
        return any(file.is_behind for file in self._all_files())

    def _all_files(self) -> list[MetricFile]:
        return [self._output_file, self._system_file, *self._files.files()]

    def _flush(self) -> None:
        written = [file.flush() for file in self._all_files()]
        if any(written):
            self._record.wake_server("metrics")


def has_something_to_take(paths: RunPaths, spec: dict[str, Any]) -> bool:
    """Whether a command that ended before anybody watched left something that should be read."""
    logged = os.path.isdir(paths.metrics) and bool(os.listdir(paths.metrics))  # for the alert rules
    return logged or is_worth_a_look(paths.output, spec["sidecar"].get("metrics", {})) or bool(declared_files(spec))
