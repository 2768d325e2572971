"""Metric names as scripts print them, and whether a metric is maximized or minimized, if the name shows it."""

from __future__ import annotations

import re

MAXIMIZE, MINIMIZE = "maximize", "minimize"
_MINIMIZED = {
    "loss", "losses", "nll", "error", "err", "errors", "ppl", "perplexity", "mse", "mae", "rmse", "mape", "bpb",
    "bpc", "wer", "cer", "fid", "kl", "kld", "regret", "latency", "ce", "bce", "xent", "eer", "hinge", "brier", "ece",
    "elapsed", "runtime",
}  # fmt: skip
_MAXIMIZED = {
    "acc", "accuracy", "auc", "auroc", "auprc", "f1", "bleu", "sacrebleu", "rouge", "rouge1", "rouge2", "rougel",
    "meteor", "precision", "recall", "map", "ap", "iou", "miou", "dice", "psnr", "ssim", "r2", "reward", "rewards",
    "return", "returns", "score", "em", "match", "success", "ndcg", "mrr", "hit", "hits", "top1", "top5", "acc1",
    "acc5", "elbo", "likelihood", "throughput", "matthews", "mcc", "pearson", "spearman", "kappa", "correct", "pass",
}  # fmt: skip
_NOT_METRICS = {
    "epoch", "epochs", "step", "steps", "iter", "iters", "iteration", "iterations", "global_step", "time", "elapsed",
    "seconds", "secs", "sec", "eta", "lr", "learning_rate", "batch", "batches", "batch_size", "seed", "date",
    "timestamp", "device", "rank", "world_size", "params", "parameters", "total", "size", "version", "config", "name",
    "run", "id", "pid", "path", "file", "gpu", "gpus", "memory", "mem", "host", "port", "num_samples", "samples",
    "examples", "tokens", "duration", "event", "split", "fold", "max_steps", "num_epochs", "length", "shape", "mfu",
    "best_epoch", "best_step",
}  # fmt: skip


# These words are part of a name: `val loss` and `train loss` are two metrics.
_QUALIFIERS = r"train|training|val|valid|validation|dev|eval|test|best|last|avg|average|mean"
PRINTED_NAME = rf"(?<![\w./?&@-])(?:(?:{_QUALIFIERS}) )*[A-Za-z_][\w./@-]{{0,99}}"


def words_of(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", name)
    return [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]


def direction_of(name: str) -> str | None:
    """Return the direction, or None if unknown. The last known word decides: `accuracy_loss` is a loss."""
    for word in reversed(words_of(name)):
        if word in _MINIMIZED:
            return MINIMIZE
        if word in _MAXIMIZED:
            return MAXIMIZE
    return None


def is_progress(name: str) -> bool:
    """Return whether the name means progress or settings of a run, not quality."""
    return "_".join(words_of(name)) in _NOT_METRICS or name.split("/")[-1].lower() in _NOT_METRICS


def as_printed(name: str) -> str:
    """Return the metric name of printed text: `val loss` is val_loss, but `Train Epoch` is epoch."""
    *qualifiers, last = name.split(" ")
    plain = last.strip("./-@")
    return plain if is_progress(plain) else "_".join((*qualifiers, plain))
