"""Load a workflow in its own process and describe it: `python -m labwright.workflow.load SOURCE_ROOT MODULE SYMBOL`.

The child prints one line of JSON: the description with the findings of `validate_contract` and what importing did to
the machine, or the fault. It is not a sandbox: the code may do what the process may do, and it may lie. A caller that
does not trust the code runs the process in a sandbox and passes `-` as a fourth argument. Then the child first reads a
word from its input and starts its line with it, so that printed text does not pass for the result. The content of the
line is still only a claim of the code.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from labwright.workflow.contract import validate_contract
from labwright.workflow.experiments import Experiment
from labwright.workflow.fingerprints import Fingerprints
from labwright.workflow.graph import Output, Workflow, outputs_in
from labwright.workflow.tasks import Task
from labwright.workflow.values import NotEncodable, encode

_PR_SET_DUMPABLE = 4  # if 0, /proc/<pid>/mem, environ and fd belong to root, and tracing is not allowed
_OUTPUT_LIMIT = 4000
_EFFECTS = {  # what importing a module of tasks must not do, by audit event of the interpreter
    "open": "writes a file",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.mkdir": "makes a folder",
    "os.rmdir": "removes a folder",
    "shutil.rmtree": "removes a folder",
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.exec": "starts a process",
    "os.fork": "starts a process",
    "os.posix_spawn": "starts a process",
    "socket.connect": "opens a connection",
    "socket.bind": "opens a port",
    "_thread.start_new_thread": "starts a thread",
}
_EFFECTS_KEPT = 100
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def describe(workflow: Workflow, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a workflow as plain data, for people, checks and RunMode in another process."""
    fingerprints = Fingerprints(environment)
    steps = [
        {
            "id": step.id,
            "kind": _kind(step.work),
            "inputs": {str(name): _source(value) for name, value in step.inputs.items()},
            "over": None if step.over is None else {str(name): _source(value) for name, value in step.over.items()},
            "collect": step.collect,
            "after": list(step.after),
            "when": None if step.when is None else _source(step.when),
            **_work(step.work, fingerprints),
        }
        for step in workflow.steps
    ]
    results = {name: _source(output) for name, output in workflow.results.items()}
    return {"name": workflow.name, "steps": steps, "results": results}


def _kind(work: Any) -> str:
    if isinstance(work, Task):
        return "task"
    return "experiment" if isinstance(work, Experiment) else "unknown"


def _source(value: Any) -> dict[str, Any]:
    if isinstance(value, Output):
        return {"step": value.step, "output": value.name}
    if outputs_in(value):
        return {"list": [_source(item) for item in value]}
    try:
        return {"value": encode(value)}
    except NotEncodable as error:
        return {"refused": str(error)}


def _work(work: Any, fingerprints: Fingerprints) -> dict[str, Any]:
    if isinstance(work, Task):
        task = {
            **_interface(work),
            "name": work.name,
            "module": getattr(work, "__module__", ""),
            "doc": (work.__doc__ or "").strip(),
            "is_async": work.is_async,
            "retry": asdict(work.options.retry),
            "timeout": work.options.timeout,
        }
        return {"task": task, "code": fingerprints.of(work)}
    if isinstance(work, Experiment):
        try:
            declared = encode(work)["fields"]
        except NotEncodable as error:
            declared = {"refused": str(error)}
        return {"experiment": {**_interface(work), **declared, "size": work.size}}
    return {}


def _interface(work: Any) -> dict[str, Any]:
    return {
        "takes": {name: {"type": str(given.type), "required": given.required} for name, given in work.inputs.items()},
        "gives": {name: str(kind) for name, kind in work.outputs.items()},
        "writes": [str(path) for path in work.writes],
    }


def hide_memory() -> None:
    """Prevent other processes of the same user from reading this process's memory, so that it can hold a secret."""
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


def load_command(
    python: str, source_root: str | os.PathLike[str], module: str, symbol: str, *, word_on_input: bool = False
) -> list[str]:
    """Return the command of the child. `PYTHONPATH` must contain the folder of `labwright`.

    With `word_on_input` the child reads one line, and its output starts with that word.
    """
    word = ["-"] if word_on_input else []
    return [python, "-m", "labwright.workflow.load", os.fspath(source_root), module, symbol, *word]


