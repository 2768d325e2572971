"""Metrics are found where scripts print or log them, with a guess of their direction."""

# ruff: noqa: E501 - small projects, written as their authors would
from __future__ import annotations

from pathlib import Path

import pytest

from labwright.domain.metrics.direction import direction_of
from tests.support.scanning import scanned


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ('print(f"epoch {e} loss={loss:.4f} acc={acc:.3f}")', ["loss", "acc"]),
        ('print(f"{loss=} {val_acc=:.3f}")', ["loss", "val_acc"]),
        ('print("epoch", e, "loss:", loss, "accuracy:", acc)', ["loss", "accuracy"]),
        ('print("loss: %.4f  f1: %.2f" % (loss, acc))', ["loss", "f1"]),
        ('print("loss: {:.4f} top1: {:.2f}".format(loss, acc))', ["loss", "top1"]),
        ('logger.info("epoch %d val_bpb %.3f", e, loss)', ["val_bpb"]),
        ('logging.info(f"Test loss: {loss:.3f}")', ["Test_loss"]),
        ('print(f"Train Epoch: {e} Train time: {t:.2f} Loss: {loss:.3f}")', ["Loss"]),
        ('print("val acc", acc, "train loss", loss)', ["val_acc", "train_loss"]),
        ('print(f"my_number: {loss:.3f}")', ["my_number"]),
        ('print(f"saved to: {path}")', []),
        ('print(f"epoch: {e} time: {t:.2f} lr: {lr:.2e}")', []),
        ('print(json.dumps({"step": e, "loss": loss, "auc": acc, "phase": "train"}))', ["loss", "auc"]),
        ('row = {"step": e}; row["bleu"] = acc; print(json.dumps(row))', ["bleu"]),
        ('print(json.dumps({"step": e, **evaluate()}))', ["val_loss", "val_acc"]),
        ('sys.stdout.write(json.dumps({"ppl": loss}) + "\\n")', ["ppl"]),
        ('wandb.log({"train/loss": loss, "lr": lr}, step=e)', ["train/loss"]),
        ('labwright.log({"reward": acc})', ["reward"]),
        ('metrics = evaluate(); run.log(metrics)', ["val_loss", "val_acc"]),
        ('wandb.log({f"{split}/loss": loss})', ["*/loss"]),
        ('for s in ("train", "val"): wandb.log({f"{s}_loss": loss})', ["train_loss", "val_loss"]),
        ('for s in ("train", "val"): print(f"{s}_loss={loss:.3f} {s} acc: {acc:.3f}")', ["train_loss", "train_acc", "val_loss", "val_acc"]),
        ('print(f"{split}_loss={loss:.3f}")', ["*_loss"]),
        ('print(f"loss_{split}: {loss:.3f}")', []),
        ('writer.add_scalar("Loss/train", loss, e)', ["Loss/train"]),
        ('mlflow.log_metric("rmse", loss); mlflow.log_metrics({"mae": loss})', ["rmse", "mae"]),
        ('bar.set_postfix(loss=loss, refresh=False)', ["loss"]),
        ('bar.set_postfix({"acc": acc})', ["acc"]),
        ('model.compile("adam", loss="mse", metrics=["accuracy"]); model.fit(x)', ["loss", "val_loss", "accuracy", "val_accuracy"]),
        ('y = math.log(loss); torch.log(loss)', []),
    ],
)  # fmt: skip
def test_metrics_are_found_in(tmp_path: Path, line: str, names: list[str]) -> None:
    code = (
        "import json, sys, logging, math, wandb, labwright, mlflow, torch\n"
        "def evaluate():\n    return {'val_loss': 1.0, 'val_acc': 2.0}\n"
        f"def main(e, loss, acc, lr, t, path, split, writer, bar, run, model, x, logger):\n    {line}\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    assert [metric.name for metric in scanned(tmp_path, {"train.py": code}).metrics] == names


def test_metric_says_where_and_how_it_is_reported(tmp_path: Path) -> None:
    code = "import wandb\nfor step in range(3):\n    wandb.log({'loss': 1.0})\n"
    metric = scanned(tmp_path, {"train.py": code}).metrics[0]
    assert (metric.where, metric.how, metric.direction) == ("train.py:3", "wandb.log", "minimize")


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("val_acc", "maximize"), ("val/loss", "minimize"), ("eval_f1", "maximize"), ("perplexity", "minimize"), ("test_error", "minimize"),
        ("mean_return", "maximize"), ("BLEU", "maximize"), ("valLoss", "minimize"), ("grad_norm", None), ("accuracy_loss", "minimize"),
    ],
)  # fmt: skip
def test_directions(name: str, direction: str | None) -> None:
    assert direction_of(name) == direction


@pytest.mark.parametrize(
    ("line", "needs"),
    [
        ("model.cuda()", True),
        ("model.to('cuda')", True),
        ("torch.device('cuda:0')", True),
        ("dist.init_process_group('nccl')", True),
        ("model.to('cuda' if torch.cuda.is_available() else 'cpu')", False),
        ("model.to(args.device)", False),
    ],
)
def test_code_that_requires_a_gpu_is_reported(tmp_path: Path, line: str, needs: bool) -> None:
    entry = scanned(
        tmp_path, {"train.py": f"import torch\ndef main():\n    {line}\nif __name__ == '__main__':\n    main()\n"}
    )
    assert bool(entry.cuda_only) is needs


def test_device_flag_avoids_the_gpu_requirement(tmp_path: Path) -> None:
    code = """
        import argparse
        p = argparse.ArgumentParser()
        p.add_argument("--device", default="cuda")
        args = p.parse_args()
        model.to("cuda")
    """
    assert not scanned(tmp_path, {"train.py": code}).cuda_only
