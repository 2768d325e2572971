"""The GPU detector, run as `python -I -S gpuwrap_detect.py`. It prints the driver's report as one JSON object.

It is a separate script because a driver call can hang and cannot be interrupted. The caller sets the timeout.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

if __name__ == "__main__":  # -I -S leaves the package and site-packages off the path
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from labwright.domain.gpu import Gpu, GpuProcess
from labwright.gpu.probe import Detection
from labwright.processes import NO_SUCH_PROGRAM

PYNVML_DIR_VARIABLE = "LABWRIGHT_PYNVML_DIR"
_MEGABYTE = 1 << 20
_CARD_FIELDS = (
    "pci.bus_id",
    "uuid",
    "name",
    "memory.total",
    "memory.used",
    "utilization.gpu",
    "driver_version",
)
_PROCESS_FIELDS = ("gpu_uuid", "pid", "used_memory")


class DriverError(Exception):
    """The driver exists but reports an error."""


class DriverAbsentError(Exception):
    """This machine does not have this interface to the driver."""


def detect(samples: int = 1, interval: float = 0.1) -> Detection:
    """Detect GPUs with NVML, else nvidia-smi, else none. Several samples give the maximum and all processes seen."""
    errors: list[str] = []
    for query in (query_nvml, query_nvidia_smi):
        try:
            seen = query()
            for _ in range(samples - 1):
                time.sleep(interval)
                seen = merge(seen, query())
        except DriverAbsentError:
            continue
        except DriverError as error:
            errors.append(str(error))
            continue
        return replace(seen, errors=(*errors, *seen.errors))
    return Detection(source="none", errors=tuple(errors))


def merge(first: Detection, second: Detection) -> Detection:
    later = {gpu.uuid: gpu for gpu in second.gpus}
    gpus = [_highest(gpu, later.pop(gpu.uuid, gpu)) for gpu in first.gpus]
    errors = dict.fromkeys((*first.errors, *second.errors))
    return replace(first, gpus=(*gpus, *later.values()), errors=tuple(errors))


def _highest(first: Gpu, second: Gpu) -> Gpu:
    processes = {process.pid: process for process in first.processes}
    for process in second.processes:
        known = processes.get(process.pid, process)
        processes[process.pid] = replace(process, memory_mb=max(known.memory_mb, process.memory_mb))
    return replace(
        first,
        memory_used_mb=max(first.memory_used_mb, second.memory_used_mb),
        utilization=max(first.utilization, second.utilization),
        processes=tuple(processes[pid] for pid in sorted(processes)),
    )


def query_nvml() -> Detection:
    try:
        import pynvml
    except ImportError as error:
        raise DriverAbsentError from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound as error:
        raise DriverAbsentError from error
    except pynvml.NVMLError as error:
        raise DriverError(f"NVML: {error}") from error
    try:
        return _read_nvml(pynvml)
    except pynvml.NVMLError as error:
        raise DriverError(f"NVML: {error}") from error
    finally:
        pynvml.nvmlShutdown()


def _read_nvml(nvml: Any) -> Detection:
    cards: list[tuple[str, Gpu]] = []
    errors: list[str] = []
    for position in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(position)
            cards.append((_text(nvml.nvmlDeviceGetPciInfo(handle).busId), _nvml_card(nvml, handle)))
        except nvml.NVMLError as error:  # one failed GPU must not hide the others
            errors.append(f"NVML, GPU {position}: {error}")
    return Detection(
        source="nvml",
        gpus=_in_bus_order(cards),
        errors=tuple(errors),
        driver_version=_text(nvml.nvmlSystemGetDriverVersion()),
    )


def _nvml_card(nvml: Any, handle: Any) -> Gpu:
    memory = _supported(nvml, lambda: _nvml_memory(nvml, handle))
    rates = _supported(nvml, lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    running = _supported(nvml, lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    return Gpu(
        index=0,
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        name=_text(nvml.nvmlDeviceGetName(handle)),
        memory_total_mb=memory.total // _MEGABYTE if memory else 0,
        memory_used_mb=memory.used // _MEGABYTE if memory else 0,
        utilization=rates.gpu if rates else 0,
        processes=_processes((item.pid, (item.usedGpuMemory or 0) // _MEGABYTE) for item in running or ()),
    )


def _nvml_memory(nvml: Any, handle: Any) -> Any:
    """Read the memory. Version 2 excludes the driver's own reserve, like nvidia-smi; old drivers lack it."""
    try:
        return nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except nvml.NVMLError_FunctionNotFound:
        return nvml.nvmlDeviceGetMemoryInfo(handle)


