"""Stored metric series: chunks of up to 2,048 points, and how a long series is thinned for a chart.

Besides the values, a chunk stores the minimum and maximum of every 32 points, so a million points can be drawn without
reading them all. Standard library only, so arrays instead of a numeric package.
"""

from __future__ import annotations

import math
import struct
import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeVar

from labwright.domain.metrics.points import STEPS, Points

CHUNK_POINTS = 2048
SMALL_POINTS = 256
BUCKET_POINTS = 32
LEVEL = struct.Struct("<ddBB")  # minimum and maximum of a bucket, and their positions in it
_FEW = 4  # compressing so few numbers saves nothing and takes longest
_STRIDE = struct.Struct("<qq")  # the first step and the distance between steps
Number = TypeVar("Number", "array[int]", "array[float]")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Points in their stored form."""

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
    """Pack one point without the work that only several points need: a run may start with many of these."""
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
    """Pack steps. A constant stride, the usual case, takes 16 bytes; no other form has that length."""
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
    """Pack times as milliseconds between neighbours, or as plain numbers if the clock jumped."""
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
    """Pack minimum and maximum of each 32 points with their positions."""
    parts = []
    for start in range(0, len(values), BUCKET_POINTS):
        low, high = extremes(values[start : start + BUCKET_POINTS])
        parts.append(LEVEL.pack(values[start + low], values[start + high], low, high))
    return b"".join(parts)


def extremes(values: Sequence[float]) -> tuple[int, int]:
    """Return the positions of minimum and maximum. NaN counts only if there is nothing else."""
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


def thin(points: Points, limit: int) -> Points:
    """Return about `limit` points in step order, including the first, the last and every extreme."""
    if len(points) <= limit:
        return points
    kept = {0, len(points) - 1}
    for start, end in _buckets(len(points), max(1, limit // 2 - 1)):
        low, high = extremes(points.values[start:end])
        kept |= {start + low, start + high}
    return points.at(sorted(kept))


def _buckets(count: int, parts: int) -> Iterator[tuple[int, int]]:
    for index in range(parts):
        start, end = index * count // parts, (index + 1) * count // parts
        if start < end:
            yield start, end


class BucketExtremes:
    """Minimum and maximum of every 32 points of a long series, chunk by chunk: enough to draw it."""

    def __init__(self) -> None:
        self._lows = array("d")
        self._highs = array("d")
        self._low_at = bytearray()  # position in its 32 points
        self._high_at = bytearray()
        self._starts: list[int] = []  # index of each chunk's first bucket
        self._columns: list[tuple[Sequence[int], Sequence[float]]] = []

    def add(self, levels: bytes, steps: Sequence[int], times: Sequence[float]) -> None:
        """Add the next chunk. Without times, the thinned points have time 0."""
        lows, highs, low_at, high_at = zip(*LEVEL.iter_unpack(levels), strict=True)
        self._starts.append(len(self._lows))
        self._columns.append((steps, times))
        self._lows.extend(lows)
        self._highs.extend(highs)
        self._low_at.extend(low_at)
        self._high_at.extend(high_at)

    def thin(self, limit: int) -> Points:
        """Return about `limit` points in order of arrival, including every extreme."""
        found = Points.empty()
        for start, end in _buckets(len(self._lows), max(1, limit // 2 - 1)):
            low = start + extremes(self._lows[start:end])[0]
            high = start + extremes(self._highs[start:end])[1]
            low_at = low * BUCKET_POINTS + self._low_at[low]
            high_at = high * BUCKET_POINTS + self._high_at[high]
            for at, value in sorted({low_at: self._lows[low], high_at: self._highs[high]}.items()):
                self._put(found, at, value)
        return found

    def _put(self, found: Points, at: int, value: float) -> None:
        chunk = bisect_right(self._starts, at // BUCKET_POINTS) - 1
        steps, times = self._columns[chunk]
        position = at - self._starts[chunk] * BUCKET_POINTS
        found.steps.append(steps[position])
        found.times.append(times[position] if times else 0.0)
        found.values.append(value)


class WholeSeries:
    """Every value of a series, for lookup by position on the x axis. Steps with a constant stride stay packed."""

    def __init__(self) -> None:
        self._values = array("d")
        self._places: list[Sequence[float]] = []  # per chunk, ascending: steps, seconds or epochs
        self._starts: list[int] = []  # index of each chunk's first value
        self._firsts: list[float] = []  # and its x position

    def add(self, chunk: Chunk) -> None:
        self.add_points(unpack_steps(chunk.steps, chunk.count), unpack_values(chunk.values))

    def add_points(self, places: Sequence[float], values: Sequence[float]) -> None:
        self._firsts.append(places[0])
        self._starts.append(len(self._values))
        self._places.append(places)
        self._values.extend(values)

    def __len__(self) -> int:
        return len(self._values)

    def values_at(self, places: Iterable[float]) -> list[float]:
        """Return the last value up to each position: NaN before the first point and where a further point is due."""
        last, due = self._place(len(self) - 1), self._due()
        return [self._value_at(place) if place <= last or place < due else math.nan for place in places]

    def _value_at(self, place: float) -> float:
        chunk = bisect_right(self._firsts, place) - 1
        if chunk < 0:
            return math.nan
        return self._values[self._starts[chunk] + bisect_right(self._places[chunk], place) - 1]

    def _due(self) -> float:
        """Return the position where a further point is due."""
        last = self._place(len(self) - 1)
        return last + (last - self._place(len(self) - 2) if len(self) > 1 else 0)

    def places(self, limit: int) -> list[float]:
        """Return at most `limit` evenly spread positions, including the first and the last."""
        count = len(self)
        if count <= limit:
            return [self._place(position) for position in range(count)]
        return [self._place(index * (count - 1) // (limit - 1)) for index in range(limit)]

    def _place(self, position: int) -> float:
        chunk = bisect_right(self._starts, position) - 1
        return self._places[chunk][position - self._starts[chunk]]
