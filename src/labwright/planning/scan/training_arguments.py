"""The flags of Hugging Face's TrainingArguments that plans vary. The class itself lives outside of the project."""

from __future__ import annotations

from typing import Any

from labwright.planning.scan.facts import Flag

_KNOWN: list[tuple[str, str, Any]] = [
    ("output_dir", "path", None),
    ("learning_rate", "float", 5e-5),
    ("weight_decay", "float", 0.0),
    ("num_train_epochs", "float", 3.0),
    ("max_steps", "int", -1),
    ("per_device_train_batch_size", "int", 8),
    ("per_device_eval_batch_size", "int", 8),
    ("gradient_accumulation_steps", "int", 1),
    ("warmup_steps", "int", 0),
    ("warmup_ratio", "float", 0.0),
    ("lr_scheduler_type", "str", "linear"),
    ("optim", "str", "adamw_torch"),
    ("adam_beta1", "float", 0.9),
    ("adam_beta2", "float", 0.999),
    ("max_grad_norm", "float", 1.0),
    ("label_smoothing_factor", "float", 0.0),
    ("seed", "int", 42),
    ("do_train", "bool", False),
    ("do_eval", "bool", False),
    ("fp16", "bool", False),
    ("bf16", "bool", False),
    ("use_cpu", "bool", False),
    ("logging_steps", "float", 500),
    ("eval_strategy", "str", "no"),
    ("save_strategy", "str", "steps"),
]
TRAINING_ARGUMENTS = tuple(
    Flag(name=name, option=f"--{name}", type=type_, default=default, where="transformers.TrainingArguments")
    for name, type_, default in _KNOWN
)