def _supported(nvml: Any, read: Callable[[], Any]) -> Any:
    """Return the reading, or None if this kind of GPU does not have it (MIG, unified memory)."""
    try:
        return read()
    except nvml.NVMLError_NotSupported:
        return None


def query_nvidia_smi() -> Detection:
    cards = _query("gpu", _CARD_FIELDS)
    running: dict[str, list[tuple[int, int]]] = {}
    for uuid, pid, memory in _query("compute-apps", _PROCESS_FIELDS):
        running.setdefault(uuid, []).append((_number(pid), _number(memory)))
    return Detection(
        source="nvidia-smi",
        gpus=_in_bus_order([(row[0], _smi_card(row, running.get(row[1], []))) for row in cards]),
        driver_version=cards[0][-1] if cards else "",
    )


def _smi_card(row: Sequence[str], running: Iterable[tuple[int, int]]) -> Gpu:
    _, uuid, name, total, used, utilization, _ = row
    return Gpu(
        index=0,
        uuid=uuid,
        name=name,
        memory_total_mb=_number(total),
        memory_used_mb=_number(used),
        utilization=_number(utilization),
        processes=_processes(running),
    )


def _query(what: str, fields: Sequence[str]) -> list[list[str]]:
    command = ["nvidia-smi", f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except NO_SUCH_PROGRAM as error:
        raise DriverAbsentError from error
    if answer.returncode:
        lines = (answer.stdout + answer.stderr).strip().splitlines()
        raise DriverError(f"nvidia-smi: {lines[0] if lines else f'exit code {answer.returncode}'}")
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.stdout.splitlines() if line.strip()]
    return [row for row in rows if len(row) == len(fields)]


def _number(text: str) -> int:
    """Return the number, or 0 for "[N/A]" and "[Not Supported]"."""
    return int(text) if text.isdigit() else 0


def _in_bus_order(cards: Sequence[tuple[str, Gpu]]) -> tuple[Gpu, ...]:
    """Number the GPUs as CUDA does with CUDA_DEVICE_ORDER=PCI_BUS_ID."""
    # A bus id, such as `00000000:3B:00.0`, is compared by its numbers: the width of the domain differs.
    by_numbers = [([int(part, 16) for part in bus.replace(".", ":").split(":")], gpu) for bus, gpu in cards]
    ordered = sorted(by_numbers, key=lambda card: card[0])
    return tuple(replace(gpu, index=index) for index, (_, gpu) in enumerate(ordered))


def _processes(running: Iterable[tuple[int, int]]) -> tuple[GpuProcess, ...]:
    memory: dict[int, int] = {}
    for pid, megabytes in running:
        memory[pid] = max(megabytes, memory.get(pid, 0))
    return tuple(_with_owner(pid, memory[pid]) for pid in sorted(memory))


def _with_owner(pid: int, memory_mb: int) -> GpuProcess:
    """Return the process with owner and name if /proc shows them. In a container the driver reports host PIDs."""
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
        with open(f"/proc/{pid}/comm", errors="replace") as file:
            name = file.read().strip()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return GpuProcess(pid=pid, memory_mb=memory_mb)
    import pwd

    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return GpuProcess(pid=pid, memory_mb=memory_mb, user=user, name=name)


def _text(value: str | bytes) -> str:
    """Older releases of pynvml return bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the NVIDIA driver's report about the GPUs as JSON.")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--interval", type=float, default=0.1)
    parser.add_argument("--pynvml-dir", default=os.environ.get(PYNVML_DIR_VARIABLE, ""))
    options = parser.parse_args()
    if options.pynvml_dir:
        sys.path.append(options.pynvml_dir)
    print(json.dumps(detect(options.samples, options.interval).to_dict()))


if __name__ == "__main__":
    main()
