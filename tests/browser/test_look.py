"""Pictures of every page, light, dark and on a phone, kept under build/; and what must hold at 390 px."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.support.live_server import LiveServer

TRAINING = """
import math, time
print("\\033[1mTraining\\033[0m on \\033[36mcifar10\\033[0m")
for epoch in range(12):
    print("".join(f"\\repoch {epoch}: {done:3d}%" for done in range(0, 101, 10)))
    print(f"\\033[32mepoch {epoch}\\033[0m loss={2.3 * math.exp(-epoch / 6):.4f}")
print("\\033[33mwarning\\033[0m: gradient norm is 1e9", flush=True)
"""
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}, "has_touch": True},
}


def curves(lab: LiveServer, run_id: str, rate: float) -> None:
    noise = random.Random(rate)
    points: list[dict[str, Any]] = []
    for step in range(0, 400, 2):
        loss = 2.3 * math.exp(-step * rate * 0.15) + 0.12 * noise.random() + 0.05
        points.append({"key": "train/loss", "step": step, "value": loss})
        points.append({"key": "train/grad_norm", "step": step, "value": 3 * math.exp(noise.gauss(0, 0.6))})
        if step % 20 == 0:
            points.append({"key": "val/loss", "step": step, "value": loss * 1.1 if step < 340 else "NaN"})
            points.append({"key": "val/acc", "step": step, "value": 1 - loss / 2.6})
    assert lab.call("POST", f"/runs/{run_id}/metrics", {"points": points}).status == 202


@pytest.fixture(scope="module")
def full_lab(lab: LiveServer) -> dict[str, str]:
    (lab.project / "train.py").write_text(TRAINING)
    ids = {}
    for rate in (0.003, 0.01, 0.03, 0.1):
        fields: dict[str, Any] = {
            "params": {"lr": rate, "batch_size": 128, "optimizer": "adamw"},
            "tags": ["cifar10"],
            "seed": 7,
        }
        end = "; python3 -c 'raise RuntimeError(\"loss is NaN\")'" if rate == 0.03 else ""
        wait = "; sleep 300" if rate == 0.1 else ""
        run = lab.submit(f"python3 train.py --lr {rate}{end}{wait}", name=f"resnet18 lr={rate}", **fields)
        curves(lab, run["id"], rate)
        ids[str(rate)] = run["id"]
    for name in ("0.003", "0.01", "0.03"):
        lab.wait_for_end(ids[name])
    asked = {"message": "train/loss rose from 0.41 to 3.9 within 20 steps.", "choices": ["ignore", "stop", "rerun"]}
    lab.post(f"/runs/{ids['0.1']}/alerts", {**asked, "severity": "critical"})
    return ids


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_has_its_picture(
    full_lab: dict[str, str], lab: LiveServer, make_visitor: Callable[..., Visitor], look: str
) -> None:
    visitor = make_visitor(lab, **LOOKS[look])
    page = visitor.sign_in("#/runs")
    expect(page.get_by_role("link", name="resnet18 lr=0.1", exact=True)).to_be_visible()
    is_inside(visitor)
    visitor.picture(f"runs-{look}")

    visitor.open(f"#/runs/{full_lab['0.1']}")
    expect(page.locator(".chart canvas").nth(3)).to_be_attached()
    page.get_by_label("Smoothing").fill("0.6")
    page.get_by_label("Smoothing").blur()
    page.wait_for_timeout(300)  # until the curves are drawn
    is_inside(visitor)
    visitor.picture(f"run-{look}")

    visitor.open(f"#/runs/{full_lab['0.03']}")
    page.get_by_role("button", name="First error").click()
    expect(page.locator(".line-marked")).to_be_in_viewport()
    is_inside(visitor)
    visitor.picture(f"run-failed-{look}")
    page.get_by_role("heading", name="Facts").scroll_into_view_if_needed()
    visitor.picture(f"run-details-{look}")

    visitor.open("#/alerts")
    expect(page.get_by_role("article").first).to_be_visible()
    is_inside(visitor)
    visitor.picture(f"alerts-{look}")


def is_inside(visitor: Visitor) -> None:
    """Nothing makes the page wider than its window, and every button can be hit by a finger or a mouse."""
    wide = visitor.page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
    main = visitor.page.evaluate("(box => box.scrollWidth - box.clientWidth)(document.querySelector('main'))")
    assert (wide, main) == (0, 0)
    heights = visitor.page.evaluate(
        "[...document.querySelectorAll('main button, nav a')].map((one) => one.offsetHeight)"
    )
    assert min(height for height in heights if height) >= 18
