"""Which words mean which flag: lr is learning rate is learning_rate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from labwright.planning.goals.opposites import as_opposite, opposites_of
from labwright.planning.goals.words import split
from labwright.planning.scan import EntryPoint, Flag
from labwright.planning.scan.facts import plain_name

_SAME: list[tuple[str, ...]] = [
    ("lr", "learning_rate", "learning rate", "learningrate", "initial_lr", "base_lr", "init_lr", "max_lr"),
    ("batch_size", "batch", "bs", "batchsize", "train_batch_size", "per_device_train_batch_size", "minibatch",
     "minibatch size", "mini batch size", "batch_sz"),
    ("weight_decay", "wd", "weight decay", "l2", "l2_reg", "l2 regularization", "l2 regularisation",
     "ridge", "l2 penalty"),
    ("dropout", "dropout_rate", "drop_rate", "p_dropout", "drop", "dropout rate"),
    ("hidden", "hidden_size", "hidden_dim", "n_hidden", "hidden_units", "width", "hidden units", "hidden size",
     "hidden layer size"),
    ("layers", "num_layers", "n_layers", "n_layer", "depth", "number of layers", "num_hidden_layers"),
    ("heads", "num_heads", "n_heads", "n_head", "attention heads", "number of heads"),
    ("optimizer", "optim", "optimiser", "opt", "optimizer_name", "optimizer.name", "optim.name"),
    ("scheduler", "lr_scheduler", "schedule", "lr_schedule", "lr_scheduler_type", "lr schedule",
     "learning rate schedule"),
    ("warmup", "warmup_steps", "warmup_ratio", "warm up", "warmup steps"),
    ("epochs", "num_epochs", "n_epochs", "max_epochs", "num_train_epochs", "number of epochs"),
    ("max_steps", "steps", "iterations", "iters", "max_iters", "num_steps", "n_steps", "training steps",
     "number of steps"),
    ("grad_clip", "max_grad_norm", "gradient_clip_val", "gradient clipping", "clip", "clip_norm"),
    ("momentum", "beta1"),
    ("augment", "augmentation", "aug", "data_aug", "data_augmentation", "use_augmentation"),
    ("gamma", "discount", "discount factor"),
    ("epsilon", "eps", "exploration rate"),
    ("temperature", "temp", "tau"),
    ("features", "n_features", "num_features", "random features"),
]  # fmt: skip
_VERBS = {"drop"}  # in a goal it means something else: of flags that are called so only their own name counts
_ON = ("use_", "enable_", "with_")  # use_adapter is called adapter
_LOG_BY_NATURE = {"lr", "weight_decay", "batch_size", "warmup", "temperature"}
_OPTIMIZERS = (
    "sgd",
    "adam",
    "adamw",
    "rmsprop",
    "adagrad",
    "adadelta",
    "nadam",
    "lion",
    "lamb",
    "lbfgs",
    "adafactor",
    "muon",
)


def family_of(name: str) -> str:
    """The first word of the group that a name belongs to, or the name itself."""
    plain = plain_name(name)
    return next((group[0] for group in _SAME if plain in group or name.lower() in group), plain)


def is_log_by_nature(flag: Flag) -> bool:
    return family_of(flag.name) in _LOG_BY_NATURE


def choices_of(flag: Flag) -> tuple[str, ...]:
    """The words that it takes; an optimizer without a list takes the usual names."""
    if flag.choices:
        return tuple(str(choice) for choice in flag.choices)
    return _OPTIMIZERS if family_of(flag.name) == "optimizer" and flag.type == "str" else ()


@dataclass(frozen=True, slots=True)
class Phrase:
    words: tuple[str, ...]
    flag: Flag


def phrases_of(entry: EntryPoint) -> list[Phrase]:
    """Every way to name a flag of this script, longest first; a flag's own name wins over a synonym."""
    found: dict[tuple[str, ...], Flag] = {}
    flags = sorted(entry.flags, key=lambda flag: (not flag.is_settable, flag.name.count("."), "/" in flag.name))
    turned = [as_opposite(name, flag) for name, flag in opposites_of(entry).items()]
    for named in (flags, turned):
        for spellings in (_own_names, _same_names):
            for flag in named:
                for text in spellings(flag):
                    for words in _forms(text):
                        found.setdefault(words, flag)
    return sorted((Phrase(words, flag) for words, flag in found.items()), key=lambda phrase: -len(phrase.words))


def _own_names(flag: Flag) -> list[str]:
    plain = plain_name(flag.name)
    bare = [plain.removeprefix(prefix) for prefix in _ON if flag.type == "bool" and plain.startswith(prefix)]
    names = [flag.name, flag.option.rstrip("="), plain, flag.negative, *flag.aliases, *bare]
    long = [name for name in names if len(name.lstrip("-")) > 1]
    return [*long, *(name.replace("_", " ").replace(".", " ") for name in long), plain.replace("_", "")]


def _same_names(flag: Flag) -> list[str]:
    names = {plain_name(flag.name), flag.name.lower(), *(plain_name(alias) for alias in flag.aliases)}
    texts = [text for group in _SAME if names & set(group) for text in group if text not in _VERBS]
    return [*(text.replace("_", " ") for text in texts), *texts]


@lru_cache(4096)
def _forms(text: str) -> list[tuple[str, ...]]:
    """The words of a name, alone and in the plural, and both with hyphens: batch size, batch-sizes."""
    words = tuple(token.text for token in split(text).tokens)
    if not words or not any(letter.isalpha() for letter in "".join(words)):
        return []
    last = words[-1]
    plural = last[:-1] + "ies" if last.endswith("y") else last + ("es" if last.endswith(("s", "ch", "x")) else "s")
    apart = [words, (*words[:-1], plural)]
    return [*apart, *(("-".join(form).replace("_", "-"),) for form in apart)]


@lru_cache(1)
def known_elsewhere() -> list[tuple[tuple[str, ...], str]]:
    """Parameters that people vary, for saying that a script has no such flag."""
    return [
        (words, group[0])
        for group in _SAME
        for text in group
        if (len(text) > 3 or text == "lr") and text not in _VERBS  # others that short may be anything
        for words in _forms(text)
    ]
