"""`python -m labwright.server`: what `labwright up` starts. People use `labwright up`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from labwright.domain.errors import LabwrightError


def main() -> None:
    _do_without_old_pydantic()
    from labwright.server.boot import serve

    parser = argparse.ArgumentParser(prog="labwright.server")
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    options = parser.parse_args()
    try:
        serve(options.project.resolve(), options.host, options.port)
    except LabwrightError as error:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        print(f"error: {error.message}{hint}", file=sys.stderr)
        sys.exit(1)


def _do_without_old_pydantic() -> None:
    """FastAPI looks for models of pydantic's first version and copes where it cannot be imported: 2 MB less, always."""
    sys.modules["pydantic.v1"] = None  # type: ignore[assignment]


if __name__ == "__main__":
    main()
