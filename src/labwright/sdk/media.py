"""Images and histograms. They become files beside the metrics. NumPy, PIL and Matplotlib are used but not imported."""

from __future__ import annotations

import math
import os
import sys

from labwright.sdk.held import WandbStandIn
from labwright.sdk.lines import NotLoggable, fact_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_COPIED_BYTES = 16 << 20  # larger image files are kept by reference
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_BINS = 64
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # channels: grey, grey with alpha, RGB, RGBA


class Image:
    """An image: a path, an array (H×W or H×W×C), a PyTorch tensor, a PIL image, a Matplotlib figure."""

    kind = "image"

    def __init__(self, data_or_path: Any, mode: str | None = None, caption: str | None = None, **_ignored: Any) -> None:
        self.data = data_or_path
        self.mode = mode
        self.caption = caption

    def store(self, run_dir: str, key: str, step: int) -> str:
        """Write its file. Return the path, relative to the run folder or absolute. Raise NotLoggable or OSError."""
        if isinstance(self.data, (str, os.PathLike)):
            return _store_image_file(os.fspath(self.data), run_dir, key, step)
        return store_file(run_dir, key, step, "png", _png_of(self.data))


class Histogram:
    """A histogram of values, or of counts and edges as `numpy.histogram` returns them."""

    kind = "histogram"
    caption = None

    def __init__(self, sequence: Any = None, np_histogram: Any = None, num_bins: int = _BINS, **_ignored: Any) -> None:
        self.sequence = sequence
        self.np_histogram = np_histogram
        self.num_bins = num_bins

    def facts(self) -> dict[str, Any]:
        if self.np_histogram is not None:
            counts, edges = self.np_histogram
            return {"counts": [float(count) for count in counts], "edges": [float(edge) for edge in edges]}
        return _binned(self.sequence, max(1, min(int(self.num_bins), 512)))

    def store(self, run_dir: str, key: str, step: int) -> str:
        return store_file(run_dir, key, step, "json", fact_line(self.facts()))


def as_media(value: Any) -> list[Any]:
    """Return a list of media to store: an image, a histogram, a figure or a list of them; empty for other values."""
    if isinstance(value, (Image, Histogram)):
        return [value]
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, (Image, Histogram)) for item in value):
        return list(value)
    if isinstance(value, WandbStandIn):
        raise NotLoggable(f"a {type(value).__name__}, which Labwright does not store")
    if hasattr(value, "savefig"):
        return [Image(value)]
    return []


def store_file(run_dir: str, key: str, step: int, suffix: str, content: bytes) -> str:
    """Write a file and rename it, so that readers of the log line find the whole file. Return its path."""
    safe = "".join(letter if letter in _SAFE else "_" for letter in key[:80]).lstrip(".")
    relative = f"artifacts/{safe}-{step}-{os.urandom(4).hex()}.{suffix}"
    path = f"{run_dir}/{relative}"
    os.makedirs(f"{run_dir}/artifacts", mode=0o700, exist_ok=True)
    try:
        with open(f"{path}.new", "wb") as file:
            file.write(content)
    except OSError:
        _remove(f"{path}.new")
        raise
    os.replace(f"{path}.new", path)
    return relative


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # the first error is reported; half a file does no harm


def _store_image_file(path: str, run_dir: str, key: str, step: int) -> str:
    """Store a copy, since scripts overwrite their images. A very large image stays where it is."""
    path = os.path.abspath(path)
    if os.path.getsize(path) > _COPIED_BYTES:
        return path
    with open(path, "rb") as file:
        content = file.read()
    suffix = os.path.splitext(path)[1].lstrip(".")[:8] or "img"
    return store_file(run_dir, key, step, suffix if set(suffix) <= _SAFE else "img", content)


def _png_of(data: Any) -> bytes:
    from io import BytesIO

    target = BytesIO()
    if hasattr(data, "savefig"):
        data.savefig(target, format="png")
        return target.getvalue()
    if hasattr(data, "save") and hasattr(data, "mode"):
        data.save(target, format="PNG")
        return target.getvalue()
    return _png_of_array(data)


def _png_of_array(data: Any) -> bytes:
    if hasattr(data, "detach"):
        data = _from_tensor(data)
    if not (hasattr(data, "shape") and hasattr(data, "tobytes")):
        raise NotLoggable(f"{type(data).__name__} is not an image")
    shape = tuple(int(size) for size in data.shape)
    if len(shape) not in (2, 3):
        raise NotLoggable(f"an array of shape {shape} is not an image; use H×W or H×W×C")
    channels = shape[2] if len(shape) == 3 else 1
    try:
        return encode_png(_bytes_of(data), shape[1], shape[0], channels)
    except ValueError as error:
        raise NotLoggable(str(error)) from None


def _from_tensor(tensor: Any) -> Any:
    """Return an array in the order H×W×C. PyTorch's own order is C×H×W."""
    array = tensor.detach().cpu().numpy()
    first_is_channels = len(array.shape) == 3 and array.shape[0] in (1, 3, 4) and array.shape[2] not in (1, 3, 4)
    return array.transpose(1, 2, 0) if first_is_channels else array


def _bytes_of(array: Any) -> bytes:
    """Return eight bits per channel. Fractions from 0 to 1 are scaled, other numbers clipped."""
    if str(array.dtype) == "bool":
        array = array.astype("uint8") * 255
    elif str(array.dtype) != "uint8":
        fractions = str(array.dtype).startswith("float") and float(array.max()) <= 1.0
        array = (array * 255 if fractions else array).clip(0, 255).astype("uint8")
    content: bytes = array.tobytes()
    return content


def _binned(sequence: Any, bins: int) -> dict[str, Any]:
    if hasattr(sequence, "detach"):
        sequence = sequence.detach().cpu().numpy()
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(sequence, "dtype"):
        flat = numpy.asarray(sequence, dtype="float64").ravel()
        counts, edges = numpy.histogram(flat[numpy.isfinite(flat)], bins=bins)
        not_finite = int(flat.size - numpy.isfinite(flat).sum())
        return {"counts": counts.tolist(), "edges": edges.tolist(), "not_finite": not_finite}
    values = [float(value) for value in _flat(sequence)]
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts = [0] * bins
    scale = bins / (high - low)
    for value in finite:
        counts[min(bins - 1, int((value - low) * scale))] += 1
    edges = [low + (high - low) * index / bins for index in range(bins + 1)]
    return {"counts": counts, "edges": edges, "not_finite": len(values) - len(finite)}


def _flat(values: Any) -> Any:
    if hasattr(values, "tolist"):
        values = values.tolist()
    for value in values if hasattr(values, "__iter__") else [values]:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


def encode_png(pixels: bytes, width: int, height: int, channels: int) -> bytes:
    """Return a PNG file of these pixels: eight bits a channel, row by row.

    It is compressed lightly, since the training loop waits for it.
    """
    from struct import pack
    from zlib import compress, crc32

    row = width * channels
    if channels not in _COLOR_TYPES or len(pixels) != row * height or not pixels:
        raise ValueError(f"{len(pixels)} bytes are not an image of {width} × {height} × {channels}")
    raw = b"".join(b"\0" + pixels[start : start + row] for start in range(0, len(pixels), row))
    header = pack(">IIBBBBB", width, height, 8, _COLOR_TYPES[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", compress(raw, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        pack(">I", len(content)) + kind + content + pack(">I", crc32(kind + content)) for kind, content in chunks
    )
