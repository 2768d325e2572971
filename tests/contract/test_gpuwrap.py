"""The GPU gate before a launch, on simulated cards: messages, waiting, retries, and driver failures."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labwright.gpu import probe
from labwright.gpu.lease import Lease, LeaseWaiter, holders
from labwright.gpu.probe import run_detector
from labwright.sidecar import gpuwrap
from labwright.sidecar.gpuwrap import Busy, GaveUp, GpuGate, GpuRequest, Granted, foreign_processes
from labwright.sim.gpus import SimulatedGpus


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedGpus:
    simulated = SimulatedGpus.create(tmp_path / "gpus", 2)
    for name, value in simulated.environment(os.environ).items():
        monkeypatch.setenv(name, value)
    return simulated


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process of a user who does not take leases."""
    with subprocess.Popen(["sleep", "120"]) as child:
        yield child.pid
        child.kill()


@pytest.fixture
def driver_queries(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times of driver queries."""
    times: list[float] = []

    def counting(*args: object, **options: object) -> probe.Detection:
        times.append(time.monotonic())
        return run_detector(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(gpuwrap, "run_detector", counting)
    return times


def request(tmp_path: Path, **facts: object) -> GpuRequest:
    base = {
        "run_id": "run-me",
        "user": "me",
        "count": 1,
        "lease_dir": str(tmp_path / "leases"),
        "check_foreign": True,
    }
    return GpuRequest.from_dict({**base, **facts})


def hold(tmp_path: Path, uuid: str, user: str = "alice") -> Lease:
    directory = str(tmp_path / "leases")
    other = LeaseWaiter(directory, run_id="run-other", user=user, count=1, ageing_seconds=30)
    answer = other.try_take([uuid])
    assert isinstance(answer, Lease)
    return answer


def drive(gate: GpuGate, until: Callable[[object], bool], seconds: float = 15.0) -> Granted | Busy | GaveUp:
    """Run the gate as the supervisor's loop does."""
    deadline = time.monotonic() + seconds
    while not until(outcome := gate.attempt()):
        assert time.monotonic() < deadline, outcome
        time.sleep(gate.poll_seconds)
    return outcome


def is_granted(outcome: object) -> bool:
    return isinstance(outcome, Granted)


def granted(outcome: object) -> Granted:
    assert isinstance(outcome, Granted), outcome
    return outcome


def busy(outcome: object) -> Busy:
    assert isinstance(outcome, Busy), outcome
    return outcome


def test_free_card_is_granted_at_once_with_an_inheritable_lock(gpus: SimulatedGpus, tmp_path: Path) -> None:
    gate = GpuGate(request(tmp_path))
    lease = granted(gate.attempt()).lease
    assert lease.uuids == (gpus.cards[0].uuid,)
    assert all(os.get_inheritable(fd) for fd in lease.fds)
    assert holders(str(tmp_path / "leases"))[lease.uuids[0]].run_id == "run-me"
    gate.close()
    lease.release()
    assert holders(str(tmp_path / "leases")) == {}


def test_foreign_process_is_named_and_its_card_avoided(gpus: SimulatedGpus, tmp_path: Path, stranger: int) -> None:
    gpus.set_card(0, memory_used_mb=30822, processes=[(stranger, 30822)])
    gate = GpuGate(request(tmp_path))
    lease = granted(gate.attempt()).lease
    assert lease.uuids == (gpus.cards[1].uuid,)
    answer = busy(GpuGate(request(tmp_path)).attempt())
    assert answer.reason == (
        f"GPU 0 is in use by root's sleep (pid {stranger}, 30.1 GB); GPU 1 is held by me (run-me)"
    ).replace("root", _user())
    assert [holder["kind"] for holder in answer.holders] == ["foreign", "lease"]
    lease.release()


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


def test_used_memory_without_a_process_is_not_free(gpus: SimulatedGpus, tmp_path: Path) -> None:
    for index in (0, 1):
        gpus.set_card(index, memory_used_mb=20480)
    gate = GpuGate(request(tmp_path))
    assert "GPU 1 has 20.0 GB of memory in use but shows no process" in busy(gate.attempt()).reason
    assert holders(str(tmp_path / "leases")) == {}
    gate.close()


def test_without_the_foreign_check_only_leases_count(gpus: SimulatedGpus, tmp_path: Path, stranger: int) -> None:
    gpus.set_card(0, processes=[(stranger, 100)])
    granted(GpuGate(request(tmp_path, check_foreign=False, count=2)).attempt()).lease.release()


def test_freed_lease_is_taken_at_once_without_using_a_retry(
    gpus: SimulatedGpus, tmp_path: Path, driver_queries: list[float]
) -> None:
    gpus.remove_card(1)
    held = hold(tmp_path, gpus.cards[0].uuid)
    gate = GpuGate(request(tmp_path, retries=1, retry_delay_seconds=60))
    for _ in range(10):
        assert busy(gate.attempt()).reason == "GPU 0 is held by alice (run-other)"
        assert gate.poll_seconds <= 0.1
    assert len(driver_queries) == 1
    held.release()
    granted(gate.attempt()).lease.release()
    gate.close()


def test_card_that_a_run_has_just_left_is_retried(gpus: SimulatedGpus, tmp_path: Path) -> None:
    gpus.remove_card(1)
    gpus.set_card(0, utilization=95)
    held = hold(tmp_path, gpus.cards[0].uuid)
    gate = GpuGate(request(tmp_path, retry_delay_seconds=600))
    busy(gate.attempt())
    held.release()
    assert "95% busy" in busy(gate.attempt()).reason
    gpus.set_card(0, utilization=0)
    granted(drive(gate, is_granted, seconds=5)).lease.release()
    gate.close()


def test_driver_is_queried_once_per_try_until_tries_run_out(
    gpus: SimulatedGpus, tmp_path: Path, stranger: int, driver_queries: list[float]
) -> None:
    for index in (0, 1):
        gpus.set_card(index, processes=[(stranger, 5000)])
    gate = GpuGate(request(tmp_path, retries=2, retry_delay_seconds=2.0))
    answer = drive(gate, lambda outcome: isinstance(outcome, GaveUp))
    assert isinstance(answer, GaveUp)
    assert answer.reason == "no_gpu"
    assert answer.message.startswith("No GPU after 3 tries: GPU 0 is in use by")
    assert len(driver_queries) <= 5  # three queries to exclude traces of an earlier run, then one per try
    assert driver_queries[-1] - driver_queries[0] >= 4.0
    gate.close()


def test_card_is_free_at_the_next_try_after_a_foreign_process_ends(
    gpus: SimulatedGpus, tmp_path: Path, stranger: int
) -> None:
    gpus.remove_card(1)
    gpus.set_card(0, processes=[(stranger, 5000)])
    gate = GpuGate(request(tmp_path, retry_delay_seconds=0.5))
    busy(gate.attempt())
    gpus.set_card(0, processes=[])
    granted(drive(gate, is_granted)).lease.release()
    gate.close()


def test_tiny_retry_delay_does_not_make_a_step_endless(
    gpus: SimulatedGpus, tmp_path: Path, stranger: int, driver_queries: list[float]
) -> None:
    for index in (0, 1):
        gpus.set_card(index, processes=[(stranger, 5000)])
    gate = GpuGate(request(tmp_path, retry_delay_seconds=0.001))
    for _ in range(4):
        busy(gate.attempt())
    assert len(driver_queries) == 4
    gate.close()


def test_no_retries_means_one_try(gpus: SimulatedGpus, tmp_path: Path) -> None:
    gpus.remove_card(1)
    held = hold(tmp_path, gpus.cards[0].uuid)
    answer = GpuGate(request(tmp_path, retries=0)).attempt()
    assert isinstance(answer, GaveUp)
    assert answer.message == "No GPU after 1 try: GPU 0 is held by alice (run-other)."
    held.release()


def test_request_for_more_cards_than_exist_fails_at_once(gpus: SimulatedGpus, tmp_path: Path) -> None:
    answer = GpuGate(request(tmp_path, count=3)).attempt()
    assert answer == GaveUp(message="The run requests 3 GPUs, but this machine has 2.")


def test_failing_driver_is_waited_for(gpus: SimulatedGpus, tmp_path: Path) -> None:
    gpus.fail()
    gate = GpuGate(request(tmp_path, retry_delay_seconds=0.3))
    assert "Driver Not Loaded" in busy(gate.attempt()).reason
    gpus.fail(0)
    granted(drive(gate, is_granted)).lease.release()
    gate.close()


def test_hanging_driver_costs_one_timeout(gpus: SimulatedGpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpuwrap, "_DETECTOR_SECONDS", 0.5)
    gpus.hang()
    gate = GpuGate(request(tmp_path))
    started = time.monotonic()
    assert "driver did not answer within 0.5 s" in busy(gate.attempt()).reason
    assert time.monotonic() - started < 30
    gate.close()


def test_driver_failure_after_the_lease_gives_the_card_back(
    gpus: SimulatedGpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpuwrap, "_FRESH_SECONDS", 0.0)
    gate = GpuGate(request(tmp_path, retry_delay_seconds=600))
    held = [hold(tmp_path, card.uuid) for card in gpus.cards]
    busy(gate.attempt())
    gpus.fail()
    held[0].release()
    assert "Driver Not Loaded" in busy(gate.attempt()).reason
    assert set(holders(str(tmp_path / "leases"))) == {gpus.cards[1].uuid}
    held[1].release()
    gate.close()


def test_named_cards_are_never_waited_for(gpus: SimulatedGpus, tmp_path: Path) -> None:
    held = hold(tmp_path, gpus.cards[0].uuid)
    answer = granted(GpuGate(request(tmp_path, named=["0", gpus.cards[1].uuid, "7"], check_foreign=False)).attempt())
    assert answer.lease.uuids == (gpus.cards[1].uuid,)
    assert answer.warnings == (
        "The command names GPU 7, which is not on this machine.",
        "GPU 0 is held by alice (run-other); the command uses it anyway.",
    )
    answer.lease.release()
    held.release()


def test_run_without_gpus_waits_for_nothing(tmp_path: Path) -> None:
    assert granted(GpuGate(request(tmp_path, count=0)).attempt()).lease.uuids == ()


def test_error_for_unusable_lease_directory_names_the_setting(gpus: SimulatedGpus, tmp_path: Path) -> None:
    (tmp_path / "leases").write_text("a file")
    answer = GpuGate(request(tmp_path)).attempt()
    assert isinstance(answer, GaveUp)
    assert "LABWRIGHT_LEASE_DIR" in answer.message


def test_closed_gate_leaves_no_ticket(gpus: SimulatedGpus, tmp_path: Path) -> None:
    held = [hold(tmp_path, card.uuid) for card in gpus.cards]
    gate = GpuGate(request(tmp_path, check_foreign=False))
    busy(gate.attempt())
    assert len(list((tmp_path / "leases" / "queue").iterdir())) == 1
    gate.close()
    assert list((tmp_path / "leases" / "queue").iterdir()) == []
    for lease in held:
        lease.release()


def test_own_processes_of_the_run_are_not_foreign(gpus: SimulatedGpus, stranger: int) -> None:
    gpus.set_card(0, processes=[(stranger, 10), (os.getpid(), 10)])
    gpus.set_card(1, processes=[(stranger, 10)])
    found = foreign_processes(run_detector(), [gpus.cards[0].uuid], {os.getpid()})
    assert [process.pid for process in found] == [stranger]
