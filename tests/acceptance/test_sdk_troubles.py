"""A script that logs keeps training and loses no number: through kills, full disks, another user, closed files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.scripts import Scripts, interpreters


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


def test_a_log_that_returned_survives_kill_9(scripts: Scripts) -> None:
    code = """
import labwright, os, signal
for step in range(1000):
    labwright.log({"loss": step * 0.1, "acc": 1.0}, step=step)
os.kill(os.getpid(), signal.SIGKILL)
"""
    scripts.run(code, code_expected=-signal.SIGKILL)
    assert [line["s"] for line in scripts.points()] == list(range(1000))


def test_a_file_size_limit_does_not_stop_training_and_loses_no_line(scripts: Scripts) -> None:
    code = """
import labwright, resource, time
labwright.init()
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
for step in range(1000):
    labwright.log({"loss": step * 0.1}, step=step)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""
    _, err = scripts.run(code)
    assert [point["s"] for point in scripts.points()] == list(range(1000))
    assert err.count("cannot write") == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a disk that is full")
def test_a_full_disk_does_not_stop_training_and_lines_are_written_later(scripts: Scripts) -> None:
    code = f"""
import labwright, os, subprocess, time
folder = {str(scripts.run_dir)!r}
subprocess.check_call(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder])
labwright.init()
with open(folder + "/filler", "wb", buffering=0) as filler:
    try:
        while filler.write(b"x" * 4096):
            pass
    except OSError:
        pass
for step in range(500):
    labwright.log({{"loss": step * 0.1}}, step=step)
labwright.log({{"picture": labwright.Histogram(range(100000))}})
os.unlink(folder + "/filler")
labwright.finish()
print(subprocess.check_output("cat metrics/*", shell=True, cwd=folder).decode())
"""
    script = scripts.workdir / "train.py"
    script.write_text(code)
    command = ["unshare", "--mount", "--propagation", "private", interpreters()[0], "-s", str(script)]
    done = subprocess.run(
        command, env=scripts.environment(inside=True), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.split("\n") if line]
    assert [line["s"] for line in lines if "m" in line] == list(range(500))
    assert [line["refused"]["key"] for line in lines if "refused" in line] == ["picture"]


@pytest.mark.parametrize("folder", ["/proc/1/no/such", "/dev/null"])
def test_an_invalid_run_folder_does_not_stop_training(scripts: Scripts, folder: str) -> None:
    code = "import labwright\nfor i in range(2000): labwright.log({'loss': 1.0, 'name': 'x'})\nlabwright.alert('x')"
    _, err = scripts.run(code, LABWRIGHT_RUN_DIR=folder)
    assert "cannot find the run folder" in err
    assert len(scripts.points(scripts.offline())) == 2000


BECOMES_NOBODY = "os.setgid(65534); os.setuid(65534)"
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="changing the user needs root")


@pytest.mark.parametrize("python", interpreters())
@pytest.mark.parametrize(
    "loses_it", [pytest.param(BECOMES_NOBODY, marks=needs_root), "os.rename(os.environ['PYTHONPATH'], 'elsewhere')"]
)
def test_a_process_that_cannot_read_the_sdk_keeps_training(scripts: Scripts, loses_it: str, python: str) -> None:
    code = f"""
import argparse, labwright, os
{loses_it}
with labwright.init(config=argparse.Namespace(lr=0.1)) as run:
    assert labwright.config.lr == run.config["lr"] == 0.1
    labwright.log({{"loss": 1.0, "picture": labwright.Image([0]), "table": labwright.Table(columns=[])}}, step=3)
    run.summary["best"] = 0.5
    labwright.alert("Diverged", level=labwright.AlertLevel.WARN)
labwright.finish()
print("trained", run.summary["best"])
"""
    out, err = scripts.run(code, python=python)
    assert out == "trained 0.5\n"
    assert err.startswith("labwright: nothing is logged, training continues") and err.count("\n") == 1


@needs_root
def test_a_process_that_changes_its_user_while_it_logs_loses_no_number(scripts: Scripts) -> None:
    code = f"""
import labwright, os
labwright.log({{"loss": 0.0}})
{BECOMES_NOBODY}
labwright.log({{"loss": 1.0, "weights": labwright.Histogram([1, 2])}})
if os.fork() == 0:
    labwright.log({{"loss": 2.0}})
    os._exit(0)
os.wait()
labwright.finish()
"""
    _, err = scripts.run(code)
    assert [point["m"]["loss"] for point in scripts.points()] == [0.0, 1.0]
    assert "'weights' is not logged" in err and "training goes on" in err


def test_logging_from_a_signal_handler_and_after_all_files_were_closed(scripts: Scripts) -> None:
    code = """
import labwright, os, signal
labwright.init()
signal.signal(signal.SIGALRM, lambda *_: labwright.log({"in_handler": 1.0}))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for step in range(3000):
    labwright.log({"loss": 1.0, "step": step})
signal.setitimer(signal.ITIMER_REAL, 0)
os.closerange(3, 100)
labwright.log({"loss": 2.0})
"""
    scripts.run(code)
    steps = [point["m"]["step"] for point in scripts.points() if "step" in point["m"]]
    assert sorted(steps) == list(range(3000))
    assert len(scripts.files()) == 2 and scripts.points() != []
