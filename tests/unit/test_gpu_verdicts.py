"""What the end of a failed run's output says about the GPU."""

from __future__ import annotations

import pytest

from labwright.domain.gpu import CROWDING_WORDS, tells_of_crowding
from labwright.sidecar.gpuwrap import judge_failure

OUT_OF_MEMORY = [
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79 GiB",
    "torch.cuda.OutOfMemoryError: CUDA out of memory.",
    "RuntimeError: CUDA error: out of memory",
    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4831 bytes.",
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.0GiB on device ordinal 0",
    "ResourceExhaustedError: OOM when allocating tensor with shape[8192,8192] on /job:localhost/device:GPU:0",
    "failed to allocate 7.2G from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    "GPUassert: cudaErrorMemoryAllocation kernel.cu 41",
    "cudaMalloc(&p, n) failed: out of memory",
]
BUSY = [
    "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
    "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
    "cudaErrorDevicesUnavailable",
    "CUDA_ERROR_DEVICE_UNAVAILABLE: CUDA-capable device(s) is/are busy or unavailable",
]
BROKEN = [
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "CUDA error: uncorrectable ECC error encountered",
    "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
    "RuntimeError: CUDA error: device-side assert triggered",
    "Failed to initialize NVML: Driver/library version mismatch",
]
UNRELATED = [
    "",
    "ValueError: bad learning rate",
    "RuntimeError: [enforce fail at alloc_cpu.cpp:114] DefaultCPUAllocator: can't allocate memory",
    "ResourceExhaustedError: OOM when allocating tensor with shape[9] on /job:localhost/device:CPU:0 by allocator cpu",
    "grpc: RESOURCE_EXHAUSTED: quota exceeded",
]


def reason(text: str, *, foreign: bool = False, code: int = 1) -> str | None:
    verdict = judge_failure(f"epoch 3\n{text}\n", code, foreign)
    return verdict.reason if verdict else None


@pytest.mark.parametrize("text", OUT_OF_MEMORY)
def test_an_oom_is_contention_only_with_a_foreign_process(text: str) -> None:
    assert reason(text) == "cuda_oom"
    assert reason(text, foreign=True) == "gpu_contention"


@pytest.mark.parametrize("text", BUSY)
def test_a_busy_device_is_contention_only_with_a_foreign_process(text: str) -> None:
    assert reason(text) == "gpu_error"
    assert reason(text, foreign=True) == "gpu_contention"


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_gpu_is_never_contention(text: str) -> None:
    assert reason(text) == "gpu_error"
    assert reason(text, foreign=True) == "gpu_error"


@pytest.mark.parametrize("text", UNRELATED)
def test_other_failures_are_not_blamed_on_the_gpu(text: str) -> None:
    assert reason(text, foreign=True) is None


def test_a_run_that_recovered_from_oom_has_no_gpu_failure() -> None:
    assert reason(OUT_OF_MEMORY[0], foreign=True, code=0) is None


@pytest.mark.parametrize("text", [*OUT_OF_MEMORY, *BUSY])
def test_every_contention_message_is_found(text: str) -> None:
    assert tells_of_crowding(text)
    assert any(word in text.lower() for word in CROWDING_WORDS)


@pytest.mark.parametrize("text", [*BROKEN, *UNRELATED])
def test_other_failures_are_not_contention(text: str) -> None:
    assert not tells_of_crowding(text)
