"""A wild loop with a language model: the model proposes, the server checks and measures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.agent.wild import verbs
from labwright.agent.wild.model_search import NODE, ProposedExperiment
from labwright.agent.wild.worker import WildWorker
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.domain.wild import WildStatus
from labwright.llm.faults import Unreachable
from labwright.llm.ledger import BudgetReached
from labwright.llm.stand_ins import ScriptedModel
from labwright.services import alerts
from tests.support.lab import lab_in
from tests.support.waiting import wait_until
from tests.support.wilding import TRACEBACK, Bench, peak, write_project


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(write_project(tmp_path / "project"), max_parallel=2) as opened:
        yield opened


def idea(words: str = "a larger step may help", /, **change: Any) -> ProposedExperiment:
    return ProposedExperiment(hypothesis=words, change=change)


def nothing() -> ProposedExperiment:
    return ProposedExperiment(hypothesis="all was tried", nothing_left=True)


def bench_with(lab: Lab, *answers: object, **wanted: Any) -> tuple[Bench, ScriptedModel]:
    model = ScriptedModel({NODE: answers})
    return Bench(lab, model=model, **wanted), model


def reasons(bench: Bench) -> list[str]:
    return [one.decision["reason"] for one in bench.wild.iterations if one.decision]


def test_model_proposes_and_the_server_measures(lab: Lab) -> None:
    """The model's claims do not count; runs decide whether the goal is met."""
    bench, model = bench_with(lab, idea("I am sure that val_acc is 0.99 now", lr=0.2), idea(lr=0.3, width=16))
    wild = bench.go()
    assert wild.status is WildStatus.COMPLETED and "met with evidence" in wild.status_reason
    assert [one.parent for one in wild.iterations] == [None, 1, 2]
    assert wild.iterations[2].change == {"lr": 0.3, "width": 16}
    assert wild.best and wild.best["mean"] == pytest.approx(0.95)
    second = model.asked[1].given
    assert second["tried"][1]["result"]["mean"] == pytest.approx(0.75)
    assert {flag["name"] for flag in second["flags"]} == {"lr", "width"}


def test_training_length_changes_only_if_a_person_mentions_it(lab: Lab) -> None:
    script = lab.paths.project / "train.py"
    script.write_text(script.read_text().replace('"--width"', '"--max-epochs"'))
    bench, model = bench_with(lab, idea(max_epochs=80), idea(lr=0.2), idea(max_epochs=80), nothing())
    bench.advance()
    bench.end_runs(peak)
    wait_until(lambda: bench.advance() and len(model.asked) == 2, "the second proposal")
    assert {flag["name"] for flag in model.asked[0].given["flags"]} == {"lr"}
    verbs.steer(lab, bench.wild.id, "let it train for more epochs", PERSON)
    changes = [(one.change, one.was_refused) for one in bench.go().iterations]
    assert changes == [({}, False), ({"max_epochs": 80}, True), ({"lr": 0.2}, False), ({"max_epochs": 80}, False)]


def test_no_model_is_called_while_runs_are_active(lab: Lab) -> None:
    bench, model = bench_with(lab, idea(lr=0.2), nothing())
    bench.advance()
    bench.end_runs(peak)
    for _ in range(5):
        assert bench.advance().status is WildStatus.WAITING
    assert len(model.asked) == 1
    bench.go()
    assert len(model.asked) == 2


def test_invalid_proposal_is_refused_and_reported_to_the_model(lab: Lab) -> None:
    bench, model = bench_with(
        lab,
        idea(dropout=0.5),
        idea(seed=7),
        idea(width="wide"),
        idea(),
        idea(lr=0.1),
        idea(lr=0.2),
        idea(lr=0.2),
        nothing(),
    )
    wild = bench.go()
    said = reasons(bench)
    assert "no flag dropout" in said[1] and "not for a proposal" in said[2] and "cannot be 'wide'" in said[3]
    assert "changes nothing" in said[4]
    assert said[5] == "refused: the same configuration was tried in iteration 1"
    assert said[7] == "refused: the same configuration was tried in iteration 7"
    assert len(bench.run_ids()) == 6
    assert "no flag dropout" in model.asked[1].feedback
    assert wild.status_reason == "the model sees nothing left to try: all was tried"


