"""Leases: an flock on one file a GPU, in a directory for the whole machine, inherited by the job.

Cooperative: a process that takes no lease is not kept off a card; the driver check is for those.
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
    """Cards held by this process and by whoever inherited the descriptors."""

    def __init__(self, held: dict[str, int]) -> None:
        self._held = held
        self.uuids = tuple(held)

    @property
    def fds(self) -> tuple[int, ...]:
        return tuple(self._held.values())

    def make_inheritable(self) -> None:
        """The job then keeps its cards locked even if this process is killed."""
        for descriptor in self._held.values():
            os.set_inheritable(descriptor, True)

    def release(self) -> None:
        """Free the cards now, although a stray child may still have the descriptors."""
        while self._held:
            _, descriptor = self._held.popitem()
            try:
                os.ftruncate(descriptor, 0)
            finally:
                lease_dir.unlock(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contended:
    """Why there was no lease: cards that others hold, and free ones that older waiters come first for."""

    holders: dict[str, LeaseHolder] = field(default_factory=dict)
    kept: dict[str, Waiter] = field(default_factory=dict)


class LeaseWaiter:
    """Takes `count` cards at once or none, in turn with everyone else on the machine who waits."""

    def __init__(self, directory: str, *, run_id: str, user: str, count: int, ageing_seconds: float) -> None:
        self._directory = directory
        waiter = Waiter(
            run_id=run_id, user=user, count=count, usable=(), since=time.time(), ageing_seconds=ageing_seconds
        )
        self._ticket = Ticket(waiter)

    def try_take(self, usable: Sequence[str]) -> Lease | Contended:
        """One look; `usable` are the cards that would do, the best first. Waiting is the caller's loop."""
        with lease_dir.locked(self._directory) as directory, _Cards(directory, usable) as cards:
            kept = self._kept(directory, tuple(cards.free))
            mine = pick_gpus(tuple(cards.free), kept, self._ticket.waiter.count)
            if not mine:
                self._ticket.show(directory, tuple(usable))
                return Contended(holders=cards.taken, kept=kept)
            if self._ticket.is_filed:
                self._ticket.show(directory, ())  # wants nothing more, keeps its age in case the driver objects
            return cards.keep(mine, self._ticket.waiter.run_id, self._ticket.waiter.user)

    def close(self) -> None:
        """Leave the queue."""
        if not self._ticket.is_filed:
            return
        try:
            with lease_dir.locked(self._directory) as directory:
                self._ticket.drop(directory)
        except lease_dir.LeaseDirError:
            self._ticket.abandon()  # unlocked where it lies, it counts for nobody

    def _kept(self, directory: int, free: tuple[str, ...]) -> dict[str, Waiter]:
        if not free:
            return {}  # the usual poll: nothing to share out, so nobody's ticket need be read
        return kept_for_others(free, waiters_ahead(directory, self._ticket), time.time())


def take_named(directory: str, uuids: Sequence[str], *, run_id: str, user: str) -> tuple[Lease, dict[str, LeaseHolder]]:
    """Those of the cards that are free, out of turn, and who holds the others: the command uses all of them."""
    with lease_dir.locked(directory) as opened, _Cards(opened, uuids) as cards:
        return cards.keep(tuple(cards.free), run_id, user), cards.taken


def check(directory: str) -> None:
    """Raises what the next lease would, be it for the file of a single card."""
    lease_dir.check(directory)
    if not lease_dir.exists(directory):
        return
    with lease_dir.locked(directory, create=False) as opened:
        for name in os.listdir(opened):
            if name.endswith(_SUFFIX):
                os.close(lease_dir.open_plain(opened, name, os.O_RDWR))


def holders(directory: str) -> dict[str, LeaseHolder]:
    """Who holds which card now, by the locks alone; text without a lock is no lease.

    A test lock can make a concurrent try for the same card fail, and /proc/locks hides a lock whose taker has
    died when read inside a container, so the test is made where nobody else can be trying: under the mutex.
    """
    if not lease_dir.exists(directory):
        return {}
    with lease_dir.locked(directory, create=False) as opened, _Cards(opened, _leased_once(opened)) as cards:
        return cards.taken


class _Cards:
    """Cards under the mutex: those nobody holds, locked while we look, and the holders of the others."""

    def __init__(self, directory: int, uuids: Iterable[str]) -> None:
        self.free: dict[str, int] = {}
        self.taken: dict[str, LeaseHolder] = {}
        self._directory = directory
        self._uuids = uuids

    def __enter__(self) -> _Cards:
        try:
            for uuid in self._uuids:
                self._look_at(uuid)
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

    def _look_at(self, uuid: str) -> None:
        name = _file_name(uuid)
        descriptor = lease_dir.open_shared(self._directory, name)
        while lease_dir.try_lock(descriptor):
            if lease_dir.is_current(self._directory, name, descriptor):
                self.free[uuid] = descriptor
                return
            lease_dir.unlock(descriptor)  # a cleaner removed it meanwhile: its lock would protect nothing
            descriptor = lease_dir.open_shared(self._directory, name)
        self.taken[uuid] = _holder_from(lease_dir.read_object(descriptor))
        os.close(descriptor)


def _file_name(uuid: str) -> str:
    if not _UUID.match(uuid):
        raise Invalid(f"{lease_dir.clean(uuid)!r} is not a GPU UUID.")
    return f"{uuid}{_SUFFIX}"


def _leased_once(directory: int) -> list[str]:
    """Cards that have a lease file; links and the like are no leases, nor is what its owner keeps from others: whoever
    wants that very card is told."""
    found = []
    for name in sorted(os.listdir(directory)):
        uuid = name.removesuffix(_SUFFIX)
        if uuid != name and _UUID.match(uuid) and _is_plain(directory, name) and _is_everyones(directory, name):
            found.append(uuid)
    return found


def _is_plain(directory: int, name: str) -> bool:
    facts = os.stat(name, dir_fd=directory, follow_symlinks=False)
    return stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1


def _is_everyones(directory: int, name: str) -> bool:
    return os.access(name, os.R_OK | os.W_OK, dir_fd=directory)


def _holder_from(data: dict[str, Any]) -> LeaseHolder:
    pid = data.get("pid")
    return LeaseHolder(
        run_id=lease_dir.clean(data.get("run_id")),
        user=lease_dir.clean(data.get("user")),
        pid=pid if type(pid) is int else 0,
        since=lease_dir.clean(data.get("since")),
    )
