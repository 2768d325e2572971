"""Each rule by itself: when it raises an alert, when it does not, and that it reports each problem once."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path

import pytest

from labwright.compute.runs.alert_rules import AlertRules, parse_rules
from labwright.domain.alert import Alert, Severity
from labwright.domain.clock import rfc3339
from labwright.domain.errors import Invalid
from labwright.sidecar.rules.book import CustomRule, RuleBook
from labwright.sidecar.rules.curves import NanOrInf, Plateau
from labwright.sidecar.rules.inputs import Alarm, Disk, MetricPoint, MetricTail, OutputLine, PointRule, Tick
from labwright.sidecar.rules.machine import DiskNearlyFull, GpuIdle, Stall, Traceback
from labwright.store import alerts
from labwright.store.database import Database

GB = 1 << 30


def feed(rule: PointRule, values: Iterable[float], key: str = "loss") -> list[tuple[int, Alarm]]:
    found = ((step, rule.feed(MetricPoint(key, step, float(step), value))) for step, value in enumerate(values))
    return [(step, alarm) for step, alarm in found if alarm]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_nan_loss_raises_one_alarm_at_once(value: float) -> None:
    ((step, alarm),) = feed(NanOrInf(), [1.0, 0.9, value, value, 0.5, value])
    assert (step, alarm.severity, alarm.key) == (2, "critical", "loss")


def test_nan_after_a_recovery_raises_another_alarm() -> None:
    found = feed(NanOrInf(), [math.nan, *[1.0] * 30, math.nan])
    assert [step for step, _ in found] == [0, 31]


def test_a_few_infinite_gradient_norms_raise_no_alarm() -> None:
    assert feed(NanOrInf(), [math.inf, math.inf, 1.0, math.inf, math.inf, 1.0] * 5, "grad_norm") == []
    assert [step for step, _ in feed(NanOrInf(), [math.inf] * 20, "grad_norm")] == [4]


def test_a_plateau_is_reported_once_and_an_improving_curve_never() -> None:
    assert [alarm.severity for _, alarm in feed(Plateau(), [1.0] * 2000)] == ["info"]
    assert feed(Plateau(), [1 / (1 + step / 50) for step in range(2000)]) == []
    assert feed(Plateau(), [step / 2000 for step in range(2000)], "val/accuracy") == []
    assert feed(Plateau(), [0.5] * 2000, "lr") == []


def tick(quiet: float = 0.0, free: int = 100 * GB) -> Tick:
    return Tick(0.0, quiet, (Disk("/data", free, 1000 * GB),))


def test_a_stall_is_reported_once_until_the_run_is_active_again() -> None:
    rule = Stall(minutes=10)
    assert [bool(rule.feed(tick(quiet))) for quiet in (0, 599, 600, 900, 1, 700)] == [0, 0, 1, 0, 0, 1]


def test_a_nearly_full_disk_is_reported_once() -> None:
    rule = DiskNearlyFull(free_gb=5)
    free = [6, 4, 3, 6, 4, 11, 4]
    assert [bool(rule.feed(tick(free=gb * GB))) for gb in free] == [0, 1, 0, 0, 0, 0, 1]


def test_each_disk_is_judged_by_its_own_size_and_named() -> None:
    small, large = Disk("/scratch", GB // 4, 1 * GB), Disk("/home", 4 * GB, 1000 * GB)
    alarm = DiskNearlyFull().feed(Tick(0.0, 0.0, (small, large)))
    assert alarm is not None and alarm.message == "Only 4.00 GB are free on the disk of /home."
    full = DiskNearlyFull().feed(Tick(0.0, 0.0, (Disk("/scratch", 1 << 20, 1 * GB),)))
    assert full is not None and full.message == "Only 1.0 MB are free on the disk of /scratch."


def test_two_percent_of_a_small_disk_are_enough_unless_an_amount_is_set() -> None:
    alarms: list[Alarm] = []
    for builtin in ({}, {"disk_free_gb": 5}, {"disk_free_gb": 0.5}):
        RuleBook({"builtin": builtin}, {}, alarms.append).see_tick(Tick(1, 0, (Disk("/data", 1 * GB, 20 * GB),)))
        assert len(alarms) == (0 if not builtin else 1)


def test_an_idle_gpu_is_reported_after_its_limit() -> None:
    rule = GpuIdle(minutes=1)
    values = [*[0.0] * 50, 90.0, *[1.0] * 100]
    assert [step for step, _ in feed(rule, values, "system/gpu3/utilization")] == [111]
    assert feed(rule, [0.0] * 500, "system/gpu3/memory_mb") == []


SCRIPT = """starting
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 3, in <module>
[rank0]:     main()
[rank0]:     ~~~~^^
[rank0]: torch.cuda.OutOfMemoryError: CUDA out of memory
Traceback (most recent call last):
  File "x.py", line 1
