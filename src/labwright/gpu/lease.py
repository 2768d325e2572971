"""Leases: an flock on one file per GPU, in one directory per machine, inherited by the job.

Leases are cooperative: they do not stop a process that takes none. The driver check finds such processes.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from labwright.domain import clock
from labwright.domain.errors import Invalid
from labwright.domain.gpu import LeaseHolder, Waiter, kept_for_others, pick_gpus
from labwright.gpu import lease_dir
from labwright.gpu.tickets import Ticket, waiters_ahead

_UUID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9-]{0,99}$")
_SUFFIX = ".lease"


class Lease:
    """GPUs held by this process and by every process that inherited the descriptors."""

    def __init__(self, held: dict[str, int]) -> None:
        self._held = held
        self.uuids = tuple(held)

    @property
    def fds(self) -> tuple[int, ...]:
        return tuple(self._held.values())

    def make_inheritable(self) -> None:
        """Let the job inherit the locks, so that its GPUs stay locked even if this process is killed."""
        for descriptor in self._held.values():
            os.set_inheritable(descriptor, True)

    def release(self) -> None:
        """Free the GPUs now, even if a stray child still has the descriptors."""
        while self._held:
            _, descriptor = self._held.popitem()
            try:
                os.ftruncate(descriptor, 0)
            finally:
                lease_dir.unlock(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contended:
    """Why there was no lease: GPUs that others hold, and free GPUs that are reserved for older waiters."""

    holders: dict[str, LeaseHolder] = field(default_factory=dict)
    kept: dict[str, Waiter] = field(default_factory=dict)


class LeaseWaiter:
    """Take `count` GPUs at once or none, in turn with all other waiters on the machine."""

    def __init__(self, directory: str, *, run_id: str, user: str, count: int, ageing_seconds: float) -> None:
        self._directory = directory
        waiter = Waiter(
            run_id=run_id, user=user, count=count, usable=(), since=time.time(), ageing_seconds=ageing_seconds
        )
        self._ticket = Ticket(waiter)

    def try_take(self, usable: Sequence[str]) -> Lease | Contended:
        """Try once. `usable` are the acceptable GPUs, the best first. The caller repeats the call to wait."""
        with lease_dir.locked(self._directory) as directory, _Cards(directory, usable) as cards:
            kept = self._kept(directory, tuple(cards.free))
            mine = pick_gpus(tuple(cards.free), kept, self._ticket.waiter.count)
            if not mine:
                self._ticket.show(directory, tuple(usable))
                return Contended(holders=cards.taken, kept=kept)
            if self._ticket.is_filed:
                self._ticket.show(
                    directory, ()
                )  # requests nothing more but keeps its age, in case the driver check fails
            return cards.keep(mine, self._ticket.waiter.run_id, self._ticket.waiter.user)

    def close(self) -> None:
        """Leave the queue."""
        if not self._ticket.is_filed:
            return
        try:
            with lease_dir.locked(self._directory) as directory:
                self._ticket.drop(directory)
        except lease_dir.LeaseDirError:
            self._ticket.abandon()  # an unlocked ticket no longer counts

    def _kept(self, directory: int, free: tuple[str, ...]) -> dict[str, Waiter]:
        if not free:
            return {}  # the usual case: no free GPU, so no ticket needs to be read
        return kept_for_others(free, waiters_ahead(directory, self._ticket), time.time())


def take_named(directory: str, uuids: Sequence[str], *, run_id: str, user: str) -> tuple[Lease, dict[str, LeaseHolder]]:
    """Take the free ones of these GPUs out of turn, and return who holds the others. The command uses all of them."""
    with lease_dir.locked(directory) as opened, _Cards(opened, uuids) as cards:
        return cards.keep(tuple(cards.free), run_id, user), cards.taken


def check(directory: str) -> None:
    """Raise the error that the next lease would raise, also for the file of a single GPU."""
    lease_dir.check(directory)
    if not lease_dir.exists(directory):
        return
    with lease_dir.locked(directory, create=False) as opened:
        for name in os.listdir(opened):
            if name.endswith(_SUFFIX):
                os.close(lease_dir.open_plain(opened, name, os.O_RDWR))


def holders(directory: str) -> dict[str, LeaseHolder]:
    """Return the holder of each leased GPU, judged by the locks alone. Text without a lock is not a lease.

    Testing a lock can make a concurrent attempt fail, and inside a container /proc/locks hides locks whose taker has
    died. So the test runs under the mutex, where no other attempt can run.
    """
    if not lease_dir.exists(directory):
        return {}
    with lease_dir.locked(directory, create=False) as opened, _Cards(opened, _leased_once(opened)) as cards:
        return cards.taken


class _Cards:
    """GPUs under the mutex: the free ones, locked during the check, and the holders of the others."""

    def __init__(self, directory: int, uuids: Iterable[str]) -> None:
        self.free: dict[str, int] = {}
        self.taken: dict[str, LeaseHolder] = {}
        self._directory = directory
        self._uuids = uuids

    def __enter__(self) -> _Cards:
        try:
            for uuid in self._uuids:
                self._check_gpu(uuid)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while self.free:
            lease_dir.unlock(self.free.popitem()[1])

    def keep(self, uuids: Sequence[str], run_id: str, user: str) -> Lease:
        holder = LeaseHolder(run_id=run_id, user=user, pid=os.getpid(), since=clock.now())
        for uuid in uuids:
            lease_dir.write_object(self.free[uuid], asdict(holder))
        return Lease({uuid: self.free.pop(uuid) for uuid in uuids})

    def _check_gpu(self, uuid: str) -> None:
        name = _file_name(uuid)
        descriptor = lease_dir.open_shared(self._directory, name)
        while lease_dir.try_lock(descriptor):
            if lease_dir.is_current(self._directory, name, descriptor):
                self.free[uuid] = descriptor
                return
            lease_dir.unlock(descriptor)  # the file was removed in the meantime: its lock would protect nothing
            descriptor = lease_dir.open_shared(self._directory, name)
        self.taken[uuid] = _holder_from(lease_dir.read_object(descriptor))
        os.close(descriptor)


def _file_name(uuid: str) -> str:
    if not _UUID.match(uuid):
        raise Invalid(f"{lease_dir.clean(uuid)!r} is not a GPU UUID.")
    return f"{uuid}{_SUFFIX}"


def _leased_once(directory: int) -> list[str]:
    """Return the GPUs that have a usable lease file.

    Links, and files that we may not open, do not count: a request for that GPU reports the problem.
    """
    uuids = []
    for name in sorted(os.listdir(directory)):
        uuid = name.removesuffix(_SUFFIX)
        if uuid == name or not _UUID.match(uuid):
            continue
        facts = os.stat(name, dir_fd=directory, follow_symlinks=False)
        is_plain = stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1
        if is_plain and os.access(name, os.R_OK | os.W_OK, dir_fd=directory):
            uuids.append(uuid)
    return uuids


def _holder_from(data: dict[str, Any]) -> LeaseHolder:
    pid = data.get("pid")
    return LeaseHolder(
        run_id=lease_dir.clean(data.get("run_id")),
        user=lease_dir.clean(data.get("user")),
        pid=pid if type(pid) is int else 0,
        since=lease_dir.clean(data.get("since")),
    )
