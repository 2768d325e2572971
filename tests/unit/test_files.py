"""Lines are read complete and once, and no line blocks those after it."""

from __future__ import annotations

from pathlib import Path

from labwright.files import TooLong, all_lines, complete_lines


def test_half_a_line_is_left_for_later(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\nhal")
    assert complete_lines(str(path), 0) == ([b"one", b"two"], 8)
    assert complete_lines(str(path), 8) == ([], 8)


def test_line_longer_than_a_block_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n" + b"x" * 50 + b"\nb\n")
    assert complete_lines(str(path), 0, limit=10) == ([b"a"], 2)
    assert complete_lines(str(path), 2, limit=10) == ([b"x" * 50], 53)
    assert complete_lines(str(path), 53, limit=10) == ([b"b"], 55)


def test_too_long_line_is_reported_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"x" * 3_000_000 + b"\nb\n")
    (line,), end = complete_lines(str(path), 0, limit=10, longest=40)
    assert isinstance(line, TooLong)
    assert (line, end) == (b"x" * 40, 3_000_001)
    assert complete_lines(str(path), end, limit=10) == ([b"b"], 3_000_003)


def test_long_line_without_an_end_waits_for_it(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"x" * 100)
    assert complete_lines(str(path), 0, limit=10, longest=40) == ([], 0)


def test_all_lines_are_returned(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n" + b"x" * (3 << 20) + b"\n" + b"b\n" * 1000)
    lines, end = all_lines(str(path))
    assert (len(lines), end) == (1002, path.stat().st_size)
    assert all_lines(str(tmp_path / "none"), 7) == ([], 7)
