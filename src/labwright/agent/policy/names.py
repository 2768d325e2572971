"""What the name of a script, a module or a target says about what it does."""

from __future__ import annotations

import re


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_RUNS = word_set(
    "train trainer training finetune finetuning pretrain pretraining eval evaluate evaluation sweep experiment "
    "experiments distill sft dpo rlhf ppo grpo fit"
)
_RUNS_MAYBE = word_set(
    "run main launch start benchmark bench infer inference predict test job submit exp search tune optimize "
    "rollout baseline repro reproduce all slurm"
)
_LOOKS = word_set(
    "plot plots plotting summarize summary analyze analyse analysis report convert get download prepare check "
    "list show print inspect count merge tabulate table make visualize visualise collect clean lint format export "
    "parse compare stats view dump draw figure figures split read tests sort rename status log logs diff"
)


def names_a_run(name: str) -> bool:
    """`train.py`, `run_eval.sh`, `pkg.finetune`; not `plot_training.py`."""
    parts = _parts(name)
    return not only_looks(name) and (bool(parts & _RUNS) or any(part.startswith("train") for part in parts))


def may_name_a_run(name: str) -> bool:
    """`main.py`, `run.sh`: what is in it decides, where that can be read."""
    is_test = re.search(r"(^|/)(tests?/|test_)", name)
    return not is_test and not only_looks(name) and bool(_parts(name) & _RUNS_MAYBE)


def only_looks(name: str) -> bool:
    """`plot.py`, `summarize_experiments.py`."""
    return bool(_parts(name) & _LOOKS)


def _parts(name: str) -> set[str]:
    stem = re.sub(r"\.(py|sh|bash|ipynb|sbatch|slurm|pyc|pyz)$", "", name.rsplit("/", 1)[-1])
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem)
    words = [re.sub(r"\d+$", "", word) for word in re.split(r"[^A-Za-z0-9]+", stem.lower())]
    joined = {"".join(words[at : at + 2]) for at in range(len(words) - 1)}  # fine_tune, pre-train
    return {*words, *joined} - {""}
