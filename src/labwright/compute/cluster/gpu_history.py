"""Sample the GPUs every 15 seconds and keep the samples over a restart: one line per sample in one file."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from labwright.domain.gpu import Gpu, GpuMoment, GpuTrace, gpu_traces
from labwright.files import all_lines, append_whole, write_whole

log = logging.getLogger(__name__)
SAMPLE_SECONDS = 15.0
KEPT_SECONDS = 12 * 3600.0
_MOST = int(KEPT_SECONDS / SAMPLE_SECONDS)


class GpuHistory:
    """`sample` returns the current GPUs, or none if the driver does not respond."""

    def __init__(self, path: Path, sample: Callable[[], Iterable[Gpu]]) -> None:
        self._path = path
        self._sample = sample
        self._moments: deque[GpuMoment] = deque(maxlen=_MOST)
        self._lines = 0
        self._changing = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="gpu-history", daemon=True)

    def start(self) -> None:
        """Read the samples of the previous server, then start the thread. Skip lines that are not valid."""
        now = time.time()
        lines, _ = all_lines(str(self._path))
        for line in lines:
            try:
                moment = GpuMoment.from_dict(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
            if now - KEPT_SECONDS < moment.at <= now:
                self._moments.append(moment)
        self._lines = len(lines)
        self._thread.start()

    def close(self) -> None:
        """Ask the thread to end. Do not wait for it: the driver may take long."""
        self._closing.set()

    def read(self, seconds: float, points: int) -> list[GpuTrace]:
        until = time.time()
        with self._changing:
            moments = list(self._moments)
        return gpu_traces(moments, until - seconds, until, points)

    def note(self, at: float) -> None:
        """Take a sample. It is written before `read` can return it, so a kill loses nothing that was shown."""
        moment = GpuMoment.of(self._sample(), at)
        if not moment.cards:
            return
        try:
            self._write(moment)
        finally:  # on a full disk it is kept in memory only
            with self._changing:
                self._moments.append(moment)

    def _loop(self) -> None:
        while not self._closing.is_set():
            try:
                self.note(time.time())
            except OSError as error:  # a full disk, or no free process; the next sample may work
                log.warning("the GPU sample could not be written: %s", error)
            self._closing.wait(SAMPLE_SECONDS)

    def _write(self, moment: GpuMoment) -> None:
        """Append the sample. Rewrite the file once it has twice as many lines as are kept."""
        if self._lines >= 2 * _MOST:
            kept = [*self._moments, moment][-_MOST:]
            write_whole(self._path, b"".join(map(_line, kept)), sync=False)
            self._lines = len(kept)
            return
        fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            append_whole(fd, _line(moment))
        finally:
            os.close(fd)
        self._lines += 1


def _line(moment: GpuMoment) -> bytes:
    return json.dumps(moment.to_dict(), separators=(",", ":")).encode() + b"\n"
