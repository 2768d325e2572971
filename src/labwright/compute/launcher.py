"""Ways to start a sidecar. All of them meet the same contract (`Launcher`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from labwright.domain.run import Run


@dataclass(frozen=True, slots=True)
class Launch:
    """A run whose folder is made, and the variables that go to its job but into no file."""

    run: Run
    variables: dict[str, str]


class Launcher(Protocol):
    name: str

    def launch(self, launches: Sequence[Launch]) -> None:
        """Start a sidecar for each. Calling twice is harmless: the claim decides. Raises OSError if it cannot now."""

    def nudge(self, run: Run) -> None:
        """Tell a sidecar that there is something new in its control folder."""

    def close(self) -> None:
        """Let go of helpers; runs go on."""
