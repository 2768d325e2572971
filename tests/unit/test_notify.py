"""Channels in the configuration, and the message of each event."""

from __future__ import annotations

import os
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from labwright.compute.notify import load_channels
from labwright.compute.notify.message import Notification, message_of
from labwright.compute.notify.senders import Desktop, NotSent, Slack, Webhook
from labwright.domain.errors import Invalid
from labwright.domain.event import Event, EventType
from labwright.domain.run import Run, RunStatus
from labwright.paths import ProjectPaths
from tests.support.receiver import receiver

SECRET = "very-secret"
ENVIRONMENT = {
    "HOOK": f"https://hooks.example.org/{SECRET}",
    "CLEAR": f"http://hooks.example.org/{SECRET}",
    "BAD": f"ftp://x/{SECRET}",
    "ODD": f"http://x/{SECRET} y",
}
HOOK = '[[notify]]\nkind = "webhook"\nurl_env = "HOOK"\n'


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ('[[notify]]\nkind = "pigeon"', "`kind`"),
        ('[[notify]]\nkind = "slack"', "one of `url_env` and `url_file`"),
        ('[[notify]]\nkind = "slack"\nurl_env = "HOOK"\nurl_file = "hook"', "one of `url_env` and `url_file`"),
        ('[[notify]]\nkind = "slack"\nurl_env = "NOT_THERE"', "NOT_THERE is not set"),
        (f'[[notify]]\nkind = "slack"\nurl_env = "https://x/{SECRET}"', "the name of a variable"),
        (f'[[notify]]\nkind = "slack"\nurl = "https://x/{SECRET}"', "must not be in this file"),
        ('[[notify]]\nkind = "slack"\nurl_file = "hook"', "others may read"),
        ('[[notify]]\nkind = "slack"\nurl_file = "no-such-file"', "cannot be read"),
        ('[[notify]]\nkind = "slack"\nurl_env = "BAD"', "not an http or https address"),
        ('[[notify]]\nkind = "slack"\nurl_env = "ODD"', "not an http or https address"),
        ('[[notify]]\nkind = "desktop"\nurl_env = "HOOK"', "has no address"),
        (f'{HOOK}min_severity = "loud"', "`min_severity`"),
        (f'{HOOK}events = ["everything"]', "`events`"),
        (f"{HOOK}events = []", "`events`"),
        (f"{HOOK}name = 3", "`name` must be text"),
        (f'{HOOK}colour = "red"', "unknown colour"),
        (f'{HOOK}answers = "yes"', "`answers` must be true or false"),
        (f"{HOOK}answers = true", "needs approvals"),
        ('[[notify]]\nkind = "slack"\nurl_env = "HOOK"\nevents = ["approval"]\nanswers = true', "cannot answer"),
        ('[[notify]]\nkind = "webhook"\nurl_env = "CLEAR"\nevents = ["approval"]\nanswers = true', "is not https"),
        (f'{HOOK}[[notify]]\nkind = "desktop"\nname = "webhook"', "has the name 'webhook'"),
        ('[notify]\nkind = "desktop"', "[[notify]] tables"),
    ],
)
def test_mistake_is_reported_without_the_address(tmp_path: Path, config: str, says: str) -> None:
    (tmp_path / "labwright.toml").write_text(config)
    (tmp_path / "hook").write_text(ENVIRONMENT["HOOK"])
    os.chmod(tmp_path / "hook", 0o640)
    with pytest.raises(Invalid) as refused:
        load_channels(ProjectPaths(tmp_path), ENVIRONMENT)
    assert says in refused.value.message
    assert SECRET not in refused.value.message + refused.value.hint


def test_channels_have_unique_names_and_show_only_a_host(tmp_path: Path) -> None:
    (tmp_path / "labwright.toml").write_text(f'{HOOK}{HOOK}{HOOK}name = "pager"\nevents = ["run_failed"]')
    found = load_channels(ProjectPaths(tmp_path), ENVIRONMENT)
    assert [channel.name for channel in found] == ["webhook", "webhook-2", "pager"]
    assert found[0].sender.target == "https://hooks.example.org/…"
    assert SECRET not in repr(found)


def run(**facts: Any) -> Run:
    return Run(id="run-1", name="n", command="c", workdir="/", created_at="t", created_by="person", **facts)


def moved(to: RunStatus) -> Event:
    data = {"from": "running", "to": to, "reason": "", "exit_code": 1}
    return Event(type=EventType.RUN_STATUS, actor="system", time="t", run_id="run-1", data=data)


