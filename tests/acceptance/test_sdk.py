"""The SDK as scripts use it: without Labwright installed, in runs and outside, across forks, kills and full disks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labwright.compute.sdk_folder import write_small_package
from tests.support.live_server import LiveServer
from tests.support.scripts import Scripts, interpreters
from tests.support.waiting import wait_until


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


AS_WANDB = """
import labwright as wandb
with wandb.init(project="mnist", name="lr-0.1", config={"lr": 0.1}, tags=["a"], settings=object()) as run:
    assert wandb.run is run and wandb.config.lr == 0.1 and run.id == "run_1"
    wandb.define_metric("acc", summary="max")
    wandb.watch(object())
    for step in range(3):
        wandb.log({"train/loss": 1.0 / (step + 1), "val/acc": float("nan")}, step=step)
    wandb.alert(title="Diverged", text="loss is NaN", level=wandb.AlertLevel.WARN)
    wandb.config.update({"epochs": 3}, allow_val_change=True)
    wandb.log({"h": wandb.Histogram([1, 2, 3])})
assert wandb.run is None
try:
    wandb.no_such_call
except AttributeError:
    print("fine")
"""


@pytest.mark.parametrize("python", interpreters())
def test_a_script_written_for_wandb_runs_in_any_interpreter(scripts: Scripts, python: str) -> None:
    out, err = scripts.run(AS_WANDB, python=python)
    (lines,) = scripts.files()
    assert out == "fine\n"
    assert {key: lines[0][key] for key in ("source", "attempt", "rank", "v")} == {
        "source": "sdk",
        "attempt": 2,
        "rank": 0,
        "v": 1,
    }
    assert (lines[0]["name"], lines[0]["project"], lines[0]["tags"]) == ("lr-0.1", "mnist", ["a"])
    assert [next(iter(set(line) - {"t", "s"})) for line in lines[1:]] == [
        *("config", "m", "m", "m", "alert", "config", "artifact", "finish")
    ]
    assert [line["m"]["train/loss"] for line in scripts.points()] == [1.0, 0.5, 1 / 3]
    assert lines[5]["alert"]["level"] == "WARN" and lines[-1]["finish"] == {"exit_code": 0}
    assert err.count("define_metric()") == 1


MORE_OF_WANDB = """
import labwright as wandb
wandb.require("core")
run = wandb.init(project="mnist", group="g", tags=["a"], settings=wandb.Settings(start_method="fork"))
run.name = "other"
run.save()
table = wandb.Table(columns=["x"])
table.add_data(1)
curve = wandb.plot.line(table, "x", "y")
run.log({"loss": 1.0, "table": table, "video": wandb.Video("a.mp4"), "curve": curve}, sync=True)
model = wandb.Artifact("model", type="model")
with model.new_file("weights") as file:
    file.write(b"w")
run.log_artifact(model).wait()
assert isinstance(model, wandb.Artifact) and not isinstance(model, wandb.Table)
print(run.project, run.group, run.tags, run.entity, run.resumed)
for asked, holder in (("Api", wandb), ("sweep", wandb), ("use_artifact", run)):
    try:
        getattr(holder, asked)
    except AttributeError as error:
        print(error)
"""


@pytest.mark.parametrize("python", interpreters())
def test_other_wandb_calls_do_not_stop_training_and_are_reported(scripts: Scripts, python: str) -> None:
    out, err = scripts.run(MORE_OF_WANDB, python=python)
    assert out.splitlines()[0] == "mnist g ('a',)  False"
    assert [line.split()[-1] for line in out.splitlines()[1:]] == ["'Api'", "'sweep'", "'use_artifact'"]
    assert [line["m"] for line in scripts.points()] == [{"loss": 1.0}]
    (lines,) = scripts.files()
    refused = {line["refused"]["key"]: line["refused"]["why"] for line in lines if "refused" in line}
    assert set(refused) == {"table", "video", "curve"}
    assert refused["table"] == "a Table, which Labwright does not store"
    for call in ("Settings", "Table", "Video", "plot", "Artifact", "log_artifact"):
        assert err.count(f"{call}() has no effect") == 1, err
    assert "run.name = 'other' has no effect" in err


@pytest.mark.parametrize("python", interpreters())
def test_importing_it_is_quick(scripts: Scripts, python: str) -> None:
    code = """
