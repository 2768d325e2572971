"""The names of a script's flags in a goal: the flag's own spellings, its help text, and common synonyms."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from labwright.planning.goals.tokens import Tokens, split
from labwright.planning.scan import EntryPoint, Flag, Role
from labwright.planning.scan.facts import plain_name

_SYNONYMS: list[tuple[str, ...]] = [
    ("lr", "learning_rate", "learningrate", "initial_lr", "base_lr", "init_lr", "max_lr"),
    ("batch_size", "batch", "bs", "batchsize", "train_batch_size", "per_device_train_batch_size", "minibatch_size"),
    ("weight_decay", "wd", "l2", "l2_reg", "l2_regularization", "ridge", "l2_penalty"),
    ("dropout", "dropout_rate", "drop_rate", "p_dropout"),
    ("hidden", "hidden_size", "hidden_dim", "n_hidden", "hidden_units", "width"),
    ("layers", "num_layers", "n_layers", "n_layer", "depth", "number_of_layers", "num_hidden_layers"),
    ("heads", "num_heads", "n_heads", "n_head", "attention_heads", "number_of_heads"),
    ("optimizer", "optim", "optimiser", "opt", "optimizer_name"),
    ("scheduler", "lr_scheduler", "schedule", "lr_schedule", "lr_scheduler_type", "learning_rate_schedule"),
    ("warmup", "warmup_steps", "warmup_ratio"),
    ("epochs", "num_epochs", "n_epochs", "max_epochs", "num_train_epochs", "number_of_epochs"),
    ("max_steps", "steps", "iterations", "iters", "max_iters", "num_steps", "n_steps", "training_steps"),
    ("grad_clip", "max_grad_norm", "gradient_clip_val", "gradient_clipping", "clip", "clip_norm"),
    ("momentum", "beta1"),
    ("augment", "augmentation", "aug", "data_aug", "data_augmentation"),
    ("gamma", "discount", "discount_factor"),
    ("epsilon", "eps", "exploration_rate"),
    ("temperature", "temp", "tau"),
    ("features", "n_features", "num_features", "random_features"),
]  # fmt: skip
_ON, _OFF = ("use_", "enable_", "with_"), ("no_", "disable_", "without_")
_LOG_SCALED = {"lr", "weight_decay", "batch_size", "warmup", "temperature"}
_LONGEST_HELP_NAME = 4  # words


def family_of(name: str) -> str:
    """Return the first synonym of a name, or the name itself."""
    plain = plain_name(name)
    return next((group[0] for group in _SYNONYMS if plain in group), plain)


def is_log_scaled(flag: Flag) -> bool:
    """Return whether ranges of this flag are usually searched on a log scale."""
    return family_of(flag.name) in _LOG_SCALED


@dataclass(frozen=True, slots=True)
class FlagName:
    words: tuple[str, ...]
    flag: Flag
    is_off: bool = False  # it names the opposite: `bias` of --no-bias, `--no-amp` of amp


@dataclass(slots=True)
class Mention:
    flag: Flag
    start: int
    end: int
    is_off: bool = False


def flag_names(entry: EntryPoint) -> list[FlagName]:
    """Return every name of every flag, longest first. Own names win over help texts, help texts over synonyms."""
    flags = sorted(entry.flags, key=lambda flag: (not flag.is_settable, flag.name.count("."), "/" in flag.name))
    helps = Counter(_help_name(flag) for flag in flags)
    names: dict[tuple[str, ...], FlagName] = {}
    for flag in flags:
        plain = plain_name(flag.name)
        own_names = [flag.name, plain, flag.option.rstrip("="), flag.negative, *flag.aliases]
        if flag.type == "bool":
            own_names += [plain.removeprefix(prefix) for prefix in _ON if plain.startswith(prefix)]
        has_opposite = flag.type == "bool" and not plain.startswith(_OFF)
        for name in own_names:
            if len(name.lstrip("-").rstrip("=")) > 1:
                _add(names, name, flag, is_off=has_opposite and plain_name(name).startswith(_OFF))
    for flag in flags:
        if helps[_help_name(flag)] == 1:
            _add(names, _help_name(flag), flag)
    for flag in flags:
        own = {plain_name(name) for name in (flag.name, *flag.aliases)}
        for group in _SYNONYMS:
            for name in group if own & set(group) else ():
                _add(names, name, flag)
    for flag in flags:
        plain = plain_name(flag.name)
        prefix = next((prefix for prefix in _OFF if plain.startswith(prefix)), "")
        if flag.type == "bool" and prefix:
            _add(names, plain.removeprefix(prefix), flag, is_off=True)
    return sorted(names.values(), key=lambda name: -len(name.words))


def _add(names: dict[tuple[str, ...], FlagName], name: str, flag: Flag, *, is_off: bool = False) -> None:
    for words in _spellings(name):
        names.setdefault(words, FlagName(words, flag, is_off))


def _help_name(flag: Flag) -> str:
    """Return a short help text such as `learning rate` as a name; longer texts describe more than the flag."""
    text = flag.help.partition("(")[0].partition(",")[0].strip(" .").lower()
    short = 1 <= len(text.split()) <= _LONGEST_HELP_NAME and text.replace(" ", "").isalpha()
    return text if short else ""


@lru_cache(4096)
def _spellings(name: str) -> list[tuple[str, ...]]:
    """Return `batch_size` as written, with spaces, with hyphens and joined, each also in the plural."""
    found: dict[tuple[str, ...], None] = {}
    for text in (name, name.replace("_", " ").replace(".", " "), name.replace("_", "-"), name.replace("_", "")):
        words = tuple(token.text for token in split(text).tokens)
        if not words or not any(letter.isalpha() for letter in "".join(words)):
            continue
        last = words[-1]
        plural = last[:-1] + "ies" if last.endswith("y") else last + ("es" if last.endswith(("s", "ch", "x")) else "s")
        found |= {words: None, (*words[:-1], plural): None}
        if len(last) > 4 and last.endswith("s") and not last.endswith("ss"):  # `1 epoch` sets --epochs
            found[(*words[:-1], last[:-1])] = None
    return list(found)


def find_mentions(tokens: Tokens, entry: EntryPoint) -> list[Mention]:
    """Return each place that names a flag, in order. Seeds have their own rule."""
    found: dict[int, Mention] = {}
    covered: set[int] = set()
    for name in flag_names(entry):
        for start in tokens.find(name.words) if name.flag.role is not Role.SEED else ():
            span = set(range(start, start + len(name.words)))
            free = not covered & span and all(tokens.is_free(index) for index in span)
            if free and not divides_range(tokens, start) and not _is_folder(tokens, max(span)):
                covered |= span
                found[start] = Mention(name.flag, start, start + len(name.words), name.is_off)
    return [found[start] for start in sorted(found)]


def _is_folder(tokens: Tokens, index: int) -> bool:
    """Return whether `configs` is the folder in `configs/base.yaml`."""
    while tokens.at(index + 1) == "/" and tokens.is_tight(index + 1):
        index += 2
        if "." in tokens.at(index):
            return True
    return False


def divides_range(tokens: Tokens, index: int) -> bool:
    """Return whether `steps` belongs to `in steps of 2` or `in 5 steps`."""
    if tokens.at(index) not in ("steps", "step"):
        return False
    return tokens.at(index + 1) == "of" or (tokens.number(index - 1) is not None and tokens.at(index - 2) == "in")


def missing_parameters(tokens: Tokens) -> list[str]:
    """Return well-known parameters that the goal names and the script does not have. Call it after all other rules."""
    found = []
    for group in _SYNONYMS:
        for name in group:
            if len(name) <= 3 and name != "lr":
                continue  # too short to be sure
            for words in _spellings(name):
                for start in tokens.find(words):
                    end = start + len(words)
                    if all(map(tokens.is_free, range(start, end))) and not divides_range(tokens, start):
                        tokens.take(start, end)
                        found.append(group[0])
    return list(dict.fromkeys(found))