def test_model_cannot_change_the_evaluation(lab: Lab) -> None:
    """Neither by a flag that selects it, nor by a path or free text that leads elsewhere."""
    script = lab.paths.project / "train.py"
    more = [
        '"--split", choices=["train", "val"], default="val"',
        '"--data", default="data.csv"',
        '"--eval-every", type=int',
    ]
    lines = "".join(f"parser.add_argument({line})\n" for line in more)
    script.write_text(script.read_text().replace("args =", f"{lines}args ="))
    bench, model = bench_with(lab, idea(split="train"), idea(data="easy.csv"), idea(eval_every=5), nothing())
    bench.go()
    assert [f"refused: {name} is not for a proposal to change." for name in ("split", "data", "eval_every")] == reasons(
        bench
    )[1:]
    assert {flag["name"] for flag in model.asked[0].given["flags"]} == {"lr", "width"}


def test_region_that_failed_is_refused_with_the_earlier_run(lab: Lab) -> None:
    bench, _ = bench_with(lab, idea(lr=3.0), idea(lr=3.1), nothing())
    bench.go(lambda params, seed: TRACEBACK if params["lr"] > 1 else peak(params, seed))
    failed = bench.wild.iterations[1].run_ids[0]
    assert reasons(bench)[2] == f"refused: {failed} failed in this region: ValueError: loss is nan"


def test_only_consecutive_dead_ends_end_the_loop(lab: Lab) -> None:
    bench, _ = bench_with(lab, *(idea(lr=0.1) for _ in range(20)))
    assert bench.go().status_reason == "the last 10 proposals were all dead ends"


def test_steering_reaches_the_next_proposal_once(lab: Lab) -> None:
    bench, model = bench_with(lab, idea(lr=0.2), idea(lr=0.25), nothing())
    bench.advance()
    verbs.steer(lab, bench.id, "look at small widths too", PERSON)
    wild = bench.go(lambda params, seed: peak(params, seed) - 0.5)
    assert model.asked[0].given["steering"] == ["look at small widths too"]
    assert model.asked[1].given["steering"] == []
    assert wild.steering[0]["taken_in"] == 2


def test_tokens_are_counted_and_a_limit_pauses_and_asks(lab: Lab) -> None:
    bench, _ = bench_with(lab, idea(lr=0.2), BudgetReached("wild", "tokens", 900, 800), idea(lr=0.3))
    bench.proposers.tokens = 900
    wild = bench.go()
    assert wild.status is WildStatus.PAUSED and "900 of 800 tokens" in wild.status_reason
    assert wild.used["tokens"] == 900
    [alert] = [one for one in alerts.page(lab, "pending", None, None, 10, None)[0] if one.wild_id]
    assert alert.message.endswith("900 of 800 tokens.")
    alerts.respond(lab, alert.id, "raise", PERSON)
    worker = WildWorker(lab, bench.proposers)
    worker.start()
    try:
        wait_until(lambda: bench.wild.status is WildStatus.WAITING, "the loop to go on")
    finally:
        worker.close()
    assert bench.proposers.allowed == [bench.id]
    assert bench.go().status is WildStatus.COMPLETED


def test_unreachable_model_pauses_the_loop(lab: Lab) -> None:
    bench, _ = bench_with(lab, Unreachable(), idea(lr=0.3))
    wild = bench.go()
    assert wild.status is WildStatus.PAUSED and "cannot be reached" in wild.status_reason
    verbs.resume(lab, bench.id, PERSON)
    assert bench.go().status is WildStatus.COMPLETED