import time
start = time.process_time()
import labwright
labwright.log
print(time.process_time() - start)
"""
    seconds = min(float(scripts.run(code, python=python)[0]) for _ in range(8))
    assert seconds < 0.020


def test_threads_forks_and_spawned_processes_lose_no_line(scripts: Scripts) -> None:
    code = """
import labwright, multiprocessing, os, threading
labwright.init()

def log_many(name):
    for step in range(500):
        labwright.log({name: float(step), "pid": os.getpid()}, step=step)

def in_threads(name):
    threads = [threading.Thread(target=log_many, args=(f"{name}/thread{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

def counted():
    for _ in range(500):
        labwright.log({"counted": 1.0})

if __name__ == "__main__":
    in_threads("parent")
    counting = [threading.Thread(target=counted) for _ in range(4)]
    [thread.start() for thread in counting], [thread.join() for thread in counting]
    pid = os.fork()
    if pid == 0:
        in_threads("fork")
        os._exit(0)
    log_many("after")
    os.waitpid(pid, 0)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(in_threads, ["spawn0", "spawn1"])
"""
    scripts.run(code, python=interpreters()[1] if len(interpreters()) > 1 else "")
    points = scripts.points()
    names = [f"{who}/thread{n}" for who in ("parent", "fork", "spawn0", "spawn1") for n in range(4)]
    for name in [*names, "after"]:
        assert sorted(point["s"] for point in points if name in point["m"]) == list(range(500)), name
    counted = [point["s"] for point in points if "counted" in point["m"]]
    assert len(counted) == len(set(counted)) == 2000  # no two threads were given the same step
    for lines in scripts.files():
        assert {line["m"]["pid"] for line in lines if "pid" in line.get("m", ())} <= {lines[0]["pid"]}


def test_threads_that_log_without_init_share_one_run(scripts: Scripts) -> None:
    code = """
import labwright, threading
gate = threading.Barrier(8)
def work():
    gate.wait()
    labwright.log({"loss": 1.0})
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
"""
    scripts.run(code, inside=False)
    assert len(scripts.points(scripts.offline())) == 8


def test_only_the_first_rank_logs_unless_all_ranks_are_requested(scripts: Scripts) -> None:
    code = "import labwright, sys\nlabwright.init(log_all_ranks=len(sys.argv) > 9)\nlabwright.log({'loss': 1.0})"
    scripts.run(code, RANK="3")
    assert scripts.files() == []
    scripts.run(code, RANK="0")
    scripts.run(code.replace("len(sys.argv) > 9", "True"), RANK="3")
    assert sorted(lines[0]["rank"] for lines in scripts.files()) == [0, 3]


def test_a_doubtful_rank_is_reported(scripts: Scripts) -> None:
    code = "import labwright\nfor step in range(3): labwright.log({'loss': 1.0})"
    _, err = scripts.run(code, RANK="8")
    assert err.count("RANK is 8") == 1 and "log_all_ranks=True" in err
    _, err = scripts.run(code, RANK="8", WORLD_SIZE="16")
    assert err == ""


def test_several_trainings_of_one_script_can_be_separate_runs(scripts: Scripts) -> None:
    code = """
import labwright as wandb
for seed in range(2):
    wandb.init(name=f"seed-{seed}", reinit=True)
    wandb.log({"loss": seed})
    assert wandb.init() is wandb.run
"""
    scripts.run(code, inside=False)
    folders = sorted((scripts.workdir / ".labwright-offline").glob("2*"))
    logged = {json.loads((folder / "run.json").read_text())["name"]: scripts.points(folder) for folder in folders}
    assert {name: [point["m"] for point in points] for name, points in logged.items()} == {
        "seed-0": [{"loss": 0}],
        "seed-1": [{"loss": 1}],
    }
    scripts.run(code)
    assert [point["m"] for point in scripts.points()] == [{"loss": 0}, {"loss": 1}]


def test_invalid_tags_do_not_stop_training(scripts: Scripts) -> None:
    scripts.run("import labwright\nlabwright.init(tags=5)\nlabwright.log({'loss': 1.0})")
    assert [point["m"] for point in scripts.points()] == [{"loss": 1.0}]


def test_alerts_of_other_ranks_are_sent(scripts: Scripts) -> None:
    code = "import labwright\nlabwright.log({'loss': 1.0})\nlabwright.alert('Diverged', 'NaN', level='ERROR')"
    scripts.run(code, RANK="3")
    ((header, alert),) = scripts.files()
    assert header["rank"] == 3
    assert alert["alert"] == {"title": "Diverged", "text": "NaN (rank 3)", "level": "ERROR"}
    _, err = scripts.run(code, inside=False, RANK="3")
    assert "alert() of rank 3 is not kept" in err


def test_the_small_package_is_written_once_and_replaced_in_one_step(scripts: Scripts) -> None:
    before = sorted(os.listdir(scripts.small))
    stamp = (scripts.small / "labwright" / "__init__.py").stat().st_mtime_ns
    write_small_package(scripts.small)
    assert sorted(os.listdir(scripts.small)) == before
    assert (scripts.small / "labwright" / "__init__.py").stat().st_mtime_ns == stamp
    (scripts.small / "labwright").unlink()
    (scripts.small / "labwright").symlink_to("labwright-older")
    write_small_package(scripts.small)
    assert (scripts.small / "labwright" / "sdk" / "calls.py").is_file()


def test_an_installed_labwright_still_works_inside_a_run(scripts: Scripts) -> None:
    code = "import labwright, labwright.cli, labwright.sdk, labwright.paths; print(labwright.sdk.__file__)"
    environment = scripts.environment(inside=True)
    out = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert out.stdout.startswith(str(scripts.small.resolve()))
    version = subprocess.run([sys.executable, "-m", "labwright.cli.main", "--help"], env=environment, check=False)
    assert version.returncode == 0


def test_the_sdk_is_loaded_on_first_use() -> None:
    code = "import sys, labwright; print(sorted(n for n in sys.modules if n.startswith('labwright')), labwright.run)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "['labwright', 'labwright.version'] None\n"


def test_a_script_that_waits_shows_its_points_at_once(scripts: Scripts) -> None:
    process = scripts.start("import labwright\nlabwright.log({'loss': 0.5})\ninput()")
    wait_until(lambda: any(scripts.run_dir.glob("metrics/*")) and scripts.points(), "the point in the file")
    process.kill()
    process.communicate()


def test_resume_is_automatic_in_a_run_and_refused_with_a_message_outside(scripts: Scripts) -> None:
    code = "import labwright\nrun = labwright.init({})\nlabwright.log({{'a': 1}})\nprint(run.id)\n"
    out, err = scripts.run(code.format("id='abc', resume='must'"))
    assert (out, err) == ("run_1\n", ""), "inside a run it goes on with that run"
    for asked in ("resume=True", "resume='must', id='abc'", "resume='allow', id='abc'"):
        _, err = scripts.run(code.format(asked), inside=False)
        assert err.count("this is a new run: a run that has ended") == 1, asked
    for content in ("resume='never'", "resume='allow'", "resume='auto'", "id='abc'"):
        _, err = scripts.run(code.format(content), inside=False)
        assert "new run" not in err, content


def test_many_alerts_become_twenty_and_one_with_a_count(lab: LiveServer) -> None:
    code = "import labwright\nfor n in range(300): labwright.alert(f'title {n}', level='ERROR')"
    (lab.project / "storm.py").write_text(code)
    run = lab.wait_for_end(lab.submit("python3 storm.py")["id"])
    open_now = lab.get(f"/alerts?run_id={run['id']}&status=pending&limit=500")
    assert len(open_now) == 21
    [rest] = [alert for alert in open_now if alert["rule"] == "many_alerts"]
    assert "280 more" in rest["message"] and lab.run(run["id"])["refused"]["count"] == 280


def test_an_invalid_step_is_refused_and_counted(lab: LiveServer) -> None:
    code = "import labwright\nfor _ in range(5): labwright.log({'a': 1.0}, step=3.7)\nlabwright.log({'a': 2.0}, step=4)"
    (lab.project / "steps.py").write_text(code)
    run = lab.wait_for_end(lab.submit("python3 steps.py")["id"])
    assert lab.get(f"/runs/{run['id']}/metrics?keys=a")["series"][0]["steps"] == [4]
    [told] = lab.run(run["id"])["refused"]["first"]
    assert (told["key"], told["count"]) == ("step", 5) and "3.7" in told["why"]


def test_a_summary_has_the_last_values_and_counts_the_omitted_ones(lab: LiveServer) -> None:
    code = (
        "import labwright, time\nlabwright.log({f'a{n}': 1.0 for n in range(300)}, step=0)\n"
        "time.sleep(0.1)\nlabwright.log({'zz/val_loss': 0.5}, step=1)"
    )
    (lab.project / "many.py").write_text(code)
    run = lab.wait_for_end(lab.submit("python3 many.py")["id"])
    assert "zz/val_loss" in run["summary"] and len(run["summary"]) == 200
    keys = lab.get(f"/runs/{run['id']}/metrics?max_points=2")["keys"]  # a slow machine was sampled meanwhile
    assert run["summary_left_out"] == len(keys) - 200 >= 101


def test_a_script_may_name_only_an_unnamed_run(lab: LiveServer) -> None:
    (lab.project / "named.py").write_text("import labwright\nlabwright.init(name='mine')\nlabwright.log({'a': 1.0})")
    assert lab.wait_for_end(lab.submit("python3 named.py")["id"])["name"] == "mine"
    run = lab.wait_for_end(lab.submit("python3 named.py", name="theirs")["id"])
    assert run["name"] == "theirs"
    assert lab.output(run["id"]).count("name='mine' has no effect: the run is already called 'theirs'") == 1


def test_tags_and_notes_of_the_script_are_added_to_those_of_its_run(lab: LiveServer) -> None:
    code = "import labwright\nlabwright.init(tags=['mine', 'both'], notes='why')\nlabwright.log({'a': 1.0})"
    (lab.project / "tagged.py").write_text(code)
    run = lab.wait_for_end(lab.submit("python3 tagged.py", tags=["theirs", "both"])["id"])
    assert (run["tags"], run["notes"]) == (["theirs", "both", "mine"], "why")
    run = lab.wait_for_end(lab.submit("python3 tagged.py", notes="theirs")["id"])
    assert (run["tags"], run["notes"]) == (["mine", "both"], "theirs")


WITHOUT_A_STEP = """
import labwright
labwright.init()
for number in range(3):
    labwright.log({"loss": float(number)})
labwright.finish()
"""


def test_without_a_step_a_process_continues_after_earlier_processes(scripts: Scripts) -> None:
    scripts.run(WITHOUT_A_STEP + "labwright.log({'loss': 3.0})")
    worker = [sys.executable, "-c", WITHOUT_A_STEP]
    scripts.run(
        f"import subprocess\nsubprocess.run({worker!r}, check=True, start_new_session=True)"
    )  # as torchrun does
    assert sorted(point["s"] for point in scripts.points()) == [0, 1, 2, 3, 4, 5, 6]


def test_parallel_processes_and_a_second_try_start_at_the_first_step(scripts: Scripts) -> None:
    worker = [sys.executable, "-c", WITHOUT_A_STEP]
    scripts.run(f"{WITHOUT_A_STEP}\nimport subprocess\nsubprocess.run({worker!r}, check=True)", LABWRIGHT_TRY="1")
    scripts.run(WITHOUT_A_STEP, LABWRIGHT_TRY="2")
    assert sorted(point["s"] for point in scripts.points()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_process_does_not_continue_after_one_on_another_host(scripts: Scripts) -> None:
    scripts.run(WITHOUT_A_STEP)
    (path,) = (scripts.run_dir / "metrics").glob("sdk-*.jsonl")
    header, points = path.read_text().split("\n", 1)
    path.write_text(json.dumps({**json.loads(header), "host": "node7"}) + "\n" + points)
    scripts.run(WITHOUT_A_STEP)
    assert sorted(point["s"] for point in scripts.points()) == [0, 0, 1, 1, 2, 2]
