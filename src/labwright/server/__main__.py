"""`python -m labwright.server`: what `labwright up` starts. People use `labwright up`."""

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
    """FastAPI imports more than we use: 3 MB less, and a quicker start.

    It looks for models of pydantic's first version, and copes where that cannot be imported. Its own models of OpenAPI
    are built when `/openapi.json` is first asked for.
    """
    sys.modules["pydantic.v1"] = None  # type: ignore[assignment]
    from pydantic import BaseModel

    BaseModel.model_config["defer_build"] = True
    import fastapi  # noqa: F401

    del BaseModel.model_config["defer_build"]


if __name__ == "__main__":
    main()
