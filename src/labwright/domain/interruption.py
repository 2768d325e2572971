"""Whether a run's end was its own doing, as far as its exit tells."""

from __future__ import annotations

import signal
from typing import Any


def may_be_slurms_doing(facts: dict[str, Any]) -> bool:
    """A job that was told to end, or killed, has not ended for a reason that its sidecar could know."""
    killed = facts["reason"] == "exit_code" and facts["signal"] == signal.SIGKILL
    return killed or bool(facts["reason"] == "terminated")
