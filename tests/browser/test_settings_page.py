"""The settings page: settings apply at once and are saved to the file; secrets are never shown."""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import FAILED_REQUEST, Visitor
from tests.browser.test_accessibility import serious_faults
from tests.browser.test_connection import free_port
from tests.support.live_server import LiveServer
from tests.support.receiver import receiver
from tests.support.waiting import wait_until

KEY = "sk-not-to-be-seen-0123456789"
FILE = "# ours\nkeep_days = 30  # a month\n\n[slurm]\npartition = 'gpu'\n"


@pytest.fixture
def lab(make_server: Callable[..., LiveServer], tmp_path: Path) -> LiveServer:
    server = make_server(LABWRIGHT_PORT=free_port(), XDG_CONFIG_HOME=str(tmp_path / "config"))
    server.environment.pop("ANTHROPIC_API_KEY", None)
    (server.project / "labwright.toml").write_text(FILE)
    return server.start()


@pytest.fixture
def page(lab: LiveServer, make_visitor: Callable[..., Visitor]) -> Page:
    visitor = make_visitor(lab)
    visitor.allow(FAILED_REQUEST)  # refused values below
    return visitor.sign_in("#/settings")


def shown_anywhere(lab: LiveServer, page: Page) -> str:
    told = [lab.call("GET", path).body.decode() for path in ("/settings", "/models", "/events?limit=5000")]
    return page.content() + "".join(told) + (lab.state / "logs" / "server.log").read_text()


def test_a_model_and_its_key_are_set(lab: LiveServer, page: Page, tmp_path: Path) -> None:
    file = lab.project / "labwright.toml"
    page.get_by_label("model", exact=True).fill("anthropick:claude-sonnet-5-5")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("alert")).to_contain_text("Did you mean anthropic:claude-sonnet-5-5?")
    assert file.read_text() == FILE
    page.get_by_label("model", exact=True).fill("anthropic:claude-sonnet-5-5")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("status")).to_contain_text("Saved and applied.")
    row = page.get_by_label("Models in use").get_by_role("row").filter(has_text="default")
    expect(row).to_contain_text("There is no key for anthropic")

    page.get_by_label("Key of anthropic").fill(KEY)
    page.get_by_label("Key of anthropic").press("Enter")
    expect(row).to_contain_text("from /")
    expect(page.locator(".toasts")).to_contain_text("Saved the key of anthropic.")
    expect(page.get_by_label("Key of anthropic")).to_have_value("")
    kept = tmp_path / "config" / "labwright" / "keys" / "anthropic"
    assert kept.read_text().strip() == KEY
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert serious_faults(page) == []
    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Remove key").click()
    expect(row).to_contain_text("There is no key for anthropic")
    assert not kept.exists()
    assert KEY not in shown_anywhere(lab, page)


def test_saved_limits_keep_the_rest_of_the_file(lab: LiveServer, page: Page) -> None:
    file = lab.project / "labwright.toml"
    page.get_by_role("tab", name="Limits").click()
    for mistyped in ("-3", "0x10"):
        page.get_by_label("keep_days").fill(mistyped)
        page.get_by_role("button", name="Save changes").click()
        expect(page.get_by_role("alert")).to_have_text(
            re.compile("^keep_days must be a whole number from 0 .*Nothing was saved")
        )
    page.get_by_label("keep_days").fill("45")
    page.get_by_label("grace_seconds").fill("3")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("status")).to_contain_text("grace_seconds takes effect after a restart")
    assert file.read_text().startswith("# ours\nkeep_days = 45  # a month\n")
    assert tomllib.loads(file.read_text())["slurm"] == {"partition": "gpu"}
    assert serious_faults(page) == []
    lab.restart()
    assert {one["name"]: one["value"] for one in lab.get("/settings")}["grace_seconds"] == 3


def test_a_channel_is_added_tested_and_removed(lab: LiveServer, page: Page) -> None:
    file = lab.project / "labwright.toml"
    page.get_by_role("tab", name="Notifications").click()
    with receiver() as hook:
        added = page.get_by_role("form", name="Add channel")
        added.get_by_label("Kind").select_option("webhook")
        added.get_by_label("Address").fill("hooks.slack.com/services")
        page.get_by_role("button", name="Add channel").click()
        expect(page.locator(".toasts")).to_contain_text("The address is not an http or https URL.")
        added.get_by_label("Address").fill(hook.url("secret-path"))
        page.get_by_role("button", name="Add channel").click()
        expect(page.get_by_label("Channels").get_by_role("row").filter(has_text="webhook")).to_be_visible()
        page.get_by_role("button", name="Send test").click()
        expect(page.get_by_label("Deliveries")).to_contain_text("Test from Labwright")
        wait_until(lambda: hook.got, "the test to arrive")
    assert serious_faults(page) == []
    page.get_by_role("button", name="Remove webhook").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove channel").click()
    expect(page.get_by_text("No channels")).to_be_visible()
    assert "notify" not in tomllib.loads(file.read_text())
    assert "secret-path" not in shown_anywhere(lab, page) + file.read_text()


def test_drafts_survive_a_reload_except_secrets(page: Page) -> None:
    page.get_by_label("Key of anthropic").fill(KEY)
    page.get_by_role("tab", name="Limits").click()
    page.get_by_label("keep_days").fill("45")
    page.get_by_role("tab", name="Notifications").click()
    added = page.get_by_role("form", name="Add channel")
    added.get_by_label("Kind").select_option("webhook")
    added.get_by_label("Name").fill("the team")
    added.get_by_label("Address").fill("https://hooks.example/secret-path")
    page.reload()
    expect(added.get_by_label("Kind")).to_have_value("webhook")
    expect(added.get_by_label("Name")).to_have_value("the team")
    expect(added.get_by_label("Address")).to_have_value("")
    kept = page.evaluate("JSON.stringify([sessionStorage, localStorage])")
    assert "the team" in kept
    assert "secret-path" not in kept and KEY not in kept
    added.get_by_role("button", name="Discard").click()
    expect(added.get_by_label("Name")).to_have_value("")
    page.get_by_role("tab", name="Limits").click()
    expect(page.get_by_label("keep_days")).to_have_value("45")
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_label("keep_days")).to_have_value("30")
    page.reload()
    expect(page.get_by_label("keep_days")).to_have_value("30")