@pytest.mark.parametrize(
    ("to", "kind"),
    [
        ("failed", "run_failed"),
        ("lost", "run_failed"),
        ("finished", "run_finished"),
        ("stopped", None),
        ("running", None),
    ],
)
def test_end_of_a_run_is_news_unless_a_user_caused_it(to: str, kind: str | None) -> None:
    message = message_of(moved(RunStatus(to)), run(), "p")
    assert (message and message.kind) == kind


def test_exit_code_is_named_once() -> None:
    message = message_of(moved(RunStatus.FAILED), run(error="Exit code 1"), "p")
    assert message is not None and message.text == "exit code 1"


def test_reason_sentence_is_joined_with_the_duration() -> None:
    times = {"started_at": "2026-01-01T00:00:00.000Z", "ended_at": "2026-01-01T00:00:05.000Z"}
    message = message_of(moved(RunStatus.FAILED), run(error="No GPU after 3 tries.", **times), "p")
    assert message is not None and message.text == "exit code 1, No GPU after 3 tries, after 5.0s"


def test_finished_run_shows_its_own_results_without_system_metrics() -> None:
    sampled = {f"system/{name}": {"last": 1.0, "source": "system"} for name in ("cpu_percent", "memory_mb")}
    logged = {f"train/{name}": {"last": 0.25, "source": "sdk"} for name in "abcdef"}
    message = message_of(moved(RunStatus.FINISHED), run(summary={**sampled, **logged}), "p")
    assert message is not None and message.details == [f"train/{name} 0.25" for name in "abcde"]


def test_imported_run_is_not_news() -> None:
    assert message_of(moved(RunStatus.FAILED), run(tags=("imported",)), "p") is None


def test_approval_request_of_an_agent_is_news_with_how_to_answer() -> None:
    data = {"approval_id": "ask-1", "session_id": "chat-1", "question": "Delete run-1?", "status": "pending"}
    message = message_of(Event(type=EventType.APPROVAL_ASKED, actor="agent:chat-1", time="t", data=data), None, "p")
    assert message is not None
    assert (message.kind, message.text) == ("approval", "Delete run-1?")
    assert message.how_to_answer == "labwright approvals answer ask-1 approve|deny"


def test_question_of_a_wild_loop_names_the_loop() -> None:
    data = {"alert_id": "alert-1", "severity": "warning", "message": "m", "choices": ["stop"], "wild_id": "wild-1"}
    message = message_of(Event(type=EventType.ALERT_RAISED, actor="agent:wild-1", time="t", data=data), None, "p")
    assert message is not None and message.title == "Warning: wild-1"


def test_message_survives_storage() -> None:
    message = message_of(moved(RunStatus.FAILED), run(error="it broke"), "p")
    assert message is not None and Notification.from_dict(message.to_dict()) == message
    assert message.text == "exit code 1, it broke"


def test_neither_sender_shows_its_address() -> None:
    for sender in (Webhook(ENVIRONMENT["HOOK"]), Slack(ENVIRONMENT["HOOK"])):
        assert SECRET not in repr(sender) and SECRET not in sender.target


@pytest.mark.parametrize(("said", "seconds"), [("7", 7), ("soon", 0)])
def test_retry_after_seconds_are_respected(said: str, seconds: float) -> None:
    assert wait_asked_for(said) == seconds


@pytest.mark.parametrize(("ahead", "least", "most"), [(1800, 1500, 1800), (-60, 0, 0), (86400, 3600, 3600)])
def test_retry_after_date_is_respected(ahead: float, least: float, most: float) -> None:
    assert least <= wait_asked_for(formatdate(time.time() + ahead, usegmt=True)) <= most


def wait_asked_for(said: str) -> float:
    message = message_of(moved(RunStatus.FAILED), run(), "p")
    assert message is not None
    with receiver(lambda _count: (503, {"Retry-After": said})) as busy, pytest.raises(NotSent) as refused:
        Webhook(busy.url(SECRET)).send(message, "key", 10)
    return refused.value.retry_after


@pytest.mark.parametrize("reason", ["no daemon shows notices", ""])
def test_desktop_notification_failure_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    (tmp_path / "notify-send").write_text(f"#!/bin/sh\necho '{reason}' >&2; exit 1\n")
    (tmp_path / "notify-send").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    message = message_of(moved(RunStatus.FAILED), run(), "p")
    assert message is not None
    with pytest.raises(NotSent) as refused:
        Desktop().send(message, "key", 10)
    assert str(refused.value) == ("notify-send ended with 1" + (f": {reason}" if reason else ""))
