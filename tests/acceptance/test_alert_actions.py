"""A project's own rule may act: at once, or when nobody answered in time; through the normal verbs."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.live_server import LiveServer

RULE = '[[alerts]]\nname = "too bad"\nmetric = "loss"\ncondition = "> 5"\nseverity = "critical"\n'
JOB = """for i in 1 2 3; do echo "{\\"step\\": $i, \\"loss\\": 9}"; done; sleep 1000"""


def stopped_by_rule(make_server: Callable[..., LiveServer], extra: str) -> None:
    server = make_server()
    (server.project / "labwright.toml").write_text(RULE + extra)
    server.start()
    run = server.submit(JOB)
    server.wait_for_status(run["id"], "stopped")
    (alert,) = [a for a in server.get(f"/alerts?run_id={run['id']}") if a["rule"] == "too bad"]
    assert (alert["status"], alert["answer"], alert["answered_by"]) == ("resolved", "stop", "system")


def test_an_action_is_taken_at_once(make_server: Callable[..., LiveServer]) -> None:
    stopped_by_rule(make_server, 'action = "stop"\n')


def test_a_default_action_is_taken_when_nobody_answers(make_server: Callable[..., LiveServer]) -> None:
    stopped_by_rule(make_server, 'default_action = "stop"\ndefault_after_seconds = 1\n')
