"""Where code takes an NVIDIA GPU for granted, so that a rehearsal on a CPU cannot work."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.scan.facts import Flag, Role
from labwright.planning.scan.literals import dotted, last_name
from labwright.planning.scan.reach import Reach

_PACKAGES = {"flash_attn", "apex", "cupy", "bitsandbytes", "vllm", "triton", "deepspeed", "xformers"}
_ASKS = ("is_available", "device_count", "use_cuda", "no_cuda", "find_device")
_MOST = 10


def read_cuda_evidence(reach: Reach, flags: list[Flag]) -> list[str]:
    """Lines such as `train.py:12 .cuda()`; none where the code asks first or a flag chooses the device."""
    packages = [f"imports {name}" for name in sorted(_PACKAGES) if reach.imports(name)]
    chosen = any(flag.role is Role.DEVICE and flag.is_settable for flag in flags)
    asks = any(word in module.text for module in reach.files() for word in _ASKS)
    if chosen or asks:
        return packages
    found = (f"{block.module.at(call)} {what}" for block, call in reach.calls() for what in _of_call(call))
    return [*packages, *list(found)[:_MOST]]


def _of_call(call: ast.Call) -> Iterator[str]:
    name = last_name(call.func)
    if isinstance(call.func, ast.Attribute) and name == "cuda":
        yield ".cuda()"
    elif dotted(call.func).startswith("torch.cuda.") and name in ("set_device", "synchronize", "Stream", "Event"):
        yield f"{dotted(call.func)}()"
    for item in [*call.args, *(keyword.value for keyword in call.keywords)]:
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            if item.value == "cuda" or item.value.startswith("cuda:"):
                yield f'"{item.value}"'
            elif item.value == "nccl":
                yield '"nccl"'
