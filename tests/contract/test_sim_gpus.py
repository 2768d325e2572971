"""The simulated driver seen through the real detector: NVML by nvidia-ml-py, and nvidia-smi."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from labwright.domain.errors import Invalid
from labwright.gpu import probe
from labwright.gpu.gpuwrap_detect import merge
from labwright.gpu.probe import DETECTOR, Detection, find_pynvml_dir, run_detector
from labwright.sim.gpus import SimulatedGpus, build_driver, run_with_gpus
from tests.support.waiting import wait_until


@pytest.fixture
def gpus(tmp_path: Path) -> SimulatedGpus:
    return SimulatedGpus.create(tmp_path / "gpus", 3)


def detect(gpus: SimulatedGpus, *, nvml: bool = True, timeout: float = 20.0, samples: int = 1) -> Detection:
    return run_detector(timeout, samples, env=gpus.environment(os.environ, nvml=nvml))


def test_forbidden_nvidia_smi_is_not_a_driver_error(tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").touch(0o644)  # the same holds for one in a PATH folder that is closed to this user
    assert run_detector(20.0, env={"PATH": str(tmp_path)}) == Detection(source="none")


def test_nvml_and_nvidia_smi_report_the_same(gpus: SimulatedGpus) -> None:
    gpus.set_card(0, memory_used_mb=2048, utilization=55, processes=[(os.getpid(), 1500), (4000000, 100)])
    by_nvml, by_smi = detect(gpus), detect(gpus, nvml=False)
    assert (by_nvml.source, by_smi.source) == ("nvml", "nvidia-smi")
    assert replace(by_nvml, source="") == replace(by_smi, source="")
    first = by_nvml.gpus[0]
    assert (first.memory_used_mb, first.utilization, len(by_nvml.gpus)) == (2048, 55, 3)
    assert [(p.pid, p.memory_mb, p.name != "") for p in first.processes] == [
        (os.getpid(), 1500, True),
        (4000000, 100, False),
    ]


@pytest.mark.parametrize("nvml", [True, False])
def test_cards_are_numbered_by_bus(gpus: SimulatedGpus, nvml: bool) -> None:
    uuids = [card.uuid for card in gpus.cards]
    for index, bus in enumerate((0x81, 0x0A, 0x41)):
        gpus.set_card(index, bus=bus)
    assert [gpu.uuid for gpu in detect(gpus, nvml=nvml).gpus] == [uuids[1], uuids[2], uuids[0]]


def test_lost_card_is_an_error_and_hides_no_other_card(gpus: SimulatedGpus) -> None:
    gpus.set_card(1, lost=True)
    detection = detect(gpus)
    assert len(detection.gpus) == 2
    assert detection.errors == ("NVML, GPU 1: GPU is lost",)


def test_removed_card_is_not_listed(gpus: SimulatedGpus) -> None:
    gpus.remove_card(0)
    assert len(detect(gpus).gpus) == 2


def test_failing_driver_is_reported_both_ways(gpus: SimulatedGpus) -> None:
    gpus.fail()
    detection = detect(gpus)
    assert (detection.source, detection.gpus) == ("none", ())
    assert detection.errors[0] == "NVML: Driver Not Loaded"
    assert detection.errors[1].startswith("nvidia-smi: NVIDIA-SMI has failed")


@pytest.mark.parametrize("nvml", [True, False])
def test_hanging_driver_costs_one_timeout_and_leaves_no_process(gpus: SimulatedGpus, nvml: bool) -> None:
    gpus.hang()
    started = time.monotonic()
    detection = detect(gpus, nvml=nvml, timeout=0.5)
    assert time.monotonic() - started < 30
    assert detection.errors == ("the driver did not answer within 0.5 s",)
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(gpus.environment({}, nvml=False)["LABWRIGHT_SIM_STATE"]) not in listed
    gpus.hang(False)
    assert len(detect(gpus, nvml=nvml).gpus) == 3


@pytest.mark.parametrize("nvml", [True, False])
def test_stuck_detector_blocks_further_detectors(
    gpus: SimulatedGpus, nvml: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process inside the kernel cannot be killed."""
    gpus.hang()
    killed = []
    with monkeypatch.context() as unkillable:
        unkillable.setattr(probe, "_REAP_SECONDS", 0.1)
        unkillable.setattr(os, "killpg", lambda group, _number: killed.append(group))
        assert detect(gpus, nvml=nvml, timeout=0.5).errors == ("the driver did not answer within 0.5 s",)
        for _ in range(3):
            assert "still stuck" in detect(gpus, nvml=nvml).errors[0]
    (group,) = killed
    os.killpg(group, signal.SIGKILL)
    gpus.hang(False)
    wait_until(lambda: len(detect(gpus, nvml=nvml).gpus) == 3, "the driver to have let go")


