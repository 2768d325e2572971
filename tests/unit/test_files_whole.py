"""Files that are written whole stay whole, whoever writes them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from labwright.files import create_exclusive, read_json, write_json


def test_many_threads_may_write_one_file_at_a_time(tmp_path: Path) -> None:
    target = tmp_path / "stop"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: write_json(target, {"number": number}, sync=False), range(2000)))
    assert read_json(target)["number"] in range(2000)
    assert [path.name for path in tmp_path.iterdir()] == ["stop"]


def test_of_many_threads_that_claim_a_file_one_wins(tmp_path: Path) -> None:
    target = str(tmp_path / "claim")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: create_exclusive(target, str(number).encode()), range(200)))
    assert sum(won) == 1
    assert Path(target).read_text() == str(won.index(True))
