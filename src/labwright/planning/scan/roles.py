"""What flags are for, by their names: steps, epochs, a quick try, seed, output, device."""

from __future__ import annotations

import re
from dataclasses import replace

from labwright.planning.scan.facts import Flag, Role

# In the order of preference: a rehearsal takes the first that is there.
_NAMES: dict[Role, tuple[str, ...]] = {
    Role.STEPS: (
        "max_steps", "steps", "num_steps", "n_steps", "train_steps", "num_train_steps", "max_train_steps",
        "total_steps", "max_iters", "max_iter", "iters", "n_iters", "num_iters", "iterations", "num_iterations",
        "max_updates", "max_update", "total_timesteps", "max_batches", "limit_train_batches", "max_train_samples",
    ),
    Role.EPOCHS: (
        "epochs", "max_epochs", "num_epochs", "n_epochs", "num_train_epochs", "train_epochs", "nepochs", "epoch",
    ),
    Role.QUICK: ("fast_dev_run", "smoke", "smoke_test", "dry_run", "debug", "quick", "test_run", "tiny"),
    Role.SEED: ("seed", "random_seed", "rng_seed", "manual_seed", "seed_everything", "random_state"),
    Role.OUTPUT: (
        "output_dir", "out_dir", "outdir", "output", "out", "save_dir", "save_path", "log_dir", "logdir",
        "checkpoint_dir", "ckpt_dir", "results_dir", "result_dir", "run_dir", "workdir", "work_dir", "exp_dir",
        "default_root_dir",
    ),
    Role.DEVICE: (
        "device", "accelerator", "gpu", "gpus", "cuda", "no_cuda", "use_cuda", "use_cpu", "cpu", "device_type",
    ),
}  # fmt: skip
_ORDER = {name: (role, place) for role, names in _NAMES.items() for place, name in enumerate(names)}


def plain_name(name: str) -> str:
    """`trainer.max-Steps` as `max_steps`: the last part, in one spelling."""
    last = name.lstrip("-").rstrip("=").split(".")[-1].split("/")[-1]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).replace("-", "_").lower()


def role_of(name: str) -> Role | None:
    return _ORDER.get(plain_name(name), (None, 0))[0]


def with_roles(flags: list[Flag]) -> list[Flag]:
    return [replace(flag, role=role_of(flag.name)) for flag in flags]


def rehearsal_flags(flags: tuple[Flag, ...]) -> list[tuple[Flag, object]]:
    """Flags that make a try short, best first, each with the value to give it."""
    values: dict[Role, object] = {Role.STEPS: 2, Role.EPOCHS: 1, Role.QUICK: True}
    settable = [flag for flag in flags if flag.is_settable and flag.role in values]
    ranks = list(values)
    ordered = sorted(
        settable, key=lambda flag: (ranks.index(flag.role or Role.QUICK), _ORDER[plain_name(flag.name)][1])
    )
    return [(flag, values[flag.role or Role.QUICK]) for flag in ordered]
