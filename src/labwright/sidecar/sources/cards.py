"""Ask the driver about the run's cards now and then, beside everything else: it may take seconds, or never answer."""

from __future__ import annotations

import threading
import time
from typing import Any

from labwright.gpu.probe import Detection, run_detector

_LOOK_SECONDS = 10.0
_PATIENCE_SECONDS = 10.0


class CardWatch:
    def __init__(self, gpu_options: dict[str, Any] | None) -> None:
        self._options = gpu_options
        self._look_at = time.monotonic() + _LOOK_SECONDS
        self._thread: threading.Thread | None = None
        self._found: Detection | None = None

    def poll(self) -> Detection | None:
        """What a look has brought since the last call."""
        if self._options is None:
            return None
        if self._thread is None and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_SECONDS
            self._thread = threading.Thread(target=self._look, args=(self._options,), daemon=True)
            self._thread.start()
        if self._thread is None or self._thread.is_alive():
            return None
        self._thread = None
        return self._found

    def _look(self, options: dict[str, Any]) -> None:
        self._found = run_detector(timeout=_PATIENCE_SECONDS, samples=1, pynvml_dir=options.get("pynvml_dir"))
