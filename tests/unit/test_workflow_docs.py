"""The reference of workflows: its example holds and runs, and it names all there is."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import labwright.workflow
from labwright.workflow import Store, run, validate_contract

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs" / "reference" / "workflow.md").read_text()
SOURCE = ROOT / "src" / "labwright" / "workflow"


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The first block of the page, as the module it would be."""
    file = tmp_path / "workflow_example.py"
    file.write_text(re.findall(r"```python\n(.*?)```", REFERENCE, re.DOTALL)[0])
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("workflow_example")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(file.read_text(), str(file), "exec"), vars(module))
    yield module


def test_the_example_holds_and_runs(example: Any, tmp_path: Path) -> None:
    workflow = example.create_workflow()
    assert validate_contract(workflow).ok

    def execute(step: Any, _inputs: dict[str, Any]) -> Any:
        made = [
            {
                "run_id": "r",
                "params": dict(c.params),
                "seed": c.seed,
                "status": "finished",
                "metrics": {"val_acc": c.params["lr"]},
            }
            for c in step.work.configurations()
        ]
        return {"runs": made, "metric": "val_acc", "direction": "maximize"}

    assert run(workflow, tmp_path / "state", run_experiment=execute).results == {"report": "lr 0.1: 0.100"}


def test_every_public_name_is_in_the_reference() -> None:
    assert [name for name in labwright.workflow.__all__ if not re.search(rf"\b{name}\b", REFERENCE)] == []


def test_every_finding_and_fault_is_in_the_reference_and_no_other() -> None:
    sources = "".join(path.read_text() for path in SOURCE.glob("*.py"))
    made = set(re.findall(r'(?:Finding|LoadFault|_guarded|_fault)\(\s*"(\w+)"', sources))
    made |= set(re.findall(r'\[\("(\w+)", f', sources))
    section = REFERENCE.split("## Checking")[1]
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", section))
    assert {code for code in made if code not in named} == set()
    tables = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE))))
    assert tables <= made


def test_every_fact_of_the_log_is_in_the_reference() -> None:
    sources = "".join((SOURCE / name).read_text() for name in ("engine.py", "store.py", "jobs.py"))
    facts = set(re.findall(r'_tell\("(\w+)"|"fact": "(\w+)"', sources))
    words = {word for pair in facts for word in pair if word} | {"retrying", "suspended", "skipped", "waiting"}
    assert {word for word in words if f"`{word}`" not in REFERENCE} == set()


def test_the_log_is_readable_without_opening_the_store(tmp_path: Path) -> None:
    assert list(Store(tmp_path / "nowhere").facts()) == []
