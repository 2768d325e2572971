"""Files written atomically stay complete, whoever writes them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labwright.files import create_exclusive, read_json, write_json, write_whole
from labwright.workflow.store import write_whole as write_value
from tests.support.full_disk import limit_file_size


def test_many_threads_can_write_one_file(tmp_path: Path) -> None:
    target = tmp_path / "stop"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: write_json(target, {"number": number}, sync=False), range(2000)))
    assert read_json(target)["number"] in range(2000)
    assert [path.name for path in tmp_path.iterdir()] == ["stop"]


def test_one_of_many_threads_claims_a_file(tmp_path: Path) -> None:
    target = str(tmp_path / "claim")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: create_exclusive(target, str(number).encode()), range(200)))
    assert sum(won) == 1
    assert Path(target).read_text() == str(won.index(True))


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_whole(path, bytes(100)),
        lambda path: create_exclusive(path, bytes(100)),
        lambda path: write_value(path, "x" * 100),
    ],
    ids=["whole", "exclusive", "value"],
)
def test_failed_write_on_a_full_disk_leaves_nothing(tmp_path: Path, write: Callable[[str], object]) -> None:
    with limit_file_size(20), pytest.raises(OSError, match="too large"):
        write(str(tmp_path / "target"))
    assert list(tmp_path.iterdir()) == []
