"""Results of bounded size, and where the protocol's SDK is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import labwright
from labwright.mcp.bounds import LONGEST_RESULT, bounded_json
from tests.unit.test_layers import imports_in

ROOT = Path(labwright.__file__).parent


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10**6,
        ["x" * 1000] * 1000,
        {f"key {i}": [{"a": "b" * 500}] * 50 for i in range(500)},
        [[[["deep" * 100] * 20] * 20] * 20] * 20,
        {"k" * 10**6: 1},
        ["\x00" * 10_000] * 20,
    ],
    ids=["text", "list", "fields", "deep", "key", "escapes"],
)
def test_result_has_a_bounded_size(value: Any) -> None:
    assert len(bounded_json(value)) <= LONGEST_RESULT + 100


def test_omitted_items_are_counted_and_a_small_result_is_complete() -> None:
    shown = json.loads(bounded_json([{"text": "x" * 900, "id": number} for number in range(100)]))
    assert shown[-1] == "… [80 more]"
    small = {"a": [1, 2.5, None, True], "b": "ä"}
    assert json.loads(bounded_json(small)) == small


def test_sdk_is_imported_only_in_its_layer_and_only_to_serve() -> None:
    outside = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] != "mcp"]
    users = [path.name for path in outside if {"mcp", "mcp_types"} & _foreign(path)]
    assert users == []
    program = "import sys, labwright.cli.main as m; m.load('mcp'); m.load('skills'); print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def _foreign(path: Path) -> set[str]:
    package = ["labwright", *path.relative_to(ROOT).parts[:-1]]
    return {name.split(".")[0] for name in imports_in(path.read_text(), package)}
