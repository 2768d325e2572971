"""What a metric's name says about it. Only the name is used: nobody declares which direction is better."""

from __future__ import annotations

import re
from functools import lru_cache

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_LOSSES = frozenset(
    {"nll", "perplexity", "ppl", "error", "err", "mse", "rmse", "mae", "bpb", "bpc", "wer", "cer", "cost", "objective"}
)
_RISE_IN_HEALTH = frozenset(
    {
        *("kl", "kld", "entropy", "penalty", "regularization", "regularisation", "regularizer", "regulariser"),
        # These rise as a code book comes into use, or with a weight that is ramped up.
        *("commit", "commitment", "consistency"),
    }
)
_FACTORS = frozenset({"scale", "weight", "coef", "count"})  # parts of a loss, not a loss: `loss_scale`, `loss/weight`
_HELD_OUT = frozenset({"val", "valid", "validation", "eval", "test", "dev"})
_GOOD = frozenset({"acc", "accuracy", "auc", "auroc", "f1", "reward", "return", "score", "bleu", "rouge", "map", "iou"})
_ADVERSARIAL = frozenset({"g", "d", "gen", "disc", "adv", "gan", "critic", "generator", "discriminator", "adversarial"})
_REINFORCED = frozenset({"actor", "critic", "policy", "vf", "qf", "td"})
_VALUE_LOSS = re.compile(r"value_?loss", re.IGNORECASE)  # not `loss_value`, which may be any loss


@lru_cache(4096)
def words_in(key: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(key))


def is_loss(key: str) -> bool:
    """Return whether the metric should fall."""
    if words_in(key) & _RISE_IN_HEALTH or words_in(key.rsplit("/", 1)[-1]) <= _FACTORS:
        return False
    parts = [words_in(part) for part in key.split("/")]
    return any(word in _LOSSES or word.endswith("loss") for words in parts if not words & _FACTORS for word in words)


def is_held_out(key: str) -> bool:
    """Return whether it is measured on data outside training. Such a metric rises when the model overfits."""
    return bool(words_in(key) & _HELD_OUT)


def is_gradient_norm(key: str) -> bool:
    words = words_in(key)
    return "gradnorm" in words or ("norm" in words and bool(words & {"grad", "gradient", "grads", "gradients"}))


def is_adversarial(key: str) -> bool:
    """Return whether two networks compete, where a rise alone is healthy."""
    return bool(words_in(key) & _ADVERSARIAL)


def grows_with_rewards(key: str) -> bool:
    """Return whether it is an error in predicting rewards. It starts near zero and grows with their square."""
    return bool(words_in(key) & _REINFORCED) or _VALUE_LOSS.search(key) is not None


def is_better_higher(key: str) -> bool:
    return bool(words_in(key) & _GOOD)


def is_system(key: str) -> bool:
    return key.startswith("system/")
