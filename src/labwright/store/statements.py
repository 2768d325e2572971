"""SQL by name: each file in `sql/` has statements under `-- name:` lines."""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load_statements(name: str) -> dict[str, str]:
    text = Path(__file__).with_name("sql").joinpath(f"{name}.sql").read_text()
    parts = _NAME.split(text)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


RUNS = load_statements("runs")
REST = load_statements("rest")
METRICS = load_statements("metrics")
SWEEPS = load_statements("sweeps")
PLANS = load_statements("plans")
SESSIONS = load_statements("sessions")
