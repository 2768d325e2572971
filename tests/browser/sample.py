"""A sample project: a sweep with curves, runs in every state, an alert, files, plans."""

from __future__ import annotations

import math
import random
import struct
import zlib
from dataclasses import dataclass
from typing import Any

from tests.support.live_server import LiveServer

TRAINING = """
import math
print("\\033[1mTraining\\033[0m on \\033[36mcifar10\\033[0m")
for epoch in range(12):
    print("".join(f"\\repoch {epoch}: {done:3d}%" for done in range(0, 101, 10)))
    print(f"\\033[32mepoch {epoch}\\033[0m loss={2.3 * math.exp(-epoch / 6):.4f}")
print("\\033[33mwarning\\033[0m: gradient norm is 1e9", flush=True)
"""
ARTISTIC = """
import labwright
labwright.init()
labwright.log({"samples": labwright.Image("picture.png", caption="sixteen samples")}, step=10)
labwright.log({"drawing": labwright.Image("drawing.svg", caption="a drawing")}, step=20)
labwright.finish()
"""
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="60"><script>alert(1)</script><circle r="30"/></svg>'
PLAN = """## 📋 Plan: Does width help?

### Objective
Find out whether a wider network learns faster.

<script>alert(1)</script> and [a link](javascript:alert(2)) and ![a picture](http://example.com/x.png)
"""
SKILL = """---
name: baseline-first
description: How results are compared here.
metadata:
  variables: experiment_context
---
# Baseline first

Measure the script as it is before anything else.

{{experiment_context}}
"""


LONGER_THAN_ALL_TESTS = "sleep 7200"  # the lab fixture stops it


@dataclass
class Sample:
    """Ids of the created objects."""

    sweep: str
    seeds: list[str]  # runs of the sweep
    running: str
    failed: str
    artist: str
    plan: str
    conversation: str
    skill: str


def make_sample(lab: LiveServer) -> Sample:
    (lab.project / "train.py").write_text(TRAINING)
    (lab.project / "artist.py").write_text(ARTISTIC)
    (lab.project / "picture.png").write_bytes(picture())
    (lab.project / "drawing.svg").write_text(SVG)
    sweep, seeds = _sweep(lab)
    going = f"python3 train.py; {LONGER_THAN_ALL_TESTS}"
    running = lab.submit(going, name="resnet18 warm-up", tags=["cifar10"], params=_params(0.1))
    failed = lab.submit("python3 train.py; false", name="resnet18 breaks", tags=["cifar10"], params=_params(0.03))
    artist = lab.submit("python3 artist.py", name="artist")
    for run in (running, failed):
        log_curves(lab, run["id"], 0.03)
    lab.wait_for_end(failed["id"])
    lab.wait_for_end(artist["id"])
    asked = {"message": "train/loss rose from 0.41 to 3.9 within 20 steps.", "choices": ["ignore", "stop", "rerun"]}
    lab.post(f"/runs/{running['id']}/alerts", {**asked, "severity": "critical"})
    wild = {
        "name": "what else could make it better",
        "goal": "Less loss.",
        "metric": {"key": "train/loss", "goal": "min"},
    }
    lab.submit(LONGER_THAN_ALL_TESTS, name="an idea", sweep_id=lab.post("/sweeps/wild", wild)["id"])
    plan = lab.post("/plans", {"title": "Does width help?", "goal": "Find out.", "raw_markdown": PLAN})
    conversation = _conversation(lab, running["id"])
    skill = lab.post("/prompt-skills", {"text": SKILL})["id"]
    return Sample(sweep, seeds, running["id"], failed["id"], artist["id"], plan["id"], conversation, skill)


def _conversation(lab: LiveServer, run_id: str) -> str:
    """Create a conversation with a mention, a tool call, evidence, a note and an approval."""
    session: str = lab.post("/sessions", {})["id"]
    for words in (f"metrics of @{run_id}", "why did last fail?", "remember lr above 0.1 diverges", f"stop {run_id}"):
        lab.say(session, words)
    lab.post("/memories", {"text": "We compare on the 2024 split."})
    return session


def _params(rate: float) -> dict[str, Any]:
    return {"lr": rate, "batch_size": 128, "max_steps": 800}


def _sweep(lab: LiveServer) -> tuple[str, list[str]]:
    wanted = {
        "name": "learning rate and width",
        "goal": "Which learning rate is best for which width?",
        "base_command": "true {lr} {width} {seed}",
        "parameters": {"lr": [0.003, 0.03], "width": [32, 64]},
        "seeds": 2,
        "metric": {"key": "train/loss", "goal": "min"},
        "auto_start": True,
    }
    sweep: dict[str, Any] = lab.post("/sweeps", wanted)
    runs = lab.get(f"/runs?sweep_id={sweep['id']}")
    for run in runs:
        log_curves(lab, run["id"], run["params"]["lr"] * run["params"]["width"] / 64, steps=120)
        lab.wait_for_end(run["id"])
    return sweep["id"], [run["id"] for run in runs]


def log_curves(lab: LiveServer, run_id: str, rate: float, steps: int = 400) -> None:
    noise = random.Random(run_id)
    points: list[dict[str, Any]] = []
    for step in range(0, steps, 2):
        loss = 2.3 * math.exp(-step * rate * 0.15) + 0.12 * noise.random() + 0.05
        points.append({"key": "train/loss", "step": step, "value": loss})
        points.append({"key": "train/grad_norm", "step": step, "value": 3 * math.exp(noise.gauss(0, 0.6))})
        if step % 20 == 0:
            points.append({"key": "val/acc", "step": step, "value": 1 - loss / 2.6})
    answer = lab.call("POST", f"/runs/{run_id}/metrics", {"points": points})
    assert answer.status == 202, answer.body


def picture(size: int = 48) -> bytes:
    """Return a PNG image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + _row(y, size) for y in range(size))
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _row(y: int, size: int) -> bytes:
    return bytes(value for x in range(size) for value in (x * 5 % 256, y * 5 % 256, 160))