ValueError: second
"""


def test_the_first_traceback_is_reported_with_its_last_line() -> None:
    rule = Traceback()
    found = [rule.feed(OutputLine(text, 0.0)) for text in SCRIPT.splitlines()]
    assert [alarm.message for alarm in found if alarm] == ["torch.cuda.OutOfMemoryError: CUDA out of memory"]


def project_rule(metric: str, condition: str) -> CustomRule:
    text = f'[[alerts]]\nmetric = "{metric}"\ncondition = "{condition}"\n'
    return CustomRule(parse_rules(text, "labwright.toml").rules[0].for_sidecar())


@pytest.mark.parametrize(
    ("condition", "values", "steps"),
    [
        ("< 0.1", [0.5, 0.05, 0.04, 0.5, 0.05], [1, 4]),
        ("<= 0.5", [0.6, 0.5], [1]),
        ("> 1e1", [10, 11], [1]),
        (">= 2", [1, 2], [1]),
        ("== 0", [1, 0, 0], [1]),
        ("< 0.1 for 10 steps", [*[0.05] * 9, 0.2, *[0.05] * 20], [20]),
        ("< 0.1 for 1m", [0.05] * 100, [60]),
        ("is nan", [1.0, math.nan], [1]),
        ("no improvement for 5 steps", [3, 2, 1, 1, 1, 1, 1, 1, 1, 1], [8]),
    ],
)
def test_conditions(condition: str, values: list[float], steps: list[int]) -> None:
    assert [step for step, _ in feed(project_rule("val/loss", condition), values, "val/loss")] == steps


def test_a_metric_that_should_rise_is_known_by_its_name() -> None:
    values = [0.1, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3]
    assert feed(project_rule("val/acc", "no improvement for 4 steps"), values, "val/acc")
    assert not feed(project_rule("val/acc", "no improvement for 4 steps"), range(100), "val/acc")


def test_a_metric_may_hold_wildcards() -> None:
    rule = project_rule("val/*", "> 1")
    assert [bool(feed(rule, [2.0], key)) for key in ("val/a", "val/b", "train/a", "val/a")] == [1, 1, 0, 0]


RULE = '[[alerts]]\nmetric = "loss"\ncondition = "> 1"\n'


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[[alerts]]\nmetric = "a"\ncondition = "is big"\n', 3, "is not a condition"),
        ('[[alerts]]\nmetric = "a"\ncondition = "no improvement"\n', 3, "is not a condition"),
        ('port = 1\n\n[[alerts]]\ncondition = "> 1"\n', 3, "needs `metric`"),
        (RULE + 'colour = "red"\n', 4, "unknown field 'colour'"),
        (RULE + 'severity = "bad"\n', 4, "severity 'bad'"),
        (RULE + 'action = "delete"\n', 4, "action 'delete'"),
        (RULE + 'default_action = "stop"\n', 4, "belong together"),
        (RULE + 'default_action = "stop"\ndefault_after_seconds = -1\n', 5, "above 0"),
        (RULE + "choices = [1]\n", 4, "choices"),
        (RULE + "\n" + RULE, 5, "already"),
        (RULE + 'name = "stall"\n', 4, "already"),
        ("[alerts_builtin]\nplateau = 1\n", 2, "plateau must be true or false"),
        ("[alerts_builtin]\nstall_minutes = 0\n", 2, "above 0"),
        ("[alerts_builtin]\nnonsense = true\n", 2, "unknown field"),
        ("[metrics]\npatterns = ['(']\n", 2, "not a regular expression"),
        ("[metrics]\npatterns = ['loss (.*)']\n", 2, "no named group"),
        ("[metrics]\nfiles = 'a'\n", 2, "list of texts"),
        ("[metrics]\nkey_value = 'yes'\n", 2, "true or false"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_rules(text, "labwright.toml")
    assert f"line {line}" in caught.value.message and words in caught.value.message


def test_a_file_without_rules_sets_nothing(tmp_path: Path) -> None:
    assert parse_rules("port = 1\n", "labwright.toml") == AlertRules()


def book(options: dict[str, object], told: dict[tuple[str, str], float]) -> tuple[RuleBook, list[Alarm]]:
    said: list[Alarm] = []
    return RuleBook(options, told, said.append), said


def test_rules_are_switched_off_and_on_by_name() -> None:
    off, said = book({"builtin": {"nan_or_inf": False, "plateau": True}}, {})
    for step in range(1000):
        off.see_point(MetricPoint("loss", step, 1.0, math.nan if step == 500 else 1.0))
    assert [alarm.rule for alarm in said] == ["plateau"]


def test_a_new_monitor_does_not_repeat_alarms() -> None:
    again, said = book({}, {("nan_or_inf", "loss"): 50.0})
    again.see_point(MetricPoint("loss", 1, 50.0, math.nan))
    again.see_point(MetricPoint("other", 1, 50.0, math.nan))
    assert [alarm.key for alarm in said] == ["other"]


def test_alarms_of_one_rule_are_limited() -> None:
    stormy, said = book({}, {})
    for number in range(1000):
        stormy.see_point(MetricPoint(f"loss{number}", 1, 1.0, math.nan))
    assert len(said) == 20


def test_rules_see_every_source_and_every_nan_in_a_flood(tmp_path: Path) -> None:
    header = {"source": "sdk", "attempt": 2, "v": 1}
    lines = [{"s": step, "t": 1.0, "m": {"loss": 1.0}} for step in range(30_000)]
    lines[20_000]["m"] = {"loss": math.nan}
    (tmp_path / "sdk-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [header, *lines]))
    (tmp_path / "sdk-2.jsonl").write_text(json.dumps({**header, "attempt": 1}) + '\n{"s":1,"t":1,"m":{"old":1}}\n')
    (tmp_path / "http.jsonl").write_text('{"s":1,"t":1,"m":{"sent":1}}\nrubbish\n[]\n{"s":1,"t":1,"m":[1]}\n{"s":')
    tail = MetricTail(str(tmp_path), attempt=2)
    points = [point for _ in range(4) for point in tail.new_points()]
    assert {point.key for point in points} == {"loss", "sent"}
    assert [point.step for point in points if math.isnan(point.value)] == [20_000]
    assert points[-1].step in (1, 29_999) and list(tail.new_points()) == []


def test_watched_metrics_are_seen_in_a_flood(tmp_path: Path) -> None:
    lines = [{"s": step, "t": 1.0, "m": {"loss": 1.0}} for step in range(30_000)]
    lines[15_000]["m"], lines[16_000]["m"], lines[17_000]["m"] = {"val/é": 0.1}, {"acc": 0.2}, {"other": 0.3}
    (tmp_path / "sdk-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rare = MetricTail(str(tmp_path), 1, ["val/é*", "acc", "lr"])
    seen = {point.key for _ in range(4) for point in rare.new_points()}
    assert seen == {"loss", "val/é", "acc"}
    flood = MetricTail(str(tmp_path), 1, ["loss"])
    assert 10_000 < len([point for _ in range(4) for point in flood.new_points()]) < 20_000, "it must keep up"


def test_rules_see_a_line_of_very_many_metrics(tmp_path: Path) -> None:
    numbers = {f"loss/{index}": 1.0 for index in range(50_000)}
    numbers["loss/7"] = math.nan
    (tmp_path / "sdk-1.jsonl").write_text(json.dumps({"s": 3, "t": 1.0, "m": numbers}) + "\n")
    points = list(MetricTail(str(tmp_path), attempt=1).new_points())
    assert len(points) == 50_000
    assert [point.key for point in points if math.isnan(point.value)] == ["loss/7"]


def test_default_actions_are_due_after_their_delay(tmp_path: Path) -> None:
    rules = parse_rules(
        RULE
        + 'name = "later"\ndefault_action = "stop"\ndefault_after_seconds = 60\nchoices = ["ignore"]\n'
        + RULE
        + 'name = "at once"\naction = "rerun"\n'
        + RULE
        + 'name = "never"\n',
        "labwright.toml",
    )
    database = Database(tmp_path / "labwright.db")
    with database.transaction() as tx:
        for number, rule in enumerate(rules.rules):
            alert = Alert(
                id=f"alert-{number}",
                run_id="run-1",
                message="m",
                severity=Severity.WARNING,
                created_at=rfc3339(1000),
                rule=rule.name,
                choices=rule.choices,
            )
            alert.check_answer("stop")
            alerts.insert(tx, alert, "system")
    due = [[(alert.id, choice) for alert, choice in rules.due_defaults(database.reader(), now)] for now in (1001, 1061)]
    assert due == [[("alert-1", "rerun")], [("alert-0", "stop"), ("alert-1", "rerun")]]
    database.close()
