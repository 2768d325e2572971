"""The GPU queue: one ticket file per waiter, locked while it is alive and touched while it is awake.

Everything here runs with the lease directory's mutex held.
"""

from __future__ import annotations

import math
import os
import re
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

from labwright.domain.gpu import Waiter
from labwright.gpu import lease_dir

QUEUE = "queue"
SILENT_SECONDS = 10.0  # a waiter without a heartbeat for this long (stopped, swapped out) blocks nobody
_HEARTBEAT_SECONDS = 1.0
_SHAPE = re.compile(r"^(\d{20})-[0-9a-f]{8}$")
_MAX_COUNT = 1024


class Ticket:
    """This process's place in the queue. The name contains its age, so a sorted listing is the queue order."""

    def __init__(self, waiter: Waiter) -> None:
        self.waiter = waiter
        self.name = f"{int(waiter.since * 1e9):020d}-{os.urandom(4).hex()}"
        self._descriptor = -1
        self._touched = 0.0

    @property
    def is_filed(self) -> bool:
        return self._descriptor >= 0

    def show(self, directory: int, usable: tuple[str, ...]) -> None:
        """File the ticket, update the acceptable GPUs, or refresh the heartbeat."""
        queue = lease_dir.open_subdirectory(directory, QUEUE)
        try:
            if not self.is_filed or not lease_dir.is_current(queue, self.name, self._descriptor):
                self.abandon()
                self._descriptor = lease_dir.create_plain(queue, self.name, 0o644)
                lease_dir.try_lock(self._descriptor)
                self._write(usable)
            elif usable != self.waiter.usable:
                self._write(usable)
            elif time.monotonic() - self._touched > _HEARTBEAT_SECONDS:
                self._touch()
        finally:
            os.close(queue)

    def drop(self, directory: int) -> None:
        if not self.is_filed:
            return
        queue = lease_dir.open_subdirectory(directory, QUEUE)
        try:
            with suppress(FileNotFoundError):  # someone else removed it already
                os.unlink(self.name, dir_fd=queue)
        finally:
            os.close(queue)
            self.abandon()

    def abandon(self) -> None:
        """Unlock the file and leave it. The next waiter removes it."""
        if self.is_filed:
            lease_dir.unlock(self._descriptor)
            self._descriptor = -1

    def _write(self, usable: tuple[str, ...]) -> None:
        self.waiter = replace(self.waiter, usable=usable)
        ticket = {
            "run_id": self.waiter.run_id,
            "user": self.waiter.user,
            "count": self.waiter.count,
            "usable": list(usable),
            "ageing_seconds": self.waiter.ageing_seconds,
        }
        lease_dir.write_object(self._descriptor, ticket)
        self._touch()

    def _touch(self) -> None:
        os.utime(self._descriptor)
        self._touched = time.monotonic()


def waiters_ahead(directory: int, own: Ticket) -> list[Waiter]:
    """Return all earlier waiters that are alive and awake, oldest first. Tickets of dead processes are removed."""
    try:
        queue = os.open(QUEUE, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return []
    try:
        names = sorted(name for name in os.listdir(queue) if _SHAPE.match(name) and name < own.name)
        waiters = [_read(queue, name) for name in names]
    finally:
        os.close(queue)
    return [waiter for waiter in waiters if waiter]


def _read(queue: int, name: str) -> Waiter | None:
    try:
        descriptor = lease_dir.open_plain(queue, name, os.O_RDONLY)
    except OSError:
        return None  # a link, a FIFO or unreadable: not a valid ticket
    try:
        if lease_dir.try_lock(descriptor):
            with suppress(PermissionError, FileNotFoundError):  # another user's ticket, which no longer counts anyway
                os.unlink(name, dir_fd=queue)
            return None
        if time.time() - os.fstat(descriptor).st_mtime > SILENT_SECONDS:
            return None
        return _from_dict(lease_dir.read_object(descriptor), since=int(name[:20]) / 1e9)
    finally:
        os.close(descriptor)


def _from_dict(data: dict[str, Any], since: float) -> Waiter | None:
    count, usable, ageing = data.get("count"), data.get("usable"), data.get("ageing_seconds")
    if type(count) is not int or not 0 < count <= _MAX_COUNT or not isinstance(usable, list):
        return None
    if not isinstance(ageing, int | float) or not math.isfinite(ageing):
        return None
    return Waiter(
        run_id=lease_dir.clean(data.get("run_id")),
        user=lease_dir.clean(data.get("user")),
        count=count,
        usable=tuple(lease_dir.clean(uuid) for uuid in usable[:_MAX_COUNT]),
        since=since,
        ageing_seconds=ageing,
    )