def test_machine_without_a_driver_has_no_gpus_and_no_errors(tmp_path: Path) -> None:
    detection = run_detector(20.0, env={"PATH": str(tmp_path)})
    assert detection == Detection(source="none")


def test_detector_prints_one_json_object(gpus: SimulatedGpus) -> None:
    environment = {**gpus.environment(os.environ), "LABWRIGHT_PYNVML_DIR": find_pynvml_dir() or ""}
    command = [sys.executable, "-I", "-S", DETECTOR, "--samples=2", "--interval=0.01"]
    data = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert set(data) == {"source", "gpus", "errors", "driver_version"}
    assert (data["source"], len(data["gpus"])) == ("nvml", 3)


def test_without_pynvml_the_detector_uses_nvidia_smi(gpus: SimulatedGpus, tmp_path: Path) -> None:
    detection = run_detector(20.0, env=gpus.environment(os.environ), pynvml_dir=str(tmp_path))
    assert (detection.source, len(detection.gpus)) == ("nvidia-smi", 3)


def test_several_samples_keep_the_highest_reading_and_every_process(gpus: SimulatedGpus) -> None:
    gpus.set_card(0, memory_used_mb=10, utilization=90, processes=[(4000001, 5)])
    early = detect(gpus)
    gpus.set_card(0, memory_used_mb=500, utilization=0, processes=[(4000002, 7), (4000001, 4)])
    merged = merge(early, detect(gpus)).gpus[0]
    assert (merged.memory_used_mb, merged.utilization) == (500, 90)
    assert [(p.pid, p.memory_mb) for p in merged.processes] == [(4000001, 5), (4000002, 7)]


def test_changed_card_is_visible_at_once(gpus: SimulatedGpus) -> None:
    same = SimulatedGpus.from_environment(gpus.environment(os.environ, nvml=False))
    same.set_card(2, utilization=77)
    assert detect(gpus).gpus[2].utilization == 77


def test_command_runs_with_gpus_and_returns_its_exit_code() -> None:
    assert run_with_gpus(2, ["sh", "-c", "test $(nvidia-smi -L | wc -l) = 2 && exit 7"]) == 7


def test_invalid_values_are_refused_with_a_message(gpus: SimulatedGpus) -> None:
    with pytest.raises(Invalid, match="no GPU 9"):
        gpus.set_card(9, utilization=1)
    with pytest.raises(Invalid, match="cannot be started"):
        run_with_gpus(1, ["/no/such/command"])
    with pytest.raises(Invalid, match="No simulated GPUs"):
        SimulatedGpus.from_environment({})


def test_driver_is_compiled_once(tmp_path: Path) -> None:
    library = build_driver(tmp_path) / "libnvidia-ml.so.1"
    first = library.stat().st_mtime_ns
    assert (build_driver(tmp_path) / "libnvidia-ml.so.1").stat().st_mtime_ns == first


def test_error_without_a_compiler_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Invalid) as caught:
        build_driver(tmp_path)
    assert "gcc" in caught.value.hint
