"""Leases between real processes: never shared, never leaked, never starved."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labwright.domain.gpu import LeaseHolder
from labwright.gpu import lease_dir, tickets
from labwright.gpu.lease import Contended, Lease, LeaseWaiter, check, holders, take_named
from labwright.gpu.lease_dir import LeaseDirError

CARDS = ("GPU-a", "GPU-b", "GPU-c", "GPU-d")

PRELUDE = """
import os, sys, time
from pathlib import Path
from labwright.gpu.lease import Lease, LeaseWaiter
directory, cards, count = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3])
def waiter(ageing=30.0):
    return LeaseWaiter(directory, run_id=f"run-{os.getpid()}", user="tester", count=count, ageing_seconds=ageing)
def take(w):
    while not isinstance(answer := w.try_take(cards), Lease):
        time.sleep(0.003)
    return answer
"""


class Processes:
    """Python processes on one lease directory. None of them outlives the test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._started: list[subprocess.Popen[str]] = []

    def start(self, body: str, *, cards: tuple[str, ...] = CARDS, count: int = 1) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + body, str(self.directory), ",".join(cards), str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._started.append(child)
        return child

    def end(self) -> None:
        for child in self._started:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe:
                    pipe.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "leases"


@pytest.fixture
def processes(directory: Path) -> Iterator[Processes]:
    group = Processes(directory)
    yield group
    group.end()


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


def line(child: subprocess.Popen[str]) -> str:
    assert child.stdout
    return child.stdout.readline().strip()


def waiter(directory: Path, count: int = 1, ageing: float = 30.0) -> LeaseWaiter:
    return LeaseWaiter(str(directory), run_id="run-here", user="me", count=count, ageing_seconds=ageing)


def taken(answer: Lease | Contended) -> Lease:
    assert isinstance(answer, Lease)
    return answer


def refused(answer: Lease | Contended) -> Contended:
    assert isinstance(answer, Contended)
    return answer


def test_many_processes_never_share_a_card(processes: Processes, tmp_path: Path) -> None:
    body = f"""
for _ in range(25):
    w = waiter()
    lease = take(w)
    w.close()
    marks = [Path({str(tmp_path)!r}, uuid) for uuid in lease.uuids]
    for mark in marks:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    time.sleep(0.001)
    for mark in marks:
        mark.unlink()
    lease.release()
print("done")
"""
    children = [processes.start(body, count=1 + n % 2) for n in range(8)]
    assert [line(child) for child in children] == ["done"] * 8
    assert list((processes.directory / "queue").iterdir()) == []
    assert holders(str(processes.directory)) == {}


def test_several_cards_are_taken_together_or_not_at_all(directory: Path) -> None:
    first = taken(waiter(directory, 1).try_take(CARDS[:2]))
    wide = waiter(directory, 2)
    assert list(refused(wide.try_take(CARDS[:2])).holders) == ["GPU-a"]
    assert set(holders(str(directory))) == {"GPU-a"}
    first.release()
    assert taken(wide.try_take(CARDS[:2])).uuids == ("GPU-a", "GPU-b")
    wide.close()


def test_wide_waiter_is_not_starved_by_narrow_ones(processes: Processes) -> None:
    single = """
while True:
    w = waiter(ageing=0.3)
    lease = take(w)
    w.close()
    print("took", flush=True)
    time.sleep(0.01)
    lease.release()
"""
    singles = [processes.start(single, cards=CARDS[:2]) for _ in range(3)]
    for child in singles:
        assert line(child) == "took"
    wide = processes.start("print(len(take(waiter(ageing=0.3)).uuids))", cards=CARDS[:2], count=2)
    started = time.monotonic()
    assert line(wide) == "2"
    assert time.monotonic() - started < 60


def test_young_wide_waiter_can_be_passed_but_an_aged_one_cannot(directory: Path) -> None:
    held = taken(waiter(directory).try_take(CARDS[:1]))
    wide = waiter(directory, 2, ageing=0.2)
    refused(wide.try_take(CARDS[:2]))
    passing = waiter(directory)
    taken(passing.try_take(CARDS[:2])).release()
    late = waiter(directory)
    until(lambda: "GPU-b" in getattr(_try(late, CARDS[:2]), "kept", {}))
    held.release()
    assert taken(wide.try_take(CARDS[:2])).uuids == CARDS[:2]
    wide.close()
    late.close()


def _try(one: LeaseWaiter, cards: tuple[str, ...]) -> Lease | Contended:
    answer = one.try_take(cards)
    if isinstance(answer, Lease):
        answer.release()
    return answer


def test_freed_card_goes_to_the_oldest_waiter(directory: Path) -> None:
    held = taken(waiter(directory).try_take(CARDS[:1]))
    first, second = waiter(directory), waiter(directory)
    refused(first.try_take(CARDS[:1]))
    refused(second.try_take(CARDS[:1]))
    held.release()
    assert refused(second.try_take(CARDS[:1])).kept["GPU-a"].run_id == "run-here"
    taken(first.try_take(CARDS[:1])).release()
    first.close()
    taken(second.try_take(CARDS[:1])).release()
    second.close()


