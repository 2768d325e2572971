"""`make demo` and `make tour`, as a user without root rights sees them in a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.waiting import wait_until

_DEMO = Path(__file__).parents[2] / "scripts" / "demo"
_LABWRIGHT = str(Path(sys.executable).with_name("labwright"))
# For root no folder is read-only. Without these capabilities root behaves like any user.
_NO_ROOT_RIGHTS = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--"] if os.getuid() == 0 else []
_CTRL_C = b"\x03"
_QUICK_ONCE = """
import pathlib, time
time.sleep(100 if pathlib.Path("first").exists() else 0)
pathlib.Path("first").touch()
"""


class Demo:
    def __init__(self, process: subprocess.Popen[bytes], keyboard: int, shown: Path) -> None:
        self._process, self._keyboard, self._shown = process, keyboard, shown

    @property
    def shown(self) -> str:
        return self._shown.read_text(errors="replace")

    def wait_for(self, words: str, times: int = 1) -> None:
        wait_until(lambda: self.shown.count(words) >= times or self._process.poll() is not None, words, 200)
        assert self.shown.count(words) >= times, self.shown[-3000:]

    def type(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    def end(self) -> None:
        self.wait_for("Ctrl-C ends the server")
        self.leave(code=0)

    def wait(self) -> int:
        return self._process.wait(60)

    def leave(self, code: int) -> None:
        self.type(_CTRL_C)
        assert self.wait() == code, self.shown[-3000:]


@contextmanager
def demo_in(folder: Path, command: str = str(_DEMO), **variables: str) -> Iterator[Demo]:
    keyboard, terminal = pty.openpty()
    shown = folder / "shown"
    with shown.open("wb") as screen:
        process = subprocess.Popen(
            [*_NO_ROOT_RIGHTS, "script", "-qefc", command, "/dev/null"],
            stdin=terminal,
            stdout=screen,
            stderr=screen,
            env={**os.environ, "TMPDIR": str(folder), "NO_COLOR": "1", **variables},
        )
    try:
        yield Demo(process, keyboard, shown)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        os.close(keyboard)
        os.close(terminal)
    assert [path.name for path in folder.iterdir()] == ["shown"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_demo_goes_from_goal_to_report_and_leaves_nothing(tmp_path: Path) -> None:
    with demo_in(tmp_path, DEMO_YES="1") as demo:
        demo.end()
        assert re.search(r"rehearsal +passed", demo.shown)
        assert "DEMO_YES=1 answered" in demo.shown


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_wild_loop_started_in_the_demo_leaves_no_run_behind(tmp_path: Path) -> None:
    with demo_in(tmp_path, DEMO_YES="1") as demo:
        demo.wait_for("Ctrl-C ends the server")
        (project,) = tmp_path.glob("labwright-demo.*/project")
        script = project / "fit.py"
        script.write_text(_QUICK_ONCE + script.read_text())
        command = [_LABWRIGHT, "wild", "lowest test_mse by tuning degree", "--project", project]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wait_until((project / "first").exists, "its first run")
        wait_until(lambda: running_in(project), "a run that takes long")
        demo.end()
        assert [each for each in psutil.process_iter(["cmdline"]) if is_in(tmp_path, each)] == []


def running_in(project: Path) -> list[object]:
    told = subprocess.run(
        [_LABWRIGHT, "ps", "--status", "running", "--json", "--project", project], capture_output=True, check=True
    )
    return list(json.loads(told.stdout))


def is_in(folder: Path, process: psutil.Process) -> bool:
    return any(str(folder) in word for word in process.info["cmdline"] or ())


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_next_demo_ends_and_removes_leftovers_of_a_killed_one(tmp_path: Path) -> None:
    with demo_in(tmp_path) as demo:
        demo.wait_for("Sign in")
        (pid,) = tmp_path.glob("labwright-demo.*/pid")
        left = pid.parent
        killed = int(pid.read_text())
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not psutil.pid_exists(killed), "its end")
        unattended = {**os.environ, "TMPDIR": str(tmp_path), "DEMO_YES": ""}
        ended = subprocess.run([_DEMO], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=unattended)
        demo.wait()
        assert f"removing {left}." in ended.stdout
        assert "wants a person's approval" in ended.stderr
        wait_until(lambda: not any(is_in(left, each) for each in psutil.process_iter(["cmdline"])), "its server's end")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_changed_plan_is_shown_to_the_person_again(tmp_path: Path) -> None:
    with demo_in(tmp_path) as demo:
        for question, answer in (
            ("Approve this plan?", b"n\n"),
            ("What is to be different?", b"also degree 7\n"),
            ("Which node is to do it again? Enter if unsure", b"\n"),
        ):
            demo.wait_for(question)
            demo.type(answer)
        demo.wait_for("Approve this plan?", times=2)
        demo.type(b"y\n")
        demo.end()
        assert "degree 7, seed 1" in demo.shown


_PATIENT = """#!/bin/bash
trap 'exit 130' INT
echo it works on
while sleep 0.1; do :; done
"""


def test_leaving_the_tour_on_simulated_gpus_is_not_a_failure(tmp_path: Path) -> None:
    """Whatever command is active there ends by itself, with 130."""
    clone = tmp_path / "clone"
    for name, text in (("scripts/demo", _DEMO.read_text()), (".venv/bin/labwright", _PATIENT)):
        (clone / name).parent.mkdir(parents=True)
        (clone / name).write_text(text)
        (clone / name).chmod(0o755)
    (tmp_path / "folder").mkdir()
    with demo_in(tmp_path / "folder", f"{clone}/scripts/demo on_simulated_gpus") as demo:
        demo.wait_for("it works on")
        demo.leave(code=130)
        assert "The demo failed" not in demo.shown
