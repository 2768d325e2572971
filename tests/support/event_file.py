"""Write TensorBoard event files as the real writers do: TFRecord framing with CRC-32C, protobuf inside."""

from __future__ import annotations

import struct


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def event(time: float, step: int, *values: bytes) -> bytes:
    summary = message(5, b"".join(message(1, value) for value in values)) if values else message(3, b"brain.Event:2")
    return record(varint(1 << 3 | 1) + struct.pack("<d", time) + varint(2 << 3) + varint(step) + summary)


def simple(tag: str, value: float) -> bytes:
    return message(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value)


def tensor(tag: str, kind: int, fields: bytes) -> bytes:
    return message(1, tag.encode()) + message(8, varint(1 << 3) + varint(kind) + fields)