def test_job_keeps_the_card_when_its_sidecar_is_killed(processes: Processes) -> None:
    body = """
import subprocess
lease = take(waiter())
lease.make_inheritable()
job = subprocess.Popen(["sleep", "60"], pass_fds=lease.fds, stdout=subprocess.DEVNULL)
print(job.pid, flush=True)
sys.stdin.read()
"""
    sidecar = processes.start(body, cards=CARDS[:1])
    job = int(line(sidecar))
    try:
        sidecar.kill()
        sidecar.wait()
        assert holders(str(processes.directory))["GPU-a"].pid == sidecar.pid
        refused(_closed_try(processes.directory))
    finally:
        os.kill(job, signal.SIGKILL)
    until(lambda: holders(str(processes.directory)) == {})


def _closed_try(directory: Path) -> Lease | Contended:
    one = waiter(directory)
    answer = one.try_take(CARDS[:1])
    one.close()
    return answer


def test_release_frees_the_card_although_a_stray_child_has_the_descriptor(directory: Path) -> None:
    lease = taken(waiter(directory).try_take(CARDS[:1]))
    lease.make_inheritable()
    with subprocess.Popen(["sleep", "60"], pass_fds=lease.fds) as stray:
        lease.release()
        assert holders(str(directory)) == {}
        taken(waiter(directory).try_take(CARDS[:1])).release()
        stray.kill()


def test_descriptors_are_inherited_only_on_request(directory: Path) -> None:
    lease = taken(waiter(directory).try_take(CARDS[:1]))
    assert not os.get_inheritable(lease.fds[0])
    lease.make_inheritable()
    assert os.get_inheritable(lease.fds[0])
    lease.release()
    assert lease.fds == ()
    lease.release()  # a second release does nothing


def test_tickets_of_dead_waiters_disappear_and_block_nobody(processes: Processes) -> None:
    held = taken(waiter(processes.directory).try_take(CARDS[:1]))
    child = processes.start(
        "w = waiter(ageing=0); w.try_take(cards)\nprint(1, flush=True); take(w)",
        cards=CARDS[:1],
    )
    assert line(child) == "1"
    queue = processes.directory / "queue"
    assert list(queue.iterdir())
    child.kill()
    child.wait()
    held.release()
    taken(waiter(processes.directory).try_take(CARDS[:1])).release()
    assert list(queue.iterdir()) == []


def test_stopped_waiter_blocks_only_until_it_counts_as_silent(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tickets, "SILENT_SECONDS", 1.5)  # the waiter touches its ticket every second
    held = taken(waiter(processes.directory).try_take(CARDS[:1]))
    body = "w = waiter(ageing=0); w.try_take(cards); print(1, flush=True); sys.stdin.readline(); take(w)"
    child = processes.start(body, cards=CARDS[:1])
    assert line(child) == "1"
    os.kill(child.pid, signal.SIGSTOP)
    held.release()
    late = waiter(processes.directory)
    assert "GPU-a" in refused(late.try_take(CARDS[:1])).kept
    until(lambda: isinstance(_try(late, CARDS[:1]), Lease))
    late.close()
    os.kill(child.pid, signal.SIGCONT)
    child.communicate("\n")
    assert child.wait(timeout=60) == 0  # the waiter keeps its place


def test_lease_text_without_a_lock_is_not_a_lease(directory: Path) -> None:
    taken(waiter(directory).try_take(CARDS[:1])).release()
    (directory / "GPU-a.lease").write_text('{"run_id": "run-ghost", "user": "x", "pid": 1}')
    assert holders(str(directory)) == {}


def test_reading_holders_never_makes_an_acquire_fail(processes: Processes) -> None:
    lookers = [
        processes.start("from labwright.gpu.lease import holders\nprint(1, flush=True)\nwhile True: holders(directory)")
        for _ in range(2)
    ]
    for child in lookers:
        assert line(child) == "1"
    one = waiter(processes.directory)
    for _ in range(300):
        taken(one.try_take(CARDS[:1])).release()


def test_text_written_by_a_holder_is_not_trusted(directory: Path) -> None:
    lease = taken(waiter(directory).try_take(CARDS[:1]))
    file = directory / "GPU-a.lease"
    file.write_text('{"run_id": "run-\\u001b[31mx", "user": ["no"], "pid": "1"}')
    assert holders(str(directory)) == {"GPU-a": LeaseHolder(run_id="run-[31mx", user="", pid=0)}
    for text in ("[" * 100_000, "\x00\xff", "[1]", "9" * 100_000):
        file.write_text(text)
        assert holders(str(directory)) == {"GPU-a": LeaseHolder(run_id="", user="")}
    lease.release()


def test_symlink_as_lease_file_is_refused(directory: Path, tmp_path: Path) -> None:
    taken(waiter(directory).try_take(CARDS[1:2])).release()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (directory / "GPU-a.lease").symlink_to(victim)
    with pytest.raises(LeaseDirError):
        waiter(directory).try_take(CARDS[:1])
    assert victim.read_text() == "precious"
    assert holders(str(directory)) == {}


