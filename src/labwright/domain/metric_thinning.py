"""A long series shown with few points, every extreme among them; or looked up at the places of another."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from labwright.domain.metric import Points
from labwright.domain.metric_chunks import BUCKET_POINTS, LEVEL, Chunk, extremes, unpack_steps, unpack_values


def thin(points: Points, limit: int) -> Points:
    """At most about `limit` points in step order, the first, the last and every extreme among them."""
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


class Levels:
    """The extremes of every 32 points of a long series, chunk by chunk: enough to draw it."""

    def __init__(self) -> None:
        self._lows = array("d")
        self._highs = array("d")
        self._low_at = bytearray()  # where in its 32 points
        self._high_at = bytearray()
        self._starts: list[int] = []  # the number of each chunk's first bucket
        self._columns: list[tuple[Sequence[int], Sequence[float]]] = []

    def add(self, levels: bytes, steps: Sequence[int], times: Sequence[float]) -> None:
        """Those of the next chunk; without times, none are answered."""
        lows, highs, low_at, high_at = zip(*LEVEL.iter_unpack(levels), strict=True)
        self._starts.append(len(self._lows))
        self._columns.append((steps, times))
        self._lows.extend(lows)
        self._highs.extend(highs)
        self._low_at.extend(low_at)
        self._high_at.extend(high_at)

    def thin(self, limit: int) -> Points:
        """At most about `limit` points in order of arrival, every extreme among them."""
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
    """Every value of a series, to be looked up by its place; steps stay packed where their stride is constant."""

    def __init__(self) -> None:
        self._values = array("d")
        self._places: list[Sequence[float]] = []  # chunk by chunk, ascending: steps, seconds or epochs
        self._starts: list[int] = []  # the position of each chunk's first value
        self._firsts: list[float] = []  # and its place

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
        """The last value up to each; NaN before the first, and from where the next one after the last is due."""
        last, due = self._place(len(self) - 1), self._due()
        return [self._value_at(place) if place <= last or place < due else math.nan for place in places]

    def _value_at(self, place: float) -> float:
        chunk = bisect_right(self._firsts, place) - 1
        if chunk < 0:
            return math.nan
        return self._values[self._starts[chunk] + bisect_right(self._places[chunk], place) - 1]

    def _due(self) -> float:
        """Where another point would be."""
        last = self._place(len(self) - 1)
        return last + (last - self._place(len(self) - 2) if len(self) > 1 else 0)

    def places(self, limit: int) -> list[float]:
        """At most `limit`, evenly spread, the first and the last among them."""
        count = len(self)
        if count <= limit:
            return [self._place(position) for position in range(count)]
        return [self._place(index * (count - 1) // (limit - 1)) for index in range(limit)]

    def _place(self, position: int) -> float:
        chunk = bisect_right(self._starts, position) - 1
        return self._places[chunk][position - self._starts[chunk]]
