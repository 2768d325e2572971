"""What the name of a script, a module or a target says about what it does."""

from __future__ import annotations

import re
from collections.abc import Sequence


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RUNS = words(
    "train trainer training finetune finetuning pretrain pretraining eval evaluate evaluation sweep experiment "
    "experiments distill sft dpo rlhf ppo grpo fit"
)
_MAY_RUN = words(
    "run main launch start benchmark bench infer inference predict test job submit exp search tune optimize "
    "rollout baseline repro reproduce all slurm"
)
_READS = words(
    "plot plots plotting summarize summary analyze analyse analysis report convert get download prepare check "
    "list show print inspect count merge tabulate table make visualize visualise collect clean lint format export "
    "parse compare stats view dump draw figure figures split read tests sort rename status log logs diff"
)

_HELP = words("--help -h --version -V --usage --helpfull -help")


def names_a_run(name: str) -> bool:
    """Return True for `train.py`, `run_eval.sh` and `pkg.finetune`, but not for `plot_training.py`."""
    parts = _parts(name)
    return not only_reads(name) and (bool(parts & _RUNS) or any(part.startswith("train") for part in parts))


def may_name_a_run(name: str) -> bool:
    """Return True for `main.py` and `run.sh`: their content decides, if it can be read."""
    is_test = re.search(r"(^|/)(tests?/|test_)", name)
    return not is_test and not only_reads(name) and bool(_parts(name) & _MAY_RUN)


def only_reads(name: str) -> bool:
    """Return True for `plot.py` and `summarize_experiments.py`."""
    return bool(_parts(name) & _READS)


def _parts(name: str) -> set[str]:
    stem = re.sub(r"\.(py|sh|bash|ipynb|sbatch|slurm|pyc|pyz)$", "", name.rsplit("/", 1)[-1])
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem)
    parts = [re.sub(r"\d+$", "", part) for part in re.split(r"[^A-Za-z0-9]+", stem.lower())]
    joined = {"".join(parts[at : at + 2]) for at in range(len(parts) - 1)}  # fine_tune, pre-train
    return {*parts, *joined} - {""}


def asks_for_help(arguments: Sequence[str]) -> bool:
    return bool(_HELP & set(arguments))
