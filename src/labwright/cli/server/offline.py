"""The verbs that need no server, run as a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from labwright.domain.errors import LabwrightError


def run_without_server(verb: str, project: Path, **options: Path | None) -> Any:
    """Its answer; what it says on the way goes to standard error."""
    command = [sys.executable, "-P", "-m", "labwright.server.without_server", verb, "--project", str(project)]
    command += [word for name, value in options.items() if value for word in (f"--{name}", str(value))]
    child = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    try:
        answer = json.loads(child.stdout)
    except ValueError:
        raise LabwrightError(
            f"labwright.server.without_server {verb} ended with {child.returncode} and no answer."
        ) from None
    if child.returncode:
        error = LabwrightError(answer["error"]["message"], hint=answer["error"]["hint"])
        error.code = answer["error"]["code"]
        raise error
    return answer
