"""What the server has to say of itself: `.labwright/logs/server.log`."""

from __future__ import annotations

import logging
import logging.handlers
import sys

from labwright.paths import ProjectPaths


class _ServerLog(logging.handlers.RotatingFileHandler):
    """On a full disk lines are left out: telling each on stderr would block us once nobody reads there."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - its name in the standard library
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


def log_to_file(paths: ProjectPaths) -> None:
    handler = _ServerLog(paths.server_log, maxBytes=10 << 20, backupCount=3)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
