"""The background worker: which items it advances, when, and how it handles errors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labwright.compute.lab import Lab
from labwright.compute.worker import Worker
from labwright.domain.event import Event
from tests.support.lab import ended_run, lab_in
from tests.support.waiting import wait_until


class Recorder(Worker):
    """Record the advanced items; `do` decides what happens."""

    name = "recorder"
    retry_seconds = 0.01

    def __init__(self, lab: Lab, do: Callable[[str], float | None] = lambda _item: None) -> None:
        super().__init__(lab)
        self._do = do
        self.advanced: list[str] = []
        self.given_up: list[str] = []
        self.interrupted: list[str] = []

    def concerned(self, events: list[Event]) -> set[str]:
        return {event.run_id for event in events if event.run_id}

    def items_at_start(self) -> list[str]:
        return ["first"]

    def advance(self, item: str) -> float | None:
        self.advanced.append(item)
        return self._do(item)

    def give_up(self, item: str, error: Exception) -> None:
        self.given_up.append(f"{item}: {error}")

    def interrupt(self, item: str) -> None:
        self.interrupted.append(item)


class ThreadedRecorder(Recorder):
    thread_per_item = True


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as opened:
        yield opened


@pytest.fixture(params=[Recorder, ThreadedRecorder])
def kind(request: pytest.FixtureRequest) -> type[Recorder]:
    return request.param  # type: ignore[no-any-return]


def test_items_of_the_start_and_of_committed_events_are_advanced(lab: Lab, kind: type[Recorder]) -> None:
    worker = kind(lab)
    worker.start()
    wait_until(lambda: worker.advanced == ["first"], "the item at start")
    run_id = ended_run(lab, "a").id
    wait_until(lambda: run_id in worker.advanced, "the run")
    worker.close()


def test_an_item_is_advanced_again_at_its_deadline(lab: Lab, kind: type[Recorder]) -> None:
    worker = kind(lab, lambda _item: 0.01 if len(worker.advanced) < 3 else None)
    worker.start()
    wait_until(lambda: len(worker.advanced) == 3, "the deadlines")
    worker.close()
    assert worker.advanced == ["first"] * 3


def test_storage_errors_are_retried_and_other_errors_given_up(lab: Lab, kind: type[Recorder]) -> None:
    errors: list[Exception] = [OSError("disk full"), OSError("disk full"), ValueError("a fault")]

    def fail(_item: str) -> None:
        if errors:
            raise errors.pop(0)

    worker = kind(lab, fail)
    worker.start()
    wait_until(lambda: worker.given_up, "the fault")
    worker.close()
    assert worker.advanced == ["first"] * 3
    assert worker.given_up == ["first: a fault"]


def test_events_do_not_shorten_a_backoff(lab: Lab) -> None:
    def fail(_item: str) -> None:
        raise OSError("disk full")

    worker = Recorder(lab, fail)
    worker.retry_seconds = 1000.0
    worker.start()
    wait_until(lambda: worker.advanced, "the first try")
    worker.wake("first")
    worker.wake("other")
    wait_until(lambda: "other" in worker.advanced, "the other item")
    worker.close()
    assert worker.advanced == ["first", "other"]


def test_event_interrupts_a_busy_item_which_is_advanced_again(lab: Lab) -> None:
    may_end, others = threading.Event(), threading.Event()

    def wait(item: str) -> None:
        if item == "other":
            others.set()
        elif not may_end.is_set():
            may_end.wait(30)

    worker = ThreadedRecorder(lab, wait)
    worker.start()
    wait_until(lambda: worker.advanced, "the thread")
    worker.wake("first")
    worker.wake("other")
    assert others.wait(30)  # one thread does not block another
    wait_until(lambda: worker.interrupted == ["first"], "the interrupt")
    may_end.set()
    wait_until(lambda: worker.advanced.count("first") == 2, "the second look")
    worker.close()


def test_closing_interrupts_busy_items_and_waits_for_them(lab: Lab) -> None:
    may_end = threading.Event()

    class Obedient(ThreadedRecorder):
        def interrupt(self, item: str) -> None:
            super().interrupt(item)
            may_end.set()

    def wait(_item: str) -> None:
        may_end.wait(30)

    worker = Obedient(lab, wait)
    worker.start()
    wait_until(lambda: worker.advanced, "the thread")
    worker.close()
    assert worker.interrupted == ["first"]
    assert not any(thread.name.startswith("recorder") for thread in threading.enumerate())
