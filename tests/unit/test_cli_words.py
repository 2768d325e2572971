"""How the command line formats values, and how it parses input."""

from __future__ import annotations

import subprocess
import sys

import pytest

from labwright.cli.chat.view import ChatView
from labwright.cli.formatting import ago, duration, number, one_line, parse_duration, parse_value, shorten, size, width
from labwright.cli.machine import holder
from labwright.cli.main import COMMANDS, load
from labwright.cli.runs.commands import exit_code_of, reason_reporter
from labwright.cli.runs.submit import caller_environment, gpuwrap_config
from labwright.cli.screen import Column, Screen
from labwright.client.follow import frames
from labwright.domain.clock import epoch_seconds
from labwright.domain.errors import Invalid
from labwright.domain.gpu import BusyLimits, Gpu, LeaseHolder


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.4s"), (12, "12s"), (192, "3m 12s"), (7500, "2h 05m"), (100_000, "1d 3h")],
)
def test_durations_read_like_a_clock(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_234_567, "1.2 MB"), (999_950, "1.0 MB"), (5e12, "5.0 TB")],
)
def test_sizes_have_one_decimal(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.000123456, "0.0001235"),
        (3.0, "3"),
        (59999.0, "59999"),
        (1.5e9, "1.5e+09"),
        (123456, "123456"),
        (True, "True"),
    ],
)
def test_numbers_have_four_digits_and_integers_all_of_theirs(value: object, text: str) -> None:
    assert number(value) == text


def test_times_are_relative_to_now() -> None:
    moment = "2026-01-02T03:04:05.000Z"
    then = epoch_seconds(moment)
    assert [ago(moment, then + passed) for passed in (1, 30, 300, 7200, 200_000)] == [
        "just now",
        "30s ago",
        "5m ago",
        "2h ago",
        "2d ago",
    ]


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("90m", 5400), ("2h", 7200), ("1h30m", 5400), ("1.5", 1.5)])
def test_durations_are_parsed(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "2 hours", "-1", "1h?"])
def test_invalid_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_duration(text)
    assert "2h" in refused.value.hint


def test_parameters_keep_their_type() -> None:
    read = [parse_value(text) for text in ("0.1", "3", "true", "null", "adam", "NaN", "[1]", '"x"')]
    assert read == [0.1, 3, True, None, "adam", "NaN", "[1]", '"x"']


def test_foreign_text_cannot_control_the_terminal() -> None:
    assert one_line("a\nb\x1b[31mc") == "a b�[31mc"


def test_wide_letters_are_cut_by_columns() -> None:
    assert width("日本") == 4
    assert shorten("日本語", 5) == "日本…"
    assert shorten("short", 5) == "short"


COLUMNS = [
    Column("id", "id"),
    Column("name", "name", shrinks=True),
    Column("n", lambda item: str(item["n"]), right=True),
    Column("wide", "note", min_width=100),
    Column("note", "note", shrinks=True, optional=True),
]


def table_lines(capsys: pytest.CaptureFixture[str], *items: dict[str, object], columns: int | None) -> list[str]:
    screen = Screen()
    screen.is_terminal = columns is not None
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", str(columns or 80))
        screen.table(COLUMNS, items)
    return capsys.readouterr().out.splitlines()


def test_table_fits_the_terminal_and_the_widest_column_shrinks_first(capsys: pytest.CaptureFixture[str]) -> None:
    item = {"id": "run-4k2x9m1c7t", "name": "x" * 60, "n": 5, "note": "y" * 20}
    head, row = table_lines(capsys, item, columns=80)
    assert head.split() == ["ID", "NAME", "N", "NOTE"]
    assert row == f"run-4k2x9m1c7t  {'x' * 38}…  5  {'y' * 20}"
    assert len(row) == 80


def test_table_in_a_pipe_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    item = {"id": "run-4k2x9m1c7t", "name": "日本", "n": 12, "note": "y" * 200}
    head, row = table_lines(capsys, item, columns=None)
    assert head == f"ID              NAME   N  WIDE{' ' * 196}  NOTE"
    assert row == f"run-4k2x9m1c7t  日本  12  {'y' * 200}  {'y' * 200}"


