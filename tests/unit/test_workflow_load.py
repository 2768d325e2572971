"""Loading an entrypoint in a child, and the whole package in bare interpreters that have no Labwright."""

from __future__ import annotations

import glob
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labwright.compute.sdk_folder import write_small_package
from labwright.workflow import load_in_child

GOOD = """
from __future__ import annotations
from pathlib import Path
from typing import TypedDict
from labwright.workflow import Experiment, Metric, Workflow, task

class Best(TypedDict):
    lr: float
    table: list[dict[str, float]]

@task
def prepare(folder: Path, fraction: float | None = None) -> Path:
    return folder / str(fraction)

@task
def choose(runs: list[dict[str, object]]) -> Best:
    return {"lr": float(len(runs)), "table": []}

@task
async def report(lr: float) -> str:
    return f"best: {lr}"

def create_workflow() -> Workflow:
    print("noise on stdout")
    workflow = Workflow("lr_sweep")
    data = workflow.add(prepare, inputs={"folder": Path("data")})
    train = workflow.add(
        Experiment(
            "train",
            command="python train.py --lr {lr} --seed {seed} --data {data}",
            grid={"lr": [0.1, 0.01]},
            seeds=[0, 1, 2],
            metric=Metric("val_acc", "maximize"),
            produces=["val_acc"],
            baseline={"lr": 0.1},
            max_runs=6,
        ),
        inputs={"data": data.output()},
    )
    best = workflow.add(choose, inputs={"runs": train.output("runs")})
    written = workflow.add(report, inputs={"lr": best.output("lr")})
    workflow.result("report", written.output())
    return workflow
"""