def load_in_child(
    python: str,
    source_root: str | os.PathLike[str],
    module: str,
    symbol: str,
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> dict[str, Any]:
    """Load a workflow in a child. Return its line: `ok` with `workflow`, `contract`, `effects`, or a `fault`."""
    import subprocess

    try:
        done = subprocess.run(
            load_command(python, source_root, module, symbol),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=None if environment is None else dict(environment),
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _fault("timed_out", f"loading took longer than {timeout:g} s", "An import must not do any work.")
    return read_answer(done.stdout, done.stderr, done.returncode)


def read_answer(stdout: bytes, stderr: bytes, exit_code: int) -> dict[str, Any]:
    """Parse the line of the child. A child that ended without it has failed; the end of its stderr is kept."""
    try:
        found = json.loads(stdout)
        if isinstance(found, dict) and isinstance(found.get("ok"), bool):
            return found
    except (ValueError, RecursionError):
        pass
    errors = stderr.decode("utf-8", "replace")[-_OUTPUT_LIMIT:]
    message = f"the loading process ended with exit code {exit_code} and without a result"
    return _fault("no_answer", message, "Does the code end the process when it is imported?", errors)


def _fault(code: str, message: str, hint: str = "", trace: str = "") -> dict[str, Any]:
    return {"ok": False, "fault": {"code": code, "message": message, "hint": hint, "traceback": trace}, "effects": []}


class LoadFault(Exception):
    """The entrypoint does not return a workflow."""

    def __init__(self, code: str, message: str, hint: str = "", trace: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.hint, self.trace = code, message, hint, trace

    def to_dict(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message, "hint": self.hint, "traceback": self.trace}


def load_entrypoint(source_root: str | os.PathLike[str], module: str, symbol: str) -> Workflow:
    """Import the module, call the symbol and return its Workflow. Use it in a process that exists only for this."""
    root = os.path.abspath(source_root)
    if not os.path.isdir(root):
        raise LoadFault("no_source_root", f"there is no folder {root}")
    if root not in sys.path:
        sys.path.insert(0, root)
    import importlib

    imported = _guarded("import_failed", f"import {module}", lambda: importlib.import_module(module))
    create = getattr(imported, symbol, None)
    if not callable(create):
        message = f"{imported.__name__} has no function {symbol}"
        raise LoadFault("no_symbol", message, f"Define def {symbol}() -> Workflow.")
    made = _guarded("create_failed", f"{module}.{symbol}()", create)
    if not isinstance(made, Workflow):
        message = f"{symbol}() returned {type(made).__name__}, not a Workflow"
        raise LoadFault("not_a_workflow", message, "Return the Workflow.")
    return made


def _guarded(code: str, what: str, act: Any) -> Any:
    try:
        return act()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - anything that code raises is the fault to report
        message = f"{what} raised {type(error).__name__}: {error}".rstrip(": ")
        raise LoadFault(code, message, trace=traceback.format_exc()) from None


class _EffectWatch:
    """Record side effects by the interpreter's audit events while it is open. An audit hook cannot be removed."""

    def __init__(self) -> None:
        self.effects: list[dict[str, str]] = []
        self._open = False
        sys.addaudithook(self._on_event)

    @contextmanager
    def watching(self) -> Iterator[None]:
        import threading

        before = set(threading.enumerate())
        self._open = True
        try:
            yield
        finally:
            self._open = False
        names = [thread.name for thread in threading.enumerate() if thread not in before]
        for name in names:
            self._note("starts a thread", name)

    def _on_event(self, event: str, args: tuple[Any, ...]) -> None:
        if self._open and event in _EFFECTS and (event != "open" or _opens_to_write(args)):
            self._note(_EFFECTS[event], str(args[0])[:300] if args else "")

    def _note(self, what: str, target: str) -> None:
        effect = {"what": what, "target": target}
        if effect not in self.effects and len(self.effects) < _EFFECTS_KEPT:
            self.effects.append(effect)


def _opens_to_write(args: tuple[Any, ...]) -> bool:
    path, mode, flags = (*args, None, None, None)[:3]
    if path in (os.devnull, None):
        return False
    return (
        isinstance(flags, int) and bool(flags & _WRITING)
        if mode is None
        else any(letter in str(mode) for letter in "wax+")
    )


def load_result(source_root: str, module: str, symbol: str) -> dict[str, Any]:
    """Return what the child prints."""
    watch = _EffectWatch()
    sys.dont_write_bytecode = True  # the source may be read-only, and its digest is compared
    try:
        with watch.watching():
            workflow = load_entrypoint(source_root, module, symbol)
        contract = validate_contract(workflow).to_dict()
        described = _guarded("not_describable", "describing the workflow", lambda: describe(workflow))
        return {"ok": True, "workflow": described, "contract": contract, "effects": watch.effects}
    except LoadFault as fault:
        return {"ok": False, "fault": fault.to_dict(), "effects": watch.effects}


def main() -> int:
    if len(sys.argv) not in (4, 5) or sys.argv[4:] not in ([], ["-"]):
        print("usage: python -m labwright.workflow.load SOURCE_ROOT MODULE SYMBOL [-]", file=sys.stderr)
        return 2
    before = ""
    if sys.argv[4:]:
        hide_memory()
        before = sys.stdin.readline().strip() + " "  # before any other code can read it from the pipe
    out = os.dup(1)
    os.dup2(2, 1)  # what the code prints is not our result
    found = load_result(*sys.argv[1:4])
    with os.fdopen(out, "w", encoding="utf-8") as stream:
        stream.write(before + json.dumps({**found, "python": sys.version.split()[0]}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # a thread that the code left running must not block the end


if __name__ == "__main__":
    main()
