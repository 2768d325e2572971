"""Series as they are stored: chunks of up to 2,048 points.

Beside the values a chunk has the extremes of every 32 points, so that a million points can be drawn without touching
them all. Standard library only, so arrays instead of a numeric package.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeVar

from labwright.domain.metric import STEPS, Points

CHUNK_POINTS = 2048
SMALL_POINTS = 256
BUCKET_POINTS = 32
LEVEL = struct.Struct("<ddBB")  # the least and the greatest of a bucket, and where in it they are
_FEW = 4  # so few numbers do not get smaller, and trying takes longer than all else
_STRIDE = struct.Struct("<qq")  # the first step, and what is added for each further one
Number = TypeVar("Number", "array[int]", "array[float]")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Points as they are stored."""

    count: int
    steps: bytes
    times: bytes
    levels: bytes
    values: bytes


def pack(points: Points) -> Chunk:
    if len(points) == 1:
        return _pack_one(points.steps[0], points.times, points.values)
    return Chunk(
        len(points),
        _pack_steps(points.steps),
        _pack_times(points.times),
        _pack_levels(points.values),
        _squeeze(_little(points.values)),
    )


def _pack_one(step: int, times: array[float], values: array[float]) -> Chunk:
    """As any other, without looking for what only several points have: a run may begin with very many of these."""
    levels = LEVEL.pack(values[0], values[0], 0, 0)
    return Chunk(1, _STRIDE.pack(step, 1), b"r" + _little(times), levels, b"r" + _little(values))


def unpack(chunk: Chunk) -> Points:
    steps = array("q", unpack_steps(chunk.steps, chunk.count))
    return Points(steps, unpack_times(chunk.times), unpack_values(chunk.values))


def unpack_values(data: bytes) -> array[float]:
    values = array("d")
    values.frombytes(_unsqueeze(data))
    return _native(values)


def _pack_steps(steps: array[int]) -> bytes:
    """A constant stride, the usual case, takes 16 bytes whatever the count; that length tells it from all else."""
    first = steps[0]
    stride = steps[1] - first if len(steps) > 1 else 1
    fits = stride and stride in STEPS and first + stride * (len(steps) - 1) == steps[-1]
    if fits and steps == array("q", range(first, steps[-1] + stride, stride)):
        return _STRIDE.pack(first, stride)
    plain = _little(steps)
    small = b"z" + zlib.compress(plain, 1)
    return small if len(small) != _STRIDE.size else b"r" + plain


def unpack_steps(data: bytes, count: int) -> Sequence[int]:
    if len(data) == _STRIDE.size:
        first, stride = _STRIDE.unpack(data)
        return range(first, first + stride * count, stride)
    steps = array("q")
    steps.frombytes(_unsqueeze(data))
    return _native(steps)


def _pack_times(times: array[float]) -> bytes:
    """Milliseconds between neighbours compress well; a clock that jumped falls back to plain numbers."""
    if len(times) <= _FEW:
        return b"r" + _little(times)
    milliseconds = [int(time * 1000) for time in times]
    gaps = [b - a for a, b in pairwise(milliseconds)]
    if all(0 <= gap < 2**32 for gap in gaps):
        return b"g" + zlib.compress(struct.pack("<q", milliseconds[0]) + _little(array("I", gaps)), 6)
    return b"p" + zlib.compress(_little(times), 1)


def unpack_times(data: bytes) -> array[float]:
    plain = data[1:] if data[:1] == b"r" else zlib.decompress(data[1:])
    if data[:1] in (b"p", b"r"):
        times = array("d")
        times.frombytes(plain)
        return _native(times)
    (moment,) = struct.unpack("<q", plain[:8])
    gaps = array("I")
    gaps.frombytes(plain[8:])
    return array("d", [at / 1000 for at in accumulate(_native(gaps), initial=moment)])


def _pack_levels(values: array[float]) -> bytes:
    """Minimum and maximum of each 32 points, and where in them they are."""
    parts = []
    for start in range(0, len(values), BUCKET_POINTS):
        low, high = extremes(values[start : start + BUCKET_POINTS])
        parts.append(LEVEL.pack(values[start + low], values[start + high], low, high))
    return b"".join(parts)


def extremes(values: Sequence[float]) -> tuple[int, int]:
    """Positions of the least and the greatest number; NaN is neither, unless there is nothing else."""
    total = sum(values)
    if total == total:
        return values.index(min(values)), values.index(max(values))
    numbers = [index for index, value in enumerate(values) if value == value]
    if not numbers:
        return 0, 0
    return min(numbers, key=values.__getitem__), max(numbers, key=values.__getitem__)


def _little(values: array[int] | array[float]) -> bytes:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()


def _native(values: Number) -> Number:
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _squeeze(data: bytes) -> bytes:
    if len(data) <= _FEW * 8:
        return b"r" + data
    small = zlib.compress(data, 1)
    return b"z" + small if len(small) < len(data) * 0.9 else b"r" + data


def _unsqueeze(data: bytes) -> bytes:
    return zlib.decompress(data[1:]) if data[:1] == b"z" else data[1:]