def interpreters() -> list[str]:
    """This one, and every other that is installed and supported."""
    found = glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))
    others = [path for path in sorted(found) if int(path.split("/versions/3.")[1].split(".")[0]) >= 8]
    return [sys._base_executable, *others]  # type: ignore[attr-defined]


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.small = root / "small"
        (root / "src" / "experiment").mkdir(parents=True)
        (root / "src" / "experiment" / "__init__.py").touch()
        write_small_package(self.small)

    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.small), "PYTHONWARNINGS": "error"}

    def load(self, source: str, python: str = sys.executable, symbol: str = "create_workflow", **options: Any) -> Any:
        (self.root / "src" / "experiment" / "workflow.py").write_text(source)
        environment = self.environment()
        return load_in_child(
            python, self.root / "src", "experiment.workflow", symbol, environment=environment, **options
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("python", interpreters())
def test_a_generated_workflow_loads_and_holds_in_any_interpreter(project: Project, python: str) -> None:
    answer = project.load(GOOD, python)
    assert answer["ok"], answer
    assert answer["contract"] == {"ok": True, "findings": []}
    assert answer["effects"] == []
    steps = {step["id"]: step for step in answer["workflow"]["steps"]}
    assert steps["choose"]["task"]["gives"]["table"] == "list[dict[str, float]]"
    assert steps["prepare"]["task"]["takes"]["fraction"] == {"type": "float | None", "required": False}
    assert steps["train"]["experiment"]["size"] == 6
    assert not list((project.root / "src").rglob("__pycache__"))


RUN = """
import sys, tempfile
from labwright.workflow import Workflow, run, task, validate_contract, Suspended, Retry, fingerprint
from labwright.workflow.load import load_entrypoint
assert "asyncio" not in sys.modules and "ctypes" not in sys.modules, "a slow import that is not needed"
workflow = load_entrypoint(sys.argv[1], "experiment.workflow", "create_workflow")
def execute(step, inputs):
    made = [{"run_id": "r", "params": dict(c.params), "seed": c.seed, "status": "finished", "metrics": {"val_acc": 0.5}}
            for c in step.work.configurations()]
    return {"runs": made, "metric": "val_acc", "direction": "maximize"}
with tempfile.TemporaryDirectory() as folder:
    for _ in range(2):
        result = run(workflow, folder, run_experiment=execute, concurrency=2)
        assert result.status == "finished", result.steps
        assert result.results == {"report": "best: 6.0"}, result.results

@task(timeout=0.2)
def spins(x: int) -> int:
    while True:
        x += 1

with tempfile.TemporaryDirectory() as folder:
    late = Workflow("late")
    late.add(spins, inputs={"x": 1})
    assert run(late, folder).steps["spins"].reason == "timed out: not done within 0.2 s"
print("fine")
"""


@pytest.mark.parametrize("python", interpreters())
def test_a_workflow_runs_in_any_interpreter(project: Project, python: str) -> None:
    (project.root / "src" / "experiment" / "workflow.py").write_text(GOOD)
    command = [python, "-s", "-W", "error", "-c", RUN, str(project.root / "src")]
    done = subprocess.run(command, env=project.environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.endswith("fine\n"), done.stderr


HEAD = "from labwright.workflow import Workflow, task\n"
FAULTS = {
    "syntax": ("import_failed", "def create_workflow(:\n"),
    "missing package": ("import_failed", "import no_such_package_anywhere\n"),
    "exit at import": ("import_failed", "import sys\nsys.exit(0)\n"),
    "hard exit at import": ("no_answer", "import os\nos._exit(0)\n"),
    "crash": ("no_answer", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"),
    "no symbol": ("no_symbol", HEAD),
    "symbol is no function": ("no_symbol", HEAD + "create_workflow = Workflow('w')\n"),
    "raises": ("create_failed", HEAD + "def create_workflow():\n    raise ValueError('no')\n"),
    "returns something else": ("not_a_workflow", HEAD + "def create_workflow():\n    return {'name': 'w'}\n"),
    "returns nothing": ("not_a_workflow", HEAD + "def create_workflow():\n    Workflow('w')\n"),
    "wants arguments": ("create_failed", HEAD + "def create_workflow(x):\n    return Workflow('w')\n"),
    "endless": ("timed_out", "while True: pass\n"),
    "forged answer": ("import_failed", "print('{\"ok\": true}')\nimport sys\nsys.exit(0)\n"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(project: Project, name: str) -> None:
    code, source = FAULTS[name]
    answer = project.load(source, timeout=2.0 if name == "endless" else 60.0)
    assert not answer["ok"] and answer["fault"]["code"] == code, answer
    assert answer["fault"]["message"]


def test_a_fault_comes_with_its_traceback(project: Project) -> None:
    answer = project.load(FAULTS["raises"][1])
    assert "ValueError: no" in answer["fault"]["message"] and "create_workflow" in answer["fault"]["traceback"]


def test_findings_come_with_the_description(project: Project) -> None:
    answer = project.load(HEAD + "def create_workflow():\n    return Workflow('w')\n")
    assert answer["ok"] and [finding["code"] for finding in answer["contract"]["findings"]] == ["empty"]


EFFECTS = {
    "a file": ("writes a file", "open('left.txt', 'w').close()"),
    "a file by descriptor": ("writes a file", "import os; os.close(os.open('left.txt', os.O_CREAT | os.O_WRONLY))"),
    "a path": ("writes a file", "import pathlib; pathlib.Path('left.txt').write_text('x')"),
    "a thread": ("starts a thread", "import threading, time; threading.Thread(target=time.sleep, args=(9,)).start()"),
    "a process": ("starts a process", "import subprocess; subprocess.run(['true'])"),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_side_effects_of_an_import_are_reported(
    project: Project, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words, statement = EFFECTS[name]
    answer = project.load(HEAD + statement + "\ndef create_workflow():\n    return Workflow('w')\n")
    assert answer["ok"] and words in [effect["what"] for effect in answer["effects"]], answer


def test_the_small_package_has_the_workflow_and_imports_little(project: Project) -> None:
    folder = project.small / "labwright"
    assert (folder / "workflow" / "engine.py").is_file() and not (folder / "store").exists()
    code = "import labwright.workflow, sys, json; print(json.dumps(sorted(sys.modules)))"
    command = [sys._base_executable, "-s", "-c", code]  # type: ignore[attr-defined]
    done = subprocess.run(command, env=project.environment(), capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"asyncio", "ctypes", "multiprocessing", "subprocess", "concurrent.futures"}
    assert {name.split(".")[1] for name in loaded if name.startswith("labwright.")} == {"version", "workflow"}


STEPS = """
from __future__ import annotations
import sys
from pathlib import Path
from labwright.workflow import Suspended, Workflow, task

@task
def joined(folder: Path, rates: list[float]) -> dict[str, Path]:
    return {str(rate): folder / str(rate) for rate in rates}

@task
async def fails(x: float) -> float:
    raise ValueError(f"no {x}")

@task
def waits(x: float) -> float:
    raise Suspended("for a person")

def create_workflow() -> Workflow:
    workflow = Workflow("w")
    workflow.add(joined, inputs={"folder": Path("a"), "rates": [0.5]})
    workflow.add(fails, inputs={"x": 1.0})
    workflow.add(waits, inputs={"x": 1.0})
    return workflow
"""


@pytest.mark.parametrize(
    ("step", "inputs", "code", "expected"),
    [
        (
            "joined",
            {"folder": {"$path": "a"}, "rates": [0.5]},
            0,
            {"status": "finished", "value": {"0.5": {"$path": "a/0.5"}}},
        ),
        ("fails", {"x": 1.0}, 1, {"status": "failed", "error": "ValueError: no 1.0"}),
        ("waits", {"x": 1.0}, 75, {"status": "suspended", "error": "for a person"}),
        ("nowhere", {}, 1, {"status": "failed", "error": "there is no task 'nowhere' in w"}),
    ],
)
def test_one_task_can_run_in_its_own_process(
    project: Project, step: str, inputs: dict[str, Any], code: int, expected: dict[str, Any]
) -> None:
    (project.root / "src" / "experiment" / "workflow.py").write_text(STEPS)
    (project.root / "inputs.json").write_text(json.dumps(inputs))
    places = ["src", "experiment.workflow", "create_workflow", step, "inputs.json", "output.json"]
    command = [interpreters()[-1], "-s", "-m", "labwright.workflow.perform", *places]
    done = subprocess.run(
        command, env=project.environment(), cwd=project.root, capture_output=True, timeout=60, check=False
    )
    answer = json.loads((project.root / "output.json").read_text())
    assert done.returncode == code and {key: answer[key] for key in expected} == expected, done.stderr
