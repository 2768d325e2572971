"""The contract of the ways to start a sidecar: `local/launcher.py` and `slurm/launcher.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from labwright.domain.run import Run


@dataclass(frozen=True, slots=True)
class Launch:
    """A run whose folder exists, and the variables that its job gets but no file holds."""

    run: Run
    variables: dict[str, str]


class Launcher(Protocol):
    name: str

    def launch(self, launches: Sequence[Launch]) -> None:
        """Start a sidecar for each run. A second call is harmless: the claim decides. Raises OSError."""

    def nudge(self, run: Run) -> None:
        """Notify a sidecar of a new file in its control folder."""

    def close(self) -> None:
        """End helper processes and threads. Runs continue."""
