"""What the server has to say of itself: `.labwright/logs/server.log`."""

from __future__ import annotations

import json
import logging
import logging.handlers
import sys

from labwright.domain.clock import rfc3339
from labwright.paths import ProjectPaths


class _ServerLog(logging.handlers.RotatingFileHandler):
    """On a full disk lines are left out: telling each on stderr would block us once nobody reads there."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - its name in the standard library
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, object] = {
            "time": rfc3339(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "thread": record.threadName,
        }
        if record.exc_info:
            facts["traceback"] = self.formatException(record.exc_info)
        return json.dumps(facts, ensure_ascii=False)


def log_to_file(paths: ProjectPaths, *, as_json: bool) -> None:
    handler = _ServerLog(paths.server_log, maxBytes=10 << 20, backupCount=3)
    words = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(_JsonLines() if as_json else words)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
