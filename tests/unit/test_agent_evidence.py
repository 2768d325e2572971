"""Numbers in an answer are checked against tool results: lies are marked, honest answers are not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.agent.evidence.check import CheckContext, check
from labwright.agent.evidence.evidence import Evidence
from labwright.agent.evidence.review import review
from labwright.agent.evidence.sources import look
from labwright.compute.lab import Lab
from labwright.domain.run import Run
from labwright.domain.session import Piece, PieceKind
from labwright.store import metrics
from tests.support.lab import ended_run, lab_in


class Bench:
    """Two runs, and evidence of them as the tools create it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        usage = {"wall_seconds": 210.4, "max_memory_mb": 2048}
        self.a = ended_run(lab, "first", series={"accuracy": [0.5, 0.95, 0.9312], "loss": [2.0, 0.4321]}, usage=usage)
        self.b = ended_run(lab, "second", series={"accuracy": [0.4, 0.9061]}, params={"lr": 0.003})
        series = {"loss": [2.0, 0.3], "error": [80.0, 0.8]}
        self.log = ended_run(lab, "third", output="epoch 7: nan in layer 12\n", series=series)
        compared = {"key": "accuracy", "use": "last"}
        self.evidence = {
            one.id: one
            for one in (
                self.mint("E1", "metric", run_id=self.a.id, key="accuracy"),
                self.mint("E2", "metric", run_id=self.b.id, key="accuracy"),
                self.mint("E3", "metric", run_id=self.a.id, key="loss"),
                self.mint("E4", "run", run_id=self.a.id),
                self.mint("E5", "ranking", run_ids=[self.a.id, self.b.id], goal="max", **compared),
                self.mint("E6", "difference", first=[self.a.id], second=[self.b.id], goal="max", **compared),
                self.mint("E7", "group", run_ids=[self.a.id, self.b.id], **compared),
                self.mint("E8", "log", run_id=self.log.id),
                self.mint("E9", "run", run_id=self.b.id),
                self.mint("E10", "best", key="accuracy", goal="max"),
                self.mint("E11", "ranking", run_ids=[self.a.id, self.log.id], key="loss", use="last", goal="min"),
                self.mint("E12", "metric", run_id=self.log.id, key="error"),
            )
        }

    def mint(self, name: str, kind: str, **source: object) -> Evidence:
        return Evidence(id=name, kind=kind, source=source, seen=look(self.lab, kind, source))

    def faults(self, text: str) -> list[tuple[str, str]]:
        known = CheckContext(
            evidence=self.evidence,
            look_again=lambda one: look(self.lab, one.kind, one.source),
            exists=lambda name: name in {self.a.id, self.b.id, self.log.id},
            settings={"lr": frozenset({0.003})},
            done=frozenset({3}),
            said=("Use 3 seeds; I heard it reached 0.99.",),
            quotes=("python train.py --lr 0.003",),
        )
        return [(mark.text, mark.fault) for mark in check(text.format(a=self.a.id, b=self.b.id), known)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with lab_in(tmp_path_factory.mktemp("evidence") / "project") as lab:
        yield Bench(lab)


LIES = {
    "a number from nowhere": ("{a} reached an accuracy of 0.97.", "no_source"),
    "another number than its evidence": ("{a} reached an accuracy of 0.95 at the end, final 0.97 [E1].", "mismatch"),
    "evidence that nobody minted": ("The accuracy of {a} is 0.9312 [E42].", "unknown_evidence"),
    "another run's number": ("{b} reached an accuracy of 0.931 [E1].", "other_subject"),
    "the number of another metric": ("The loss of {a} is 0.931 [E1].", "other_subject"),
    "a mean from the head": ("On average they reach 0.92 [E1] [E2].", "mismatch"),
    "a difference from the head": ("The gap is 0.0251 [E1][E2].", "mismatch"),
    "a ranking turned round": ("{b} is better than {a} [E5].", "wrong_order"),
    "the wrong one is the best": ("The best run is {b} [E5].", "wrong_order"),
    "a comparison that nobody made": ("{b} beats {a}.", "no_comparison"),
    "nearly all rounded up to all": ("Accuracy is 100% [E1].", "mismatch"),
    "too little of it left": ("It reached 1 [E1].", "mismatch"),
    "the peak sold as the end": ("The final accuracy of {a} is 0.95 [E1].", "mismatch"),
    "a shifted exponent": ("It was trained with a rate of 3e-4 [E9].", "mismatch"),
    "minutes for seconds": ("It took 210 minutes [E4].", "mismatch"),
    "a run that never was": ("See run-0000000000 for that.", "unknown_id"),
    "a number in code marks": ("The result was `accuracy: 0.99`.", "no_source"),
    "a date from nowhere": ("It ended on 2025-01-02.", "no_source"),
    "the user's own number handed back": ("Yes, as you said: accuracy 0.99.", "no_source"),
    "a claim dressed as a proposal": ("I suggest to keep {a}, which reached 0.99.", "no_source"),
    "a wrong count": ("5 runs were compared [E5].", "mismatch"),
    "a line that the log does not have": ("The log says nan in layer 21 [E8].", "mismatch"),
    "a number that no float holds": ("The accuracy is 1e400 [E1].", "mismatch"),
    "a wrong percentage": ("{b} is 3.5% worse [E6].", "mismatch"),
    "another run's number, by its name": ("Run `second` reached an accuracy of 0.9312 [E1].", "other_subject"),
    "a ranking turned round, by names": ("`first` is worse than `second` [E5].", "wrong_order"),
    "the wrong one is the best, by its name": ("The best is run second [E5].", "wrong_order"),
    "a comparison of names that nobody made": ("`second` is superior to `first`.", "no_comparison"),
    "a lead that is a lag": ("{b} is ahead of {a} by 0.0251 [E6].", "wrong_order"),
    "less sold as more": ("{b} has a higher accuracy than {a} [E5].", "wrong_order"),
    "the winner who lost": ("{b} wins [E5].", "wrong_order"),
    "a list in the wrong order": ("Ranking: {b}, {a} [E5].", "wrong_order"),
    "a step that was never reached": ("The loss is 0.4321 at step 500 [E3].", "mismatch"),
    "the end sold as the peak": ("It peaked at 0.9312 [E1].", "mismatch"),
    "a share from nowhere": ("9/10 runs finished.", "no_source"),
    "a result inside of a proposal": ("I recommend the larger one, it reached 0.97.", "no_source"),
    "the best of all that is not": ("Of all 2 runs `second` is the best [E10].", "wrong_order"),
    "more runs than there are": ("`first` is the best of 7 runs [E10].", "mismatch"),
    "more than was done": ("I started 4 runs.", "no_source"),
    "a share sold as a percentage": ("The accuracy of {a} is 0.93% [E1].", "mismatch"),
    "a list of lines in the wrong order": ("Ranking [E5]:\n1. `second`\n2. `first`", "wrong_order"),
    "a list that nobody ranked": ("Best to worst:\n\n- {a} 0.9312 [E1]\n- {b} 0.9061 [E2]", "no_comparison"),
    "a list that begins with the best": ("Worst first:\n- {a} [E5]\n- {b} [E5]", "wrong_order"),
    "a table in the wrong order": ("| rank | run |\n|---|---|\n| 1 | {b} |\n| 2 | {a} [E5] |", "wrong_order"),
    "a sign turned round": ("`second` > `first` [E5]", "wrong_order"),
    "a sign turned round among numbers": ("{a} (0.9312 [E1]) < {b} (0.9061 [E2]) [E5]", "wrong_order"),
    "a sign that nobody compared": ("So `first` > `second`.", "no_comparison"),
    "a loss said to be the greater one": ("By loss, `third` > `first` [E11].", "wrong_order"),
    "a rise that is a fall": ("The accuracy rose from 0.95 to 0.9312 [E1].", "wrong_order"),
    "an improvement to the worse": ("The loss improved from 0.4321 to 2.0 [E3].", "wrong_order"),
    "a fall told from its end": ("The accuracy fell steadily from 0.9312 to 0.5 [E1].", "wrong_order"),
    "a number of the user's, in code": ("`first` has `accuracy '0.99'` [E1].", "mismatch"),
    "a result in a block of code": ("The results:\n\n```\naccuracy 0.99\n```", "no_source"),
    "a result in a block of a proposal": ("I suggest this, it reached:\n```yaml\nscore: 0.99\n```", "no_source"),
    "a command that nobody gave": ("{a} was started by this:\n```\npython train.py --lr 0.7\n```", "no_source"),
    "another number in a block of code": ("As shown [E1]:\n```\naccuracy 0.99\n```", "mismatch"),
    "a ranking turned round, by plain names": ("Second is better than first [E5].", "wrong_order"),
    "the wrong one is the best, by its plain name": ("The best run is second [E5].", "wrong_order"),
    "the wrong winner, by its plain name": ("So second is the best of both [E5].", "wrong_order"),
    "less sold as more, by plain names": ("second has a higher accuracy than first [E5].", "wrong_order"),
    "a comparison of plain names that nobody made": ("second outperforms first.", "no_comparison"),
    "a row of a table": ("| run | accuracy |\n|---|---|\n| {b} [E2] | 0.9312 |", "mismatch"),
}

HONEST = [
    "You can run this:\n\n```bash\npython train.py --lr 0.7 --epochs 12\n```",
    "I suggest a template:\n```yaml\nlr: [0.1, 0.25]\n```\nIt reached 0.9312 [E1].",
    "💡 **Workflow Improvement**: use a template:\n```yaml\nlr: [0.1, 0.25]\nmax_runs: 12\n```",
    "The accuracy, as shown [E1]:\n```\n0.9312\n```",
    "I started 3 runs: {a}, {b}. I've also launched 3 of them again.",
    "Of all 2 runs `first` is the best, with 0.9312 [E10].",
    "`first` reached 0.9312 [E1], `second` 0.9061 [E2]; `second` has a lower accuracy than `first` [E5].",
    "The best is {a} `first` [E5], ahead of `second`, and the ranking is {a}, {b} [E5].",
    "First the one, second the other: 0.9312 [E1] and 0.9061 [E2]. At step 2 the loss was 0.4321 [E3].",
    "{a} reached an accuracy of 0.931 [E1], {b} 0.906 [E2].",
    "Accuracy 93.1% [E1] and 90.6 % [E2].",
    "The peak accuracy of {a} is 0.95, the final one 0.9312 [E1].",
    "{a} is better than {b} by 0.0251 [E6].",
    "{b} is 2.7% worse than {a} [E6].",
    "The best run is {a} [E5]: 0.9312 [E1].",
    "The mean over both is 0.919 ± 0.018, n = 2 [E7].",
    "It took 210 s [E4], that is 3.5 min [E4], and 2 GB of memory [E4].",
    "Steps:\n1. look at resnet18 and fp16\n2. start with lr=0.003\n3. see the 2nd run",
    "I ran `python train.py --lr 0.003` on Python 3.11.",
    "Qwen2.5-7B, gpt-3.5, lr0.1 and cuda12.1 are names.",
    "The log says: nan in layer 12 at epoch 7 [E8].",
    "The learning rate was 3e-3 [E9], also written 0.003 [E9].",
    "| run | accuracy |\n|---|---|\n| {a} [E1] | 0.9312 |\n| {b} [E2] | 0.9061 |",
    "Ranking by accuracy [E5]:\n1. `first`\n   - better than `second` [E5]\n2. `second`\n\nThat is all.",
    "From worst to best:\n- {b}\n- {a} [E5]\n\nRuns:\n- {b}\n- {a}",
    "| rank | run |\n|---|---|\n| 1 | {a} |\n| 2 | {b} [E5] |",
    "`first` (0.9312 [E1]) > `second` (0.9061 [E2]) [E5], and `second` -> `first`.",
    "By loss, `first` > `third` [E11]. Ranking by loss: `third` > `first` [E11].",
    "The accuracy rose from 0.5 to 0.9312 [E1], the loss fell from 2.0 to about 0.4321 [E3].",
    "The loss improved from 2.0 to 0.4321 [E3]; accuracy degraded from 0.95 to 0.9312 [E1].",
    "The loss rose as the accuracy went from 0.95 to 0.9312 [E1]: a fall of the accuracy from 0.95 to 0.9312 [E1].",
    "The accuracy increased from 0.9061 [E2] to 0.9312 [E1].",
    "By the rank of the adapter:\n- {b} [E2]\n- {a} [E1]\n\n| rank | run |\n|---|---|\n| 8 | {b} |\n| 16 | {a} |",
    "There is no rise from 0.95 to 0.9312 [E1]; after a drop in speed it rose from 0.5 to 0.9312 [E1].",
    "The error is 0.8% [E12] and the memory 2 GB [E4].",
    "First is better than second [E5], and first has a higher accuracy than second [E5]; the best run is first [E5].",
    "Compared to second the best is {a} [E5]. It is ahead of the second [E5].",
    "Shall I see whether second is better than first? If second is better than first, we stop.",
    "In general a larger model is better than the second.",
    "Nothing is known yet; I will wait.",
    "I suggest to try a rate of 0.3 next, for 20 epochs.",
    "You asked for 3 seeds, so I start with 3.",
    "A 3x3 kernel, 5-fold cross-validation and top-1 are names, and so is train_v2.py.",
]


@pytest.mark.parametrize("lie", LIES)
def test_lie_is_marked(bench: Bench, lie: str) -> None:
    text, fault = LIES[lie]
    assert fault in {found for _, found in bench.faults(text)}


@pytest.mark.parametrize("text", HONEST)
def test_honest_answer_is_not_marked(bench: Bench, text: str) -> None:
    assert bench.faults(text) == []


@pytest.mark.parametrize("words", ["y", "a-", "1.", "7 ", "|---", "\n", "[E1]", "`"])
def test_very_long_answer_is_checked_in_linear_time(bench: Bench, words: str) -> None:
    began = time.process_time()
    bench.faults(words * 100_000 + " 0.97.")
    assert time.process_time() - began < 20  # quadratic time would take an hour


def test_number_after_very_long_text_is_marked(bench: Bench) -> None:
    assert bench.faults(f"{'so ' * 5000}it reached 0.97") == [("0.97", "no_source")]


def test_mark_says_where_the_number_is(bench: Bench) -> None:
    text = "All is well. It reached 0.5 in the end."
    known = CheckContext(evidence={}, look_again=lambda _: None, exists=lambda _: True)
    (mark,) = check(text, known)
    assert text[mark.start : mark.end] == mark.text == "0.5"


def test_ended_source_with_a_changed_value_is_marked(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab:
        run: Run = ended_run(lab, "moving", series={"accuracy": [0.5]})
        seen = look(lab, "metric", {"run_id": run.id, "key": "accuracy"})
        minted = Evidence(id="E1", kind="metric", source={"run_id": run.id, "key": "accuracy"}, seen=seen)
        with lab.db.transaction() as tx:
            metrics.delete_of_run(tx, run.id)
        piece = Piece(session_id="chat", seq=1, turn=1, kind=PieceKind.EVIDENCE, time="", data=minted.to_dict())
        (mark,) = review(lab, "accuracy 0.5 [E1]", [piece])
        assert mark.fault == "source_changed"
