"""The SDK outside of a run: its own folder, with and without a server, and the true end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from labwright.processes import identity, kept_exit_code
from tests.support.live_server import LiveServer
from tests.support.scripts import Scripts, interpreters
from tests.support.waiting import wait_until


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


def test_without_a_server_it_logs_to_a_local_folder(scripts: Scripts) -> None:
    code = """
import labwright, multiprocessing
labwright.init(project="mnist", name="lr-0.1", config={"lr": 0.1})
labwright.log({"loss": 0.5})

def child():
    labwright.log({"in_child": 1.0})

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=child)
    process.start(), process.join()
"""
    _, err = scripts.run(code, inside=False)
    folder = scripts.offline()
    about = json.loads((folder / "run.json").read_text())
    assert (about["name"], about["project"], about["config"]) == ("lr-0.1", "mnist", {"lr": 0.1})
    assert about["command"].endswith("train.py") and about["workdir"] == str(scripts.workdir)
    assert len(scripts.files(folder)) == 2  # including the child's lines: it is part of the run
    ended = json.loads((folder / "exit.json").read_text())
    assert (ended["status"], ended["exit_code"], ended["attempt"]) == ("finished", 0, 1)
    assert set(ended["usage"]) == {"cpu_seconds", "max_memory_mb", "wall_seconds"}
    assert err == f"labwright: logging to {folder}\n"


ENDINGS = {
    "": (0, "finished", 0, None),
    "sys.exit(0)": (0, "finished", 0, None),
    "sys.exit(3)": (3, "failed", 3, "Exit code 3"),
    "sys.exit('no data')": (1, "failed", 1, "no data"),
    "1 / 0": (1, "failed", 1, "ZeroDivisionError: division by zero"),
    "raise KeyboardInterrupt": (-signal.SIGINT, "failed", 130, "KeyboardInterrupt"),
    "try:\n    sys.exit(4)\nexcept SystemExit:\n    pass": (0, "finished", 0, None),
    "sys.excepthook = lambda *_: None\n1 / 0": (1, "failed", 1, "ZeroDivisionError: division by zero"),
    "labwright.finish(5)": (0, "failed", 5, "Exit code 5"),
    "with labwright.init():\n    1 / 0": (1, "failed", 1, "ZeroDivisionError: division by zero"),
    "try:\n    1 / 0\nfinally:\n    labwright.finish()": (1, "failed", 1, "ZeroDivisionError: division by zero"),
}


@pytest.mark.parametrize("last_words", ENDINGS)
@pytest.mark.parametrize("python", interpreters()[1:] or interpreters())
def test_the_recorded_end_is_correct(scripts: Scripts, python: str, last_words: str) -> None:
    code, status, exit_code, error = ENDINGS[last_words]
    scripts.run(f"import labwright, sys\nlabwright.log({{'a': 1.0}})\n{last_words}\n", inside=False, python=python,
                code_expected=code)  # fmt: skip
    ended = json.loads((scripts.offline() / "exit.json").read_text())
    assert (ended["status"], ended["exit_code"], ended["error"]) == (status, exit_code, error)


CODES = {
    "raise SystemExit(3)": 3,
    "raise SystemExit": 0,
    "exit(5)": 5,
    "import os\nos.closerange(3, 99)\nraise SystemExit(255)": 255,
    "import os\nif os.fork() == 0: sys.exit(7)\nos.wait()\nraise SystemExit(4)": 4,
    "import os\nos._exit(6)": None,
}


@pytest.mark.parametrize("last_words", CODES)
@pytest.mark.parametrize("python", interpreters()[1:] or interpreters())
def test_an_exit_code_that_no_handler_sees_is_recorded(scripts: Scripts, python: str, last_words: str) -> None:
    expected = 6 if CODES[last_words] is None else CODES[last_words]
    scripts.run(f"import labwright, sys\nlabwright.log({{'a': 1.0}})\n{last_words}\n", inside=False, python=python,
                code_expected=expected)  # fmt: skip
    assert not (scripts.offline() / "exit.json").exists()
    assert kept_exit_code(str(scripts.offline() / "exit.code")) == CODES[last_words]


def test_a_killed_script_records_no_end(scripts: Scripts) -> None:
    code = "import labwright, os\nlabwright.log({'a': 1.0})\nos.kill(os.getpid(), 9)"
    scripts.run(code, inside=False, code_expected=-signal.SIGKILL)
    assert not (scripts.offline() / "exit.json").exists() and len(scripts.points(scripts.offline())) == 1


class FakeServer:
    """Accept one external run as the real route does, or respond as configured."""

    def __init__(self, project: Path, answer: int = 201) -> None:
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.run_dir = project / ".labwright" / "runs" / "run_x"
        self.run_dir.mkdir(parents=True)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append((self.path, self.headers["X-Auth-Token"], body))
                content = json.dumps({"id": "run_x", "name": body["name"], "run_dir": str(outer.run_dir)}).encode()
                self.send_response(answer)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()
        (project / ".labwright" / "token").write_text("secret\n")
        self.tell(project, pid=os.getpid())

    def tell(self, project: Path, pid: int) -> None:
        facts = {"url": f"http://127.0.0.1:{self.http.server_port}", **identity(os.getpid()).to_dict(), "pid": pid}
        (project / ".labwright" / "server.json").write_text(json.dumps(facts))

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def fake_server(scripts: Scripts) -> Iterator[FakeServer]:
    server = FakeServer(scripts.workdir.parent)  # the project encloses the folder that the script runs in
    yield server
    server.close()


def test_with_a_server_it_becomes_a_run(scripts: Scripts, fake_server: FakeServer) -> None:
    code = """
