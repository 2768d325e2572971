"""Read scalars from a TensorBoard event file: its framing, and the few protobuf fields that matter.

Histograms, images, text and graphs are skipped.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEADER = struct.Struct("<QI")
_FOOTER = 4
_LARGEST_RECORD = 1 << 30  # a larger number is not a length
_LARGEST_PARSED = 256 << 10  # larger ones hold images and the like
_LARGEST_CHECKED = 4 << 10  # checking a large one costs too much
_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")
_PACKED = {5: "f", 6: "d"}  # float_val, double_val
_CONTENT = {1: "f", 2: "d", 3: "i", 9: "q", 19: "e"}  # DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64, DT_HALF
_TABLE: list[int] = []


@dataclass(slots=True)
class Scalars:
    """One record. `end` is the position after it."""

    end: int
    step: int = 0
    time: float = 0.0
    values: dict[str, float] = field(default_factory=dict)
    broken: str = ""


def read_scalars(path: str, position: int, until: int) -> Iterator[Scalars]:
    """Yield whole records from `position` on. Stop at a broken length, since the next record cannot be found."""
    with open(path, "rb") as file:
        file.seek(position)
        while position + _HEADER.size <= until:
            head = file.read(_HEADER.size)
            if len(head) < _HEADER.size:
                return
            length, check = _HEADER.unpack(head)
            if length > _LARGEST_RECORD or masked_crc(head[:8]) != check:
                yield Scalars(position, broken="a record's length does not match its checksum")
                return
            end = position + _HEADER.size + length + _FOOTER
            if end > until:
                return
            if length > _LARGEST_PARSED:
                file.seek(length + _FOOTER, os.SEEK_CUR)
                yield Scalars(end)
            else:
                yield _record(file.read(length + _FOOTER), length, end)
            position = end


def _record(block: bytes, length: int, end: int) -> Scalars:
    data, check = block[:length], block[length:]
    if length <= _LARGEST_CHECKED and _FLOAT.size == len(check) and masked_crc(data) != int.from_bytes(check, "little"):
        return Scalars(end, broken="a record does not match its checksum")
    try:
        return _event(data, end)
    except (IndexError, struct.error, ValueError):
        return Scalars(end, broken="a record is not an event")


def _event(data: bytes, end: int) -> Scalars:
    found = Scalars(end)
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            (found.time,) = _DOUBLE.unpack(value)
        elif number == 2 and isinstance(value, int):
            found.step = value - (1 << 64) if value >> 63 else value
        elif number == 5 and isinstance(value, bytes):
            for inner, summary in _fields(value):
                if inner == 1 and isinstance(summary, bytes):
                    _take_value(summary, found.values)
    return found


def _take_value(data: bytes, values: dict[str, float]) -> None:
    tag, number = "", None
    for field_number, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        if field_number == 1:
            tag = value.decode(errors="replace")
        elif field_number == 2:
            (number,) = _FLOAT.unpack(value)
        elif field_number == 8:
            number = _scalar_of_tensor(value)
    if tag and number is not None:
        values[tag] = number


def _scalar_of_tensor(data: bytes) -> float | None:
    """Return the number in a tensor of size one, or None."""
    kind, number = 0, None
    for field_number, value in _fields(data):
        if field_number == 1 and isinstance(value, int):
            kind = value
        elif field_number == 4 and isinstance(value, bytes) and kind in _CONTENT:
            number = _only(value, _CONTENT[kind])
        elif field_number in _PACKED and isinstance(value, bytes):
            number = _only(value, _PACKED[field_number])
        elif field_number in (7, 10) and isinstance(value, int):  # int_val, int64_val, not packed
            number = float(value)
        elif field_number in (7, 10) and isinstance(value, bytes):
            whole, end = _varint(value, 0)
            number = float(whole) if end == len(value) else None
    return number


def _only(value: bytes, code: str) -> float | None:
    shape = struct.Struct(f"<{code}")
    return float(shape.unpack(value)[0]) if len(value) == shape.size else None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a protobuf message: varints as numbers, all others as bytes."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if kind == 2:
            size, position = _varint(data, position)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError("a group, which events do not have")
        if position + size > len(data):
            raise ValueError("a field ends after its message")
        yield number, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError("a varint without an end")


def masked_crc(data: bytes) -> int:
    """Return the CRC-32C in the rotated form that the framing stores."""
    if not _TABLE:
        for index in range(256):
            value = index
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
            _TABLE.append(value)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
