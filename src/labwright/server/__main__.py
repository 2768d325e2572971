"""`python -m labwright.server`: the process that `labwright up` starts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from labwright.domain.errors import LabwrightError


def main() -> None:
    _start_small()
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


def _start_small() -> None:
    """Import FastAPI without parts that the server does not use. This saves 3 MB and start time.

    FastAPI works without pydantic v1. Its OpenAPI models are built when `/openapi.json` is first requested.
    """
    sys.modules["pydantic.v1"] = None  # type: ignore[assignment]
    from pydantic import BaseModel

    BaseModel.model_config["defer_build"] = True
    import fastapi  # noqa: F401

    del BaseModel.model_config["defer_build"]


if __name__ == "__main__":
    main()
