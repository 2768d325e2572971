"""From `POST /runs` to the true exit code."""

from __future__ import annotations

import pytest

from tests.support.live_server import LiveServer


def test_command_runs_and_its_end_is_reported(lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("echo hello; exit 3")["id"])
    assert (run["status"], run["exit_code"]) == ("failed", 3)
    assert lab.output(run["id"]) == "hello\n"


@pytest.mark.parametrize(
    ("command", "output", "exit_code"),
    [
        ("echo a # a comment", "a\n", 0),
        ("echo 'one quote", None, 2),
        ("cat <<'END'\nheld $HOME\nEND", "held $HOME\n", 0),
        ("mkdir -p 'a b' && cd 'a b' && basename \"$PWD\"", "a b\n", 0),
        ("echo ünïcödé ✓", "ünïcödé ✓\n", 0),
        ("exec sh -c 'echo replaced'", "replaced\n", 0),
        ("echo one\nexit 7\necho two", "one\n", 7),
        ("printf 'no newline'", "no newline", 0),
        ("kill -9 $$", "", 137),
        ("sh -c 'kill -11 $$'", None, 139),
        ("false || echo rescued", "rescued\n", 0),
    ],
)
def test_any_command_works(lab: LiveServer, command: str, output: str | None, exit_code: int) -> None:
    run = lab.wait_for_end(lab.submit(command)["id"])
    assert run["exit_code"] == exit_code, run
    assert run["status"] == ("finished" if exit_code == 0 else "failed")
    if output is not None:
        assert lab.output(run["id"]) == output
