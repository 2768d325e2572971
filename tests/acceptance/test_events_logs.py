"""A run's output over HTTP: ranges, matching lines, a live stream, and a digest of bounded size."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_events import Stream
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

TEXT = "naïve ✓ 𝛑\n" * 4000  # characters of one to four bytes


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("logs") / "project"
    project.mkdir()
    (project / "text").write_text(TEXT)
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="2", LABWRIGHT_GRACE_SECONDS="1").start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def run(lab: LiveServer) -> str:
    return str(lab.wait_for_end(lab.submit("cat text")["id"])["id"])


def logs(lab: LiveServer, run: str, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = lab.get(f"/runs/{run}/logs?{query}")
    return found


def with_output(lab: LiveServer, content: bytes) -> str:
    """Return a finished run that wrote these bytes."""
    (lab.project / "bytes").write_bytes(content)
    return str(lab.wait_for_end(lab.submit("cat bytes")["id"])["id"])


def test_default_is_the_end_of_the_output(lab: LiveServer, run: str) -> None:
    piece = logs(lab, run)
    size = len(TEXT.encode())
    assert TEXT.endswith(piece["content"])
    assert size - 10_000 <= piece["offset"] <= size - 9_990
    assert (piece["total_size"], piece["has_more_before"], piece["has_more_after"]) == (size, True, False)


def test_command_that_reopens_its_output_loses_nothing(lab: LiveServer) -> None:
    anew = "echo 1; echo 2 > /dev/stderr; echo 3; echo 4 > /dev/stdout; echo 5 | tee /dev/stderr > kept; cat kept"
    quick = lab.wait_for_end(lab.submit(anew)["id"])
    watched = lab.wait_for_end(lab.submit(f"sleep 0.4; {anew}; sleep 0.4; echo 6 > /dev/stderr")["id"])
    assert lab.output(quick["id"]) == "1\n2\n3\n4\n5\n5\n"
    assert lab.output(watched["id"]) == "1\n2\n3\n4\n5\n5\n6\n"


@pytest.mark.parametrize("limit", [4, 7, 100, 4096, 65_537])
def test_consecutive_ranges_give_the_whole_output(lab: LiveServer, limit: int) -> None:
    text = TEXT[:200] if limit < 100 else TEXT
    run = with_output(lab, text.encode())
    parts, offset = [], 0
    while True:
        piece = logs(lab, run, f"offset={offset}&limit={limit}")
        parts.append(piece["content"])
        assert piece["next_offset"] > offset or not piece["has_more_after"]
        offset = piece["next_offset"]
        if not piece["has_more_after"]:
            break
    assert "".join(parts) == text


@pytest.mark.parametrize("back", range(1, 14))
def test_ranges_from_the_end_break_no_character(lab: LiveServer, run: str, back: int) -> None:
    piece = logs(lab, run, f"offset=-{back}")
    assert "\ufffd" not in piece["content"]
    assert TEXT.endswith(piece["content"])
    assert piece["offset"] + len(piece["content"].encode()) == piece["total_size"]


@pytest.mark.parametrize(
    ("query", "content", "before", "after"),
    [
        ("offset=0&limit=3", "abc", False, True),
        ("offset=3&limit=100", "defghij", True, False),
        ("offset=10&limit=5", "", True, False),
        ("offset=999999&limit=5", "", True, False),
        ("offset=-4&limit=2", "gh", True, True),
        ("offset=-999999&limit=4", "abcd", False, True),
        ("offset=-0&limit=2", "ab", False, True),
    ],
)
def test_any_offset_returns_what_is_there(lab: LiveServer, query: str, content: str, before: bool, after: bool) -> None:
    run = with_output(lab, b"abcdefghij")
    piece = logs(lab, run, query)
    assert (piece["content"], piece["has_more_before"], piece["has_more_after"]) == (content, before, after)


def test_invalid_bytes_are_shown_and_reading_ends(lab: LiveServer) -> None:
    run = with_output(lab, bytes(range(256)) * 20)
    offset, pieces = 0, 0
    while (piece := logs(lab, run, f"offset={offset}&limit=100"))["has_more_after"]:
        assert piece["next_offset"] > offset
        offset, pieces = piece["next_offset"], pieces + 1
    assert pieces < 200
    half = with_output(lab, "abc✓".encode()[:-1])
    assert logs(lab, half)["content"] == "abc\ufffd"


def test_run_without_output_has_an_empty_log(lab: LiveServer) -> None:
    run = lab.post("/runs", {"command": "true"})["id"]
    piece = logs(lab, run)
    assert (piece["content"], piece["total_size"]) == ("", 0)
    assert lab.get(f"/runs/{run}/logs/digest")["last_lines"] == []


def test_grep_returns_only_lines_with_the_text(lab: LiveServer) -> None:
    lines = [f"line {i} {'needle ✓' if i % 100 == 7 else 'hay'}" for i in range(2000)]
    run = with_output(lab, "\n".join(lines).encode())
    assert logs(lab, run, "grep=needle")["content"].split("\n") == [line for line in lines if "needle" in line]
    assert logs(lab, run, "grep=%E2%9C%93")["content"].count("\n") == 19
    assert logs(lab, run, "grep=.*")["content"] == ""
    bounded = logs(lab, run, "grep=line")
    assert bounded["content"].count("\n") < 500
    assert bounded["has_more_before"]


def test_grep_searches_the_whole_of_a_large_output(lab: LiveServer) -> None:
    hay = b"hay without end\n" * (1 << 16)
    run = with_output(lab, b"the First needle\n" + hay * 70 + b"a middle Needle\n" + hay * 3 + b"no\nthe last needle")
    found = logs(lab, run, "grep=needle")
    assert found["content"] == "the First needle\nthe last needle"
    assert (found["offset"], found["has_more_before"]) == (0, False)
    found = logs(lab, run, "grep=FIRST%20needle&ignore_case=true")
    assert found["content"] == "the First needle"
    assert logs(lab, run, "grep=needle&ignore_case=true")["content"].count("\n") == 2


def test_grep_finds_lines_across_read_boundaries(lab: LiveServer) -> None:
    run = with_output(lab, b"".join(b"%07d %s\n" % (number, b"x" * 300_000) for number in range(20)))
    assert [line[:7] for line in logs(lab, run, "grep=%20xx")["content"].split("\n")] == [f"{n:07d}" for n in range(20)]


@pytest.mark.parametrize("end", [b"\n", b""])
def test_grep_splits_an_endless_line(lab: LiveServer, end: bytes) -> None:
    """Each part has its own matches: a progress bar that rewrites itself for days is one line of gigabytes."""
    run = with_output(lab, (b"\ra needle" + b"\r 50%" * (2 << 20)) * 2 + end)
    assert [line[:8] for line in logs(lab, run, "grep=needle")["content"].split("\n")] == ["a needle", "a needle"]


def test_stream_ends_with_the_whole_output_and_the_status(lab: LiveServer) -> None:
    """Characters are written in halves, and none arrives broken."""
    script = r"printf 'a\342\234'; sleep 0.4; printf '\223b\n'; cat text; exit 4"
    run = lab.submit(script)["id"]
    with closing(Stream(lab, f"/runs/{run}/logs/stream")) as stream:
        seen = stream.until(lambda kind, _: kind == "end")
    assert "".join(data["content"] for kind, data in seen if kind == "log") == f"a✓b\n{TEXT}"
    assert seen[-1][1] == {"status": "failed", "exit_code": 4}


def test_stream_resumes_where_it_broke_off(lab: LiveServer, run: str) -> None:
    path = f"/runs/{run}/logs/stream"
    with closing(Stream(lab, path)) as stream:
        first = stream.next()[1]["content"]
        last = stream.last
    with closing(Stream(lab, path, last)) as stream:
        rest = stream.until(lambda kind, _: kind == "end")
    assert first + "".join(data["content"] for kind, data in rest if kind == "log") == TEXT


def test_digest_finds_the_first_traceback_in_a_large_log_and_stays_small(lab: LiveServer) -> None:
    program = (
        "import sys\n"
        "for i in range(80_000): print('step', i, 'loss', 0.5, 'x' * 50)\n"
        "sys.stdout.flush()\n"
        "def deep(n):\n    if n == 0: raise ValueError('the real reason ✓')\n    deep(n - 1)\n"
        "try: deep(200)\nexcept ValueError as e: raise RuntimeError('a later one') from e\n"
    )
    (lab.project / "train.py").write_text(program)
    run = lab.wait_for_end(lab.submit("python3 train.py; code=$?; echo CUDA out of memory; exit $code")["id"])["id"]
    answer = lab.call("GET", f"/runs/{run}/logs/digest")
    digest = answer.json
    assert digest["total_size"] > 5_000_000
    assert len(answer.body) < 40_000
    assert (digest["status"], digest["exit_code"]) == ("failed", 1)
    assert digest["first_error"].startswith("Traceback (most recent call last)")
    assert digest["first_error"].endswith("ValueError: the real reason ✓")
    assert digest["last_lines"][-1] == "CUDA out of memory"
    assert digest["gpu_contention"] == ["CUDA out of memory"]


@pytest.mark.parametrize("word", ["x", "error ", "e", "CUDA out of memor"])
def test_endless_line_costs_no_time(lab: LiveServer, word: str) -> None:
    """A progress bar writes megabytes without a newline."""
    line = (word * (3 << 20))[: 3 << 20]
    run = with_output(lab, line.replace(" ", "\r").encode() + b"\nCUDA out of memory")
    began = time.monotonic()
    answer = lab.call("GET", f"/runs/{run}/logs/digest")
    assert answer.status == 200
    assert len(answer.body) < 40_000
    assert "CUDA out of memory" in answer.json["gpu_contention"][-1] or word != "x"
    logs(lab, run, "grep=nothing-like-it")
    assert time.monotonic() - began < 30


BAR = b"".join(b"\r%d/3000 [00:12<00:14, 9.9it/s]" % state for state in range(3000))


def test_digest_shows_the_last_state_of_a_progress_bar(lab: LiveServer) -> None:
    def last_lines(output: bytes) -> list[str]:
        lines: list[str] = lab.get(f"/runs/{with_output(lab, output)}/logs/digest")["last_lines"]
        return lines

    assert last_lines(b"begun\n" + BAR) == ["begun", "2999/3000 [00:12<00:14, 9.9it/s]"]
    assert last_lines(BAR + b"no such dataset\n") == ["2999/3000 [00:12<00:14, 9.9it/s]no such dataset"]
    assert last_lines(BAR + b"\r" + b" " * 40 + b"\rdone\r\n") == ["done"]


def test_error_after_a_progress_bar_is_shown_without_the_bar(lab: LiveServer) -> None:
    run = with_output(lab, BAR + b"\rfatal: no such dataset\r" + BAR + b"\nnvidia: CUDA out of memory" + BAR)
    digest = lab.get(f"/runs/{run}/logs/digest")
    assert digest["first_error"] == "fatal: no such dataset"
    assert digest["gpu_contention"] == ["nvidia: CUDA out of memory"]


def test_grep_shows_the_matching_part_of_a_long_line(lab: LiveServer) -> None:
    run = with_output(lab, BAR + b"\rno such dataset\r\n" + "✓".encode() * 5000 + b" the Needle " + b"x" * 5000 + b"\n")
    assert logs(lab, run, "grep=such")["content"] == "no such dataset"
    assert logs(lab, run, "grep=/3000")["content"] == "2999/3000 [00:12<00:14, 9.9it/s]"
    found = logs(lab, run, "grep=needle&ignore_case=true")["content"]
    assert "✓ the Needle xxx" in found
    assert (found[:2], found[-2:], len(found)) == ("…✓", "x…", 501)


def test_first_error_is_found_outside_the_digest_range(lab: LiveServer) -> None:
    before, after = b"all is well \xff\xc3\n" * 400_000, b"still well\n" * 600_000
    run = with_output(lab, before + b"[rank0]: Traceback (most recent call last):\n" + after)
    assert lab.get(f"/runs/{run}/logs/digest")["first_error"] is None
    found = lab.get(f"/runs/{run}/logs/first-error")
    assert found["offset"] == len(before)
    run = with_output(lab, after)
    assert lab.get(f"/runs/{run}/logs/first-error") == {
        "offset": None,
        "searched": len(after),
        "total_size": len(after),
    }


def test_capped_log_says_once_what_is_missing(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_LOG_CAP_MB="1").start()
    script = (
        "echo first; for i in $(seq 12); do head -c 500000 /dev/zero | tr '\\0' x; echo; sleep 0.15; done; echo last"
    )
    run = server.submit(script)["id"]
    ended = server.wait_for_end(run)
    assert ended["status"] == "finished"
    path = Path(ended["run_dir"]) / "output.log"
    assert os.stat(path).st_blocks * 512 < 3_000_000 < os.stat(path).st_size
    gap = json.loads((path.parent / "output.gap.json").read_text())
    with closing(Stream(server, f"/runs/{run}/logs/stream")) as stream:
        seen = stream.until(lambda kind, _: kind == "end")
    whole = "".join(data["content"] for kind, data in seen if kind == "log")
    assert whole.startswith("first\n")
    assert whole.endswith("last\n")
    assert whole.count("left out here") == 1
    assert "\0" not in whole
    inside = server.get(f"/runs/{run}/logs?offset={gap['start'] + 10}&limit=100")
    assert "left out here" in inside["content"]
    assert (inside["offset"], inside["next_offset"]) == (gap["start"], gap["end"])
    around = server.get(f"/runs/{run}/logs?offset={gap['start'] - 10}&limit=100")
    assert around["content"].startswith("x" * 10)
    digest = server.get(f"/runs/{run}/logs/digest")
    assert digest["gap"] == gap
    assert digest["last_lines"][-1] == "last"
    assert "\0" not in json.dumps(digest)


def test_log_can_be_read_while_it_grows(lab: LiveServer) -> None:
    run = lab.submit("echo one; until [ -e go ]; do sleep 0.02; done; echo two")["id"]
    wait_until(lambda: logs(lab, run)["content"] == "one\n", "the first line")
    (lab.project / "go").touch()
    lab.wait_for_end(run)
    assert logs(lab, run)["content"] == "one\ntwo\n"


@pytest.mark.parametrize("offset", [6, 2**53])
def test_log_beyond_its_end_is_empty(lab: LiveServer, offset: int) -> None:
    run = lab.wait_for_end(lab.submit("echo hello")["id"])
    answer = lab.call("GET", f"/runs/{run['id']}/logs/raw?offset={offset}")
    assert (answer.status, answer.body) == (200, b"")
