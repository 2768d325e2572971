"""Runs inside the sandbox, in the project's interpreter (3.8 or newer): every test file in a process of its own.

A file's process has to answer for each test over a pipe, with a secret: ending early, or printing what a pass looks
like, is no pass. The verdict goes out behind a word that the tests' processes are not given; it came on the input, was
read before any of them started, and lies in memory that none of them can read. A test that tests nothing passes all
the same: so the tests of a task are run once more while the task gives a made-up value, and ought to notice.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from labwright.workflow.hidden_memory import hide_memory

AT_ONCE = 4


def main() -> None:
    hide_memory()
    word = sys.stdin.readline().strip()
    source, tests, made_up = sys.argv[1:4]
    names = sorted(name for name in os.listdir(tests) if name.startswith("test_") and name.endswith(".py"))
    with open(made_up, encoding="utf-8") as file:
        values = json.load(file)
    wanted = [(name, "") for name in names]
    wanted += [("test_%s.py" % task, task) for task in sorted(values) if "test_%s.py" % task in names]  # noqa: UP031
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda one: run_file(source, os.path.join(tests, one[0]), made_up, one[1]), wanted))
    files = {name: result for (name, task), result in zip(wanted, done) if not task}  # noqa: B905 - 3.8
    replaced = {task: result for (_name, task), result in zip(wanted, done) if task}  # noqa: B905
    answer = json.dumps({"files": files, "replaced": replaced})
    sys.stdout.write("\n%s %s\n" % (word, answer))  # noqa: UP031 - as old as the oldest interpreter


def run_file(source: str, path: str, made_up: str, replaced: str) -> dict[str, Any]:
    secret = secrets.token_hex(16)
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-B", __file__, source, path, made_up, replaced, str(writing)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[writing],
        start_new_session=True,
    )  # fmt: skip
    os.close(writing)
    assert child.stdin is not None
    child.stdin.write(secret.encode())
    child.stdin.close()
    with os.fdopen(reading, encoding="utf-8", errors="replace") as answers:
        results = heard(answers, secret)
    end(child)
    return {"whole": results.pop("(end)", None) is not None, "tests": results}


def heard(answers: Iterable[str], secret: str) -> dict[str, str]:
    """By test, the first that was said of it. After the end nothing counts, and nobody else who writes is awaited."""
    results: dict[str, str] = {}
    for line in answers:
        said, _, rest = line.rstrip("\n").partition(" ")
        name, _, words = rest.partition(" ")
        if said == secret:
            results.setdefault(name, words)
        if "(end)" in results:
            break
    return results


def end(child: subprocess.Popen[bytes]) -> None:
    """With what it left behind in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def answer_for(source: str, path: str, made_up: str, replaced: str, pipe: int) -> None:
    hide_memory()
    secret = sys.stdin.read()

    def tell(name: str, words: str) -> None:
        os.write(pipe, ("%s %s %s\n" % (secret, name, " ".join(words.split()))).encode())  # noqa: UP031

    sys.path.insert(0, source)
    spec = importlib.util.spec_from_file_location("tests_of_the_plan", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        if replaced:
            replace(made_up, replaced)
        spec.loader.exec_module(module)
        for name in [name for name in vars(module) if name.startswith("test_")]:
            tell(name, outcome_of(getattr(module, name)))
    except BaseException as error:  # noqa: BLE001 - whatever importing raises is the answer
        tell("(import)", "%s: %s" % (type(error).__name__, error))  # noqa: UP031
    tell("(end)", "end")


def replace(made_up: str, task: str) -> None:
    """The task then gives the made-up value, whatever it is given."""
    with open(made_up, encoding="utf-8") as file:
        value = json.load(file)[task]
    setattr(importlib.import_module("experiment.tasks." + task), task, lambda *_given, **_named: value)


def outcome_of(test: Any) -> str:
    try:
        test()
    except BaseException:  # noqa: BLE001 - so is whatever a test raises
        return "failed: " + traceback.format_exc()[-500:]
    return "passed"


if __name__ == "__main__":
    if len(sys.argv) == 6:
        answer_for(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        main()
