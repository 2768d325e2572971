"""Ways to start a sidecar. All of them meet the same contract (`Launcher`)."""

from __future__ import annotations

from typing import Protocol

from labwright.domain.run import Run


class Launcher(Protocol):
    name: str

    def launch(self, run: Run, variables: dict[str, str]) -> None:
        """Start the sidecar of a run whose folder is made. Calling twice is harmless: the claim decides."""

    def nudge(self, run: Run) -> None:
        """Tell a sidecar that there is something new in its control folder."""

    def close(self) -> None:
        """Let go of helpers; runs go on."""