def test_empty_optional_columns_and_wide_ones_on_narrow_terminals_are_omitted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    head, _ = table_lines(capsys, {"id": "a", "name": "b", "n": 1, "note": ""}, columns=80)
    assert head.split() == ["ID", "NAME", "N"]
    head, _ = table_lines(capsys, {"id": "a", "name": "b", "n": 1, "note": ""}, columns=120)
    assert head.split() == ["ID", "NAME", "N", "WIDE"]


@pytest.mark.parametrize(
    ("status", "exit_code", "code"),
    [
        ("finished", 0, 0),
        ("failed", 3, 3),
        ("failed", None, 1),
        ("failed", 0, 1),
        ("stopped", 143, 130),
        ("lost", None, 1),
    ],
)
def test_exit_code_follows_the_runs_end(status: str, exit_code: int | None, code: int) -> None:
    assert exit_code_of({"status": status, "exit_code": exit_code}) == code


def test_labwrights_own_variables_are_not_sent_as_the_callers_environment(capsys: pytest.CaptureFixture[str]) -> None:
    given = {
        "PATH": "/bin",
        "LABWRIGHT_TOKEN": "secret",
        "LABWRIGHT_SIM_STATE": "/s",
        "LABWRIGHT_METRIC_FILES": "a.jsonl",
        "BASH_FUNC_f%%": "() { :; }",
        "BAD": "\udcff",
        "\udcfe": "bad",
    }
    kept = {name: given[name] for name in ("PATH", "LABWRIGHT_SIM_STATE", "LABWRIGHT_METRIC_FILES", "BASH_FUNC_f%%")}
    assert caller_environment(given) == kept
    assert "?, BAD\n" in capsys.readouterr().err


def test_gpuwrap_is_left_to_the_server_unless_requested() -> None:
    assert gpuwrap_config(None, None, None) is None
    assert gpuwrap_config(False, None, None) == {"enabled": False}
    assert gpuwrap_config(None, 3, "1m") == {"enabled": True, "retries": 3, "retry_delay_seconds": 60}


def test_events_are_read_complete_and_a_cut_one_is_dropped() -> None:
    lines = [b": still here\n", b"\n", b"id: e:1\n", b"event: log\n", b'data: {"a": 1}\n', b"\n", b'data: {"b"']
    found = list(frames(lines))
    assert [(frame.id, frame.event, frame.data) for frame in found] == [("e:1", "log", {"a": 1})]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_loads_and_has_help(name: str) -> None:
    assert load(name).get_short_help_str()


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; from labwright.cli.main import main; sys.argv = ['labwright', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'rich', 'fastapi', 'pydantic', 'psutil', 'uvicorn', 'sqlite3', 'http.client'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "Usage: labwright" in shown
    assert shown.endswith("heavy: []\n")


def test_reason_for_a_slow_stop_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    report = reason_reporter()
    sending = {"id": "run-1", "status": "launching", "status_reason": "sbatch has not answered yet"}
    for run in (sending, sending, {**sending, "status_reason": ""}, {**sending, "status": "running"}):
        report(run)
    assert capsys.readouterr().err == "run-1: sbatch has not answered yet\n"


def test_card_with_an_empty_lease_is_not_shown_as_free() -> None:
    card = Gpu(index=0, uuid="GPU-1", name="card", memory_total_mb=1, lease=LeaseHolder(run_id="", user=""))
    assert holder(card.to_dict(), BusyLimits()) == ("a run (unknown user)", "blue")


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("waiting", "· no room"),
        ("failed", "· ValidateWorkspace failed (2.0 s): no room"),
        ("finished", "finished (2.0 s)\n"),
    ],
)
def test_terminal_shows_why_planning_waits_or_fails(
    capsys: pytest.CaptureFixture[str], status: str, shown: str
) -> None:
    facts = {"node": "ValidateWorkspace", "status": status, "seconds": 2.0, "message": "no room"}
    ChatView(Screen()).show({"kind": "plan", "data": facts})
    assert shown in capsys.readouterr().out


def test_numbers_with_the_same_fault_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    marks = [{"text": str(number), "detail": "no evidence is cited for it"} for number in range(45)]
    marks.append({"text": "0.75", "detail": "the run has 0.25"})
    ChatView(Screen()).show({"kind": "message", "data": {"marks": marks}})
    assert capsys.readouterr().out.splitlines() == [
        "⚠ 0, 1, 2, 3, 4, 5, 6, 7 and 37 more: no evidence is cited for it",
        "⚠ 0.75: the run has 0.25",
    ]
