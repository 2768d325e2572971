"""`python -m labwright.sidecar.printed LOG`: print its metrics as JSON, `{key: {"points": [[step, value]]}}`."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from labwright.sidecar.printed.reader import PrintedReader

_BLOCK = 1 << 20


def main(path: str) -> None:
    reader = PrintedReader()
    found: dict[str, Any] = {}
    with open(path, "rb") as file:
        while True:
            block = file.read(_BLOCK)
            for key, step, value in reader.feed(block) if block else reader.close():
                number = value if math.isfinite(value) else json.dumps(value)
                found.setdefault(key, {"points": []})["points"].append([step, number])
            if not block:
                break
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
