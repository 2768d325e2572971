"""Notifications reach people once, with retries and across a kill. They block nothing, and addresses stay secret."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

from labwright.domain.actor import Scope
from labwright.tokens import mint
from tests.acceptance.test_cli import answer, labwright
from tests.support.live_server import LiveServer
from tests.support.receiver import receiver
from tests.support.waiting import wait_until

MakeServer = Callable[..., LiveServer]
SECRET = "T0123-very-secret-path"
FAST = {"LABWRIGHT_NOTIFY_RETRY_SECONDS": "0.05", "LABWRIGHT_NOTIFY_TIMEOUT_SECONDS": "1"}


def channel(kind: str = "webhook", variable: str = "LAB_HOOK", **more: object) -> str:
    fields = {"kind": kind, "url_env": variable, **more}
    return "[[notify]]\n" + "".join(f"{name} = {_toml(value)}\n" for name, value in fields.items() if value)


def _toml(value: object) -> str:
    return str([*value]).replace("'", '"') if isinstance(value, list) else f'"{value}"'


def start(make_server: MakeServer, config: str, **environment: str) -> LiveServer:
    server = make_server(**{**FAST, **environment})
    (server.project / "labwright.toml").write_text(config)
    return server.start()


def raise_alert(server: LiveServer, severity: str = "critical", message: str = "it diverged") -> dict[str, Any]:
    run = server.post("/runs", {"command": "true", "name": "lr-0.1"})
    alert: dict[str, Any] = server.post(
        f"/runs/{run['id']}/alerts", {"message": message, "severity": severity, "choices": ["ignore", "stop"]}
    )
    return alert


def delivered(server: LiveServer, status: str = "delivered") -> list[dict[str, Any]]:
    """Return the deliveries once all of them have this status."""

    def all_there() -> list[dict[str, Any]]:
        found = server.get("/notifications")["deliveries"]
        return found if found and all(one["status"] == status for one in found) else []

    return wait_until(all_there, f"deliveries to be {status}")


def files_with(server: LiveServer, secret: str) -> list[str]:
    found = subprocess.run(["grep", "-rlaF", secret, str(server.project)], capture_output=True, text=True, check=False)
    return found.stdout.split()


def test_alert_notification_has_what_is_needed_to_answer(make_server: MakeServer) -> None:
    with receiver() as hook:
        server = start(make_server, channel(), LAB_HOOK=hook.url(SECRET))
        alert = raise_alert(server)
        wait_until(lambda: hook.got, "the message")
        path, headers, body = hook.got[0]
        assert path == f"/{SECRET}" and headers["Idempotency-Key"] == body["id"]
        assert (body["kind"], body["severity"], body["text"]) == ("alert", "critical", "it diverged")
        assert body["alert"]["id"] == alert["id"] and body["run"]["name"] == "lr-0.1"
        assert f"labwright alerts answer {alert['id']} ignore|stop" == body["how_to_answer"]
        assert delivered(server)[0]["attempts"] == 1


def test_slack_gets_its_own_format_without_markup(make_server: MakeServer) -> None:
    with receiver() as hook:
        server = start(make_server, channel("slack"), LAB_HOOK=hook.url(SECRET))
        raise_alert(server, message="loss > 5 & <!channel>")
        wait_until(lambda: hook.got, "the message")
        body = hook.got[0][2]
        assert body["text"] == "Critical: lr-0.1: loss &gt; 5 &amp; &lt;!channel&gt;"
        assert body["blocks"][0]["text"]["text"].endswith("*Critical: lr-0.1*\nloss &gt; 5 &amp; &lt;!channel&gt;")


def test_receiver_that_fails_twice_gets_a_third_try_with_the_same_key(make_server: MakeServer) -> None:
    with receiver(lambda count: (503 if count < 3 else 204, {})) as hook:
        server = start(make_server, channel(), LAB_HOOK=hook.url(SECRET))
        raise_alert(server)
        assert delivered(server)[0]["attempts"] == 3
        assert len({headers["Idempotency-Key"] for _, headers, _ in hook.got}) == 1


def test_delivery_is_given_up_after_five_tries_and_reported(make_server: MakeServer) -> None:
    with receiver(lambda _count: (404, {})) as hook:
        config = channel()
        server = start(make_server, config, LAB_HOOK=hook.url(SECRET), LABWRIGHT_NOTIFY_RETRY_SECONDS="0.001")
        alert = raise_alert(server)
        found = delivered(server, "given_up")[0]
        assert (found["attempts"], found["error"]) == (5, "answered with status 404")
        notices = server.get(f"/events?run_id={alert['run_id']}&types=run.notice")
        assert notices[-1]["data"]["text"].startswith("The notification to webhook was given up after 5 tries")


def test_hanging_receiver_blocks_neither_other_channels_nor_runs(make_server: MakeServer) -> None:
    with receiver(lambda _count: (0, {})) as hanging, receiver() as hook:
        config = channel(variable="SLOW_HOOK", name="slow") + channel(variable="LAB_HOOK", name="quick")
        hooks = {"SLOW_HOOK": hanging.url(SECRET), "LAB_HOOK": hook.url(SECRET)}
        server = start(make_server, config, LABWRIGHT_NOTIFY_TIMEOUT_SECONDS="6", **hooks)

        def timed_out() -> list[dict[str, Any]]:
            return [one for one in server.get("/notifications")["deliveries"] if one["error"]]

        raise_alert(server)
        wait_until(lambda: hanging.got and hook.got, "both to be asked")
        server.wait_for_end(server.submit("true")["id"])
        assert not timed_out(), "it still hangs"
        tried = wait_until(timed_out, "a time-out")
        assert tried[0]["error"] == "no answer within 6 s" and tried[0]["channel"] == "slow"


def test_kill_between_alert_and_delivery_loses_and_repeats_nothing(make_server: MakeServer) -> None:
    with receiver(lambda count: (0 if count == 1 else 200, {})) as hook:
        server = start(make_server, channel(), LAB_HOOK=hook.url(SECRET))
        first = raise_alert(server)
        wait_until(lambda: hook.got, "the first try")  # it hangs there
        server.kill()
        server.start()
        delivered(server)
        server.restart()
        second = raise_alert(server)
        wait_until(lambda: len(hook.got) >= 3, "the second alert")
        assert [body["alert"]["id"] for _, _, body in hook.got] == [first["id"], first["id"], second["id"]]
        assert hook.got[0][1]["Idempotency-Key"] == hook.got[1][1]["Idempotency-Key"]
        assert len(delivered(server)) == 2


def test_channel_gets_only_what_it_subscribed_to(make_server: MakeServer) -> None:
    with receiver() as alerts, receiver() as ends:
        config = channel(variable="A_HOOK", name="a", min_severity="critical")
        config += channel(variable="B_HOOK", name="b", events=["run_failed", "run_finished"])
        server = start(make_server, config, A_HOOK=alerts.url(SECRET), B_HOOK=ends.url(SECRET))
        raise_alert(server, "warning", "not so bad")
        raise_alert(server, "critical", "bad")
        server.wait_for_end(server.submit("exit 3", name="breaks")["id"])
        server.wait_for_end(server.submit("true", name="works")["id"])
        wait_until(lambda: len(ends.got) == 2 and alerts.got, "the news")
        assert [
            body["text"] for _, _, body in alerts.got if body["kind"] == "alert" and body["run"]["name"] != "breaks"
        ] == ["bad"]
        assert [(body["kind"], body["run"]["name"]) for _, _, body in ends.got] == [
            ("run_failed", "breaks"),
            ("run_finished", "works"),
        ]


def test_redirect_is_not_followed(make_server: MakeServer) -> None:
    with receiver() as other, receiver(lambda _count: (307, {"Location": other.url("elsewhere")})) as hook:
        server = start(make_server, channel(), LAB_HOOK=hook.url(SECRET))
        raise_alert(server)
        wait_until(lambda: len(hook.got) >= 2, "a second try")
        assert not other.got
        assert "redirect" in server.get("/notifications")["deliveries"][0]["error"]


def test_address_is_in_no_file_and_no_response(make_server: MakeServer) -> None:
    with receiver(lambda count: (500 if count < 4 else 200, {})) as hook:
        server = start(
            make_server,
            channel() + channel("slack", "OTHER"),
            LAB_HOOK=hook.url(SECRET),
            OTHER=f"http://127.0.0.1:1/{SECRET}",
        )
        raise_alert(server)
        run = answer(server, "run", "--wait", "--json", "--", "env")  # from a shell that has the variables too
        server.wait_for_end(server.submit("env")["id"])
        wait_until(lambda: "delivered" in {d["status"] for d in server.get("/notifications")["deliveries"]}, "the end")
        assert files_with(server, SECRET) == []
        told = [server.call("GET", path).body.decode() for path in ("/notifications", "/events", f"/runs/{run['id']}")]
        assert SECRET not in "".join(told)
        shown = server.get("/notifications")["channels"][0]["target"]
        assert shown == hook.url("…")
        server.stop()
        assert files_with(server, SECRET) == []


def test_invalid_channel_configuration_stops_the_start(make_server: MakeServer) -> None:
    server = make_server(BAD_HOOK=f"ftp://x/{SECRET}")
    (server.project / "labwright.toml").write_text(channel(variable="BAD_HOOK"))
    started = labwright(server, "up", "-d")
    assert started.returncode == 1
    assert "[[notify]] number 1: the value of BAD_HOOK is not an http or https address" in started.stderr
    assert SECRET not in started.stderr
    assert files_with(server, SECRET) == []


def test_private_file_can_hold_the_address(make_server: MakeServer) -> None:
    with receiver() as hook:
        server = make_server(**FAST)
        (server.project / "labwright.toml").write_text('[[notify]]\nkind = "webhook"\nurl_file = "hook"')
        (server.project / "hook").write_text(hook.url(SECRET) + "\n")
        os.chmod(server.project / "hook", 0o600)
        server.start()
        raise_alert(server)
        wait_until(lambda: hook.got, "the message")


def test_command_tests_the_channels_and_reports_the_results(make_server: MakeServer) -> None:
    with receiver() as hook:
        config = channel() + channel("slack", "DEAD_HOOK") + channel("desktop", "")
        server = start(make_server, config, LAB_HOOK=hook.url(SECRET), DEAD_HOOK="http://127.0.0.1:1/x", DISPLAY="")
        called = labwright(server, "notifications", "--test")
        assert called.returncode == 1
        assert hook.got[0][2]["kind"] == "test"
        webhook, slack = called.stdout.splitlines()[1:]
        assert "webhook  delivered" in webhook and "Connection refused" in slack
        listed = labwright(server, "notifications").stdout
        assert "http://127.0.0.1:1/…" in listed and "desktop" in listed


def test_desktop_notification_uses_notify_send(make_server: MakeServer, tmp_path: Any) -> None:
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "notify-send").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/said\n')
    (fake / "notify-send").chmod(0o755)
    path = f"{fake}:{os.environ['PATH']}"
    server = start(make_server, channel("desktop", ""), DISPLAY=":9", PATH=path)
    raise_alert(server, message="--help <b>")
    said = wait_until(lambda: (tmp_path / "said").exists() and (tmp_path / "said").read_text(), "notify-send")
    assert said.splitlines() == [
        "--urgency=critical",
        "--app-name=Labwright",
        "--",
        "Critical: lr-0.1",
        "--help &lt;b&gt;",
    ]


def test_without_a_channel_nothing_is_kept_and_a_test_says_what_to_do(server: LiveServer) -> None:
    raise_alert(server)
    assert server.get("/notifications") == {"channels": [], "deliveries": []}
    assert server.call("POST", "/notifications/test").status == 409


def test_new_channel_gets_no_past_events(make_server: MakeServer) -> None:
    with receiver() as hook:
        server = start(make_server, channel(), LAB_HOOK=hook.url(SECRET))
        server.stop()
        (server.project / "labwright.toml").write_text("")
        server.start()
        raise_alert(server, message="old")
        server.stop()
        (server.project / "labwright.toml").write_text(channel())
        server.start()
        raise_alert(server, message="new")
        wait_until(lambda: hook.got, "the message")
        assert [body["text"] for _, _, body in hook.got] == ["new"]


def test_file_with_an_address_is_in_no_snapshot_and_no_diff(make_server: MakeServer) -> None:
    server = make_server(**FAST)
    hook = server.project / "conf" / "hook.url"
    hook.parent.mkdir()
    hook.write_text(f"http://127.0.0.1:9/{SECRET}")
    hook.chmod(0o600)
    (server.project / "train.py").write_text("print(1)")
    server.start()  # it is configured only after this: the first snapshot has it, and no diff shows it
    old = server.post("/runs", {"command": "true"})
    (server.project / "labwright.toml").write_text('[[notify]]\nkind = "webhook"\nurl_file = "conf/hook.url"')
    new = server.post("/runs", {"command": "cat conf/hook.url", "use_snapshot": True})
    hook.write_text(f"http://127.0.0.1:9/{SECRET}-changed")
    hook.chmod(0o600)
    for run in (old, new):
        shown = server.get(f"/runs/{run['id']}/diff")
        assert SECRET not in str(shown)
        assert not any("conf/hook.url" in names for names in shown.values() if isinstance(names, list))
    assert not (server.project / ".labwright" / "runs" / new["id"] / "code" / "conf").exists()


def test_webhook_answers_an_approval_once_and_its_token_is_stored_nowhere(make_server: MakeServer) -> None:
    with receiver() as hook:
        config = channel(events=["approval"]) + "answers = true\n"
        server = start(make_server, config, LAB_HOOK=hook.url(SECRET))
        run = server.post("/runs", {"command": "true", "name": "mine"})
        labwright(server, "chat", "stop mine")
        wait_until(lambda: hook.got, "the question")
        body = hook.got[0][2]
        given = body["answer"]
        assert body["approval"]["question"] == body["text"]
        assert given["url"] == f"{server.url}/approvals/{body['approval']['id']}/respond"
        assert files_with(server, given["token"]) == []
        agent = mint(server.token, Scope.AGENT, "a", 60)
        for path in ("/notifications", "/events?limit=5000", "/runs"):
            assert given["token"] not in server.call("GET", path, token=agent).body.decode()
        elsewhere = {"Origin": "https://evil.example", "Content-Type": "application/json"}
        path = given["url"].removeprefix(server.url)
        assert server.call("POST", path, {"approved": True}, token=given["token"], headers=elsewhere).status == 403
        assert server.call("GET", path, token=given["token"]).status in (404, 405)
        answered = server.call("POST", path, {"approved": True, "reason": "fine"}, token=given["token"])
        assert (answered.status, answered.json["answered_by"]) == (200, "person:webhook")
        wait_until(lambda: server.run(run["id"])["status"] == "stopped", "the run to be stopped")
        assert server.call("POST", path, {"approved": False}, token=given["token"]).status == 409


def test_channel_without_permission_to_answer_gets_no_token(make_server: MakeServer) -> None:
    with receiver() as hook:
        server = start(make_server, channel(events=["approval"]), LAB_HOOK=hook.url(SECRET))
        server.post("/runs", {"command": "true", "name": "mine"})
        labwright(server, "chat", "stop mine")
        wait_until(lambda: hook.got, "the question")
        assert "answer" not in hook.got[0][2]