import labwright, os
run = labwright.init(name="lr-0.1", config={"lr": 0.1}, tags=["a"], group="g")
labwright.log({"loss": 0.5})
assert run.id == os.environ["LABWRIGHT_RUN_ID"] == "run_x" and run.url.endswith("/#/runs/run_x")
labwright.finish()
labwright.log({"loss": 0.6})
"""
    _, err = scripts.run(code, inside=False)
    ((path, token, body),) = fake_server.asked
    assert (path, token) == ("/runs/external", "secret")
    assert (body["name"], body["params"], body["tags"]) == ("lr-0.1", {"lr": 0.1}, ["a", "group:g"])
    assert set(body) >= {"command", "workdir", "pid", "start_time", "boot_id", "host", "notes"}
    assert body["answer_by"] < time.time() + 5  # after that it logs elsewhere, and the run would belong to no script
    assert [point["m"] for point in scripts.points(fake_server.run_dir)] == [{"loss": 0.5}]
    assert json.loads((fake_server.run_dir / "exit.json").read_text())["status"] == "finished"
    assert "after finish()" in err and not (scripts.workdir.parent / ".labwright-offline").exists()


def test_without_a_working_server_it_logs_to_a_local_folder(scripts: Scripts, fake_server: FakeServer) -> None:
    project = scripts.workdir.parent
    offline = project / ".labwright-offline"
    code = "import labwright\nlabwright.log({'loss': 1.0})"
    fake_server.tell(project, pid=2**22 + 1)
    scripts.run(code, inside=False)
    assert fake_server.asked == [] and len(list(offline.glob("2*"))) == 1  # the token was sent nowhere
    fake_server.tell(project, pid=os.getpid())
    fake_server.run_dir.rmdir()
    _, err = scripts.run(code, inside=False)
    assert len(fake_server.asked) == 1 and len(list(offline.glob("2*"))) == 2 and "did not accept the run" in err
    fake_server.http.shutdown()  # it still listens but no longer responds
    process = scripts.start(code, inside=False)
    assert process.wait(timeout=60) == 0
    assert len(list(offline.glob("2*"))) == 3
    process.communicate()


def test_a_real_server_shows_both_kinds_of_run(server: LiveServer) -> None:
    code = """
import labwright
labwright.init(config={"lr": 0.1, "limit": float("inf")})
for step in range(100):
    labwright.log({"loss": 1.0 / (step + 1)}, step=step)
labwright.alert("Diverged", level="ERROR")
"""
    (server.project / "train.py").write_text(code)
    python = interpreters()[1:2] or interpreters()
    inside = server.submit(f"{python[0]} train.py")["id"]
    small = next(server.state.glob("*/labwright/sdk")).parents[1]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(small)}
    by_hand = subprocess.run(
        [*python, "train.py"], cwd=server.project, env=environment, capture_output=True, text=True, check=True
    )
    outside = by_hand.stderr.split("/runs/")[1].strip()
    for run_id in (inside, outside):
        run = server.wait_for_end(run_id)
        assert (run["status"], run["exit_code"]) == ("finished", 0), run
        assert run["summary"]["loss"]["last"] == 0.01 and run["summary"]["loss"]["step"] == 99
    wait_until(lambda: {alert["run_id"] for alert in server.get("/alerts")} == {inside, outside}, "both alerts")
