"""A plan's run reads printed metrics by the names that the scan finds. Otherwise a plan would wait in vain."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from tests.support.scanning import scanned
from tests.unit.test_sources import Output, points

LINES = [
    'print(f"epoch {e} loss={loss:.4f} acc={acc:.3f}")',
    'print(f"{loss=} {acc=:.3f}")',
    'print("val_acc", acc)',
    'print("epoch", e, "loss:", loss, "accuracy:", acc)',
    'print("loss: %8.4f  f1: %.2f" % (loss, acc))',
    'print(f"loss: {loss:>12.4f} | ppl = {acc:10.2f}")',
    'print(f"step {e}: train loss {loss:.4f}, val loss {loss:.4f}")',
    'print(f"Epoch: [{e}] Loss {loss:.4e} ({acc:.4e}) Acc@1 {acc:6.2f}")',
    'print(f"Train Epoch: {e} Loss: {loss:.6f}")',
    'print(f"Last reward: {acc:.2f}\\tAverage reward: {loss:.2f}")',
    'print("the test accuracy is {:.1%}".format(acc))',
    'print({"val_loss": loss, "val_acc": acc})',
    'print(json.dumps({"step": e, "auc": acc}))',
]


@pytest.mark.parametrize("line", LINES)
def test_scan_and_run_find_the_same_printed_metrics(tmp_path: Path, line: str) -> None:
    (tmp_path / "project").mkdir()
    code = f"import json\nfor e in range(3):\n    loss = 0.5; acc = 0.25\n    {line}\n"
    seen = {metric.name for metric in scanned(tmp_path / "project", {"train.py": code}).metrics}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    output = Output(tmp_path, key_value=True)
    output.write(printed.getvalue())
    output.look(last=True)
    assert seen
    assert all(seen <= values.keys() for _step, values in points(output.entries))
    assert len(points(output.entries)) == 3