def test_hard_link_as_lease_file_is_refused(directory: Path, tmp_path: Path) -> None:
    taken(waiter(directory).try_take(CARDS[1:2])).release()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.link(victim, directory / "GPU-a.lease")
    with pytest.raises(LeaseDirError):
        waiter(directory).try_take(CARDS[:1])
    assert victim.read_text() == "precious"


def test_fifo_in_the_queue_blocks_nobody(directory: Path) -> None:
    held = taken(waiter(directory).try_take(CARDS[:1]))
    one = waiter(directory)
    refused(one.try_take(CARDS[:1]))
    os.mkfifo(directory / "queue" / f"{1:020d}-deadbeef")
    held.release()
    taken(one.try_take(CARDS[:1])).release()
    one.close()


def test_symlink_as_lease_directory_is_refused(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    directory.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LeaseDirError) as caught:
        waiter(directory).try_take(CARDS[:1])
    assert "LABWRIGHT_LEASE_DIR" in caught.value.hint


def test_error_for_lease_directory_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LeaseDirError) as caught:
        waiter(tmp_path / "file" / "leases").try_take(CARDS[:1])
    assert str(tmp_path / "file" / "leases") in caught.value.message
    assert "LABWRIGHT_LEASE_DIR" in caught.value.hint


def test_unused_lease_directory_has_no_holders(directory: Path) -> None:
    assert holders(str(directory)) == {}
    assert not directory.exists()


def test_lease_file_removed_by_a_cleaner_is_created_again(directory: Path) -> None:
    taken(waiter(directory).try_take(CARDS[:1])).release()
    (directory / "GPU-a.lease").unlink()
    lease = taken(waiter(directory).try_take(CARDS[:1]))
    assert set(holders(str(directory))) == {"GPU-a"}
    lease.release()


def test_everyone_can_use_directory_and_files_whatever_the_umask(processes: Processes) -> None:
    child = processes.start(
        "os.umask(0o077); w = waiter(); lease = take(w); take2 = waiter().try_take(cards); print(1)", cards=CARDS[:1]
    )
    assert line(child) == "1"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in processes.directory.iterdir()}
    assert stat.S_IMODE(processes.directory.stat().st_mode) == 0o1777
    assert modes == {"mutex": 0o666, "GPU-a.lease": 0o666, "queue": 0o1777}


@pytest.mark.skipif(os.getuid() != 0, reason="changing the user needs root")
def test_other_user_can_take_the_lease_next() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to other users
        os.chmod(folder, 0o755)
        directory = Path(folder, "leases")
        lease = taken(waiter(directory).try_take(CARDS[:1]))
        assert _as_nobody(lambda: list(refused(waiter(directory).try_take(CARDS[:1])).holders) == ["GPU-a"])
        lease.release()
        assert _as_nobody(lambda: taken(waiter(directory).try_take(CARDS[:2])).uuids == ("GPU-a",))
        taken(waiter(directory).try_take(CARDS[:2])).release()


@pytest.mark.skipif(os.getuid() != 0, reason="changing the user needs root")
def test_private_lease_file_does_not_hide_other_leases() -> None:
    """Otherwise anybody could keep every server on the machine from starting."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        directory = Path(folder, "leases")
        lease = taken(waiter(directory).try_take(CARDS[:1]))
        (directory / "GPU-b.lease").touch(0o600)
        assert _as_nobody(lambda: set(holders(str(directory))) == {"GPU-a"})
        lease.release()


def _as_nobody(claim: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            code = 0 if claim() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_process_stopped_inside_the_mutex_delays_others_only_briefly(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_dir, "MUTEX_SECONDS", 0.1)
    with lease_dir.locked(str(directory)):
        lease = taken(waiter(directory).try_take(CARDS[:1]))
        assert set(holders(str(directory))) == {"GPU-a"}
        refused(_closed_try(directory))
        lease.release()


def test_named_cards_are_leased_out_of_turn_and_conflicts_reported(directory: Path) -> None:
    held = taken(waiter(directory).try_take(CARDS[:1]))
    lease, conflicts = take_named(str(directory), CARDS[:2], run_id="run-n", user="nina")
    assert lease.uuids == ("GPU-b",)
    assert conflicts["GPU-a"].run_id == "run-here"
    lease.release()
    held.release()


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.mkdir(mode=0o500)], ids=["a file", "not writable"])
def test_check_refuses_an_unusable_lease_directory(
    make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "leases"
    lease_dir.check(str(place / "not" / "yet"))
    make(place)
    monkeypatch.setattr(os, "access", lambda path, _mode: os.stat(path).st_mode & 0o200)  # as for users other than root
    for path in (place, place / "deeper"):
        with pytest.raises(LeaseDirError, match="cannot be used"):
            lease_dir.check(str(path))
    assert not (place / "deeper").exists()


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("/etc/hostname")], ids=["FIFO", "link"])
def test_check_refuses_a_foreign_object_as_lease_file(plant: Callable[[Path], None], directory: Path) -> None:
    taken(waiter(directory).try_take(CARDS[:1])).release()
    check(str(directory))
    plant(directory / "GPU-b.lease")
    with pytest.raises(LeaseDirError, match=r"GPU-b\.lease"):
        check(str(directory))
