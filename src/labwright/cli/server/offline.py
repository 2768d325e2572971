"""Run commands that need no server, in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from labwright.domain.errors import LabwrightError


def run_without_server(verb: str, project: Path, **options: Path | None) -> Any:
    """Return the result of the command. Its messages go to standard error."""
    command = [sys.executable, "-P", "-m", "labwright.server.without_server", verb, "--project", str(project)]
    command += [word for name, value in options.items() if value for word in (f"--{name}", str(value))]
    child = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    try:
        result = json.loads(child.stdout)
    except ValueError:
        raise LabwrightError(
            f"labwright.server.without_server {verb} exited with {child.returncode} and no result."
        ) from None
    if child.returncode:
        error = LabwrightError(result["error"]["message"], hint=result["error"]["hint"])
        error.code = result["error"]["code"]
        raise error
    return result
