"""Runs inside the sandbox, in the project's interpreter (3.8 or newer): every test file in a process of its own.

Three kinds of process. One speaks: it reads a word from the input, and its answer goes out behind that word. One forks:
it never saw the word, and has loaded what every test needs, so that a file costs a fork and not a start of Python. One
for each file runs its tests, and has to answer for each over a pipe of its own, with a secret of its own: ending early,
or printing what a pass looks like, is no pass. None of them can read another's memory.

A test that tests nothing passes all the same: so the tests of a task are run once more while the task gives a made-up
value, and ought to notice.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import secrets
import select
import signal
import sys
import time
import traceback
from typing import Any

from labwright.workflow.load import hide_memory

AT_ONCE = 4
FILE_SECONDS = 20.0
MOST_FILES = 1024
TOLD, REPLACED, BEGUN, END = "told", "replaced", "begun", "end"
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def main() -> None:
    hide_memory()
    reading, writing = os.pipe()
    forker = os.fork()
    if not forker:
        os.close(reading)
        silence()
        answer(writing)
        os._exit(0)
    os.close(writing)
    word = sys.stdin.readline().strip()
    with os.fdopen(reading, encoding="utf-8") as told:
        found = told.read()
    os.waitpid(forker, 0)
    if found.endswith("\n"):  # else it did not come to its end
        sys.stdout.write("\n%s %s" % (word, found))  # noqa: UP031 - as old as the oldest interpreter


def silence() -> None:
    """Nothing of the input, nothing on the output: those are the speaker's."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def answer(pipe: int) -> None:
    source, tests, made_up = sys.argv[1:4]
    names = sorted(name for name in os.listdir(tests) if name.startswith("test_") and name.endswith(".py"))
    with open(made_up, encoding="utf-8") as file:
        values = json.load(file)
    importlib.import_module("labwright.workflow.contract")  # and what it needs: nearly every test does
    found: dict[str, Any] = {}
    for start in range(0, len(names), AT_ONCE):
        begun = [FileRun(source, os.path.join(tests, name), values) for name in names[start : start + AT_ONCE]]
        for run in begun:
            found[os.path.basename(run.path)] = run.outcome()
    with os.fdopen(pipe, "w", encoding="utf-8") as answers:
        answers.write(json.dumps(found) + "\n")


class FileRun:
    """One test file in its process, from the fork until it has answered, or is late."""

    def __init__(self, source: str, path: str, values: dict[str, Any]) -> None:
        self.path = path
        self.secret = secrets.token_hex(16)
        self.reading, writing = os.pipe()
        self.child = os.fork()
        if not self.child:
            os.setsid()
            close_all_but(writing)
            try:
                answer_for(source, path, values, self.secret, writing)
            finally:
                os._exit(0)
        os.close(writing)
        self.deadline = time.monotonic() + FILE_SECONDS

    def outcome(self) -> dict[str, Any]:
        """By test, the first that was said of it. After the end nothing counts, and nobody else is awaited."""
        told: dict[str, dict[str, str]] = {"tests": {}, "replaced": {}}
        under_way, whole = "", False
        for kind, name, words in self.lines():
            if kind == BEGUN:
                under_way = name
            elif kind == END:
                whole = True
                break
            else:
                told["replaced" if kind == REPLACED else "tests"].setdefault(name, words)
        late = "" if whole or time.monotonic() < self.deadline else under_way or "(import)"
        self.end()
        return {"whole": whole, "late": late, **told}

    def lines(self) -> Iterator[tuple[str, str, str]]:
        """What was said with the secret, until the file is closed or its time is over."""
        rest = b""
        while select.select([self.reading], [], [], max(0.0, self.deadline - time.monotonic()))[0]:
            got = os.read(self.reading, 1 << 16)
            if not got:
                return
            *lines, rest = (rest + got).split(b"\n")
            for line in lines:
                said, kind, name, words = (line.decode("utf-8", "replace") + "   ").split(" ", 3)
                if said == self.secret:
                    yield kind, name, words.strip()

    def end(self) -> None:
        """With what it left behind in its session."""
        os.close(self.reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)


def close_all_but(kept: int) -> None:
    """A test answers for itself: the pipes of the others are not for it."""
    os.closerange(3, kept)
    os.closerange(kept + 1, MOST_FILES)


def answer_for(source: str, path: str, values: dict[str, Any], secret: str, pipe: int) -> None:
    def tell(kind: str, name: str = "-", words: str = "") -> None:
        os.write(pipe, ("%s %s %s %s\n" % (secret, kind, name, " ".join(words.split()))).encode())  # noqa: UP031

    sys.path.insert(0, source)
    run_all(path, tell, TOLD)
    task = os.path.basename(path)[len("test_") : -len(".py")]
    if task in values and replace(task, values[task]):
        run_all(path, tell, REPLACED)
    tell(END)


def run_all(path: str, tell: Callable[..., None], kind: str) -> None:
    spec = importlib.util.spec_from_file_location("tests_of_the_plan", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        for name in [name for name in vars(module) if name.startswith("test_")]:
            tell(BEGUN, name)
            tell(kind, name, outcome_of(getattr(module, name)))
    except BaseException as error:  # noqa: BLE001 - whatever importing raises is the answer
        tell(kind, "(import)", "%s: %s" % (type(error).__name__, error))  # noqa: UP031


def replace(task: str, value: Any) -> bool:
    """The task then gives the made-up value, whatever it is given. Not where the test file did not even load it."""
    module = sys.modules.get("experiment.tasks." + task)
    if module is not None:
        setattr(module, task, lambda *_given, **_named: value)
    return module is not None


def outcome_of(test: Any) -> str:
    try:
        test()
    except BaseException:  # noqa: BLE001 - so is whatever a test raises
        return "failed: " + traceback.format_exc()[-500:]
    return "passed"


if __name__ == "__main__":
    main()
