"""Flags from Lightning's command line: the signatures of the model and the data, and the trainer's own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from labwright.planning.scan.annotations import read_annotation, type_of
from labwright.planning.scan.facts import Flag
from labwright.planning.scan.literals import UNKNOWN, dotted, keyword, known, last_name, value_of
from labwright.planning.scan.modules import Module, Modules
from labwright.planning.scan.reach import Reach
from labwright.planning.scan.signature_flags import Function, parameters

COMMANDS = ("fit", "validate", "test", "predict")
_TRAINER: list[tuple[str, str, Any]] = [
    ("seed_everything", "int", True),
    ("trainer.max_steps", "int", -1),
    ("trainer.max_epochs", "int", None),
    ("trainer.limit_train_batches", "float", None),
    ("trainer.limit_val_batches", "float", None),
    ("trainer.fast_dev_run", "bool", False),
    ("trainer.accelerator", "str", "auto"),
    ("trainer.devices", "str", "auto"),
    ("trainer.precision", "str", None),
    ("trainer.gradient_clip_val", "float", None),
    ("trainer.accumulate_grad_batches", "int", 1),
    ("trainer.default_root_dir", "path", None),
]


def read_lightning(reach: Reach) -> list[Flag]:
    for block, call in reach.calls():
        if last_name(call.func) in ("LightningCLI", "CLI") or last_name(call.func).endswith("LightningCLI"):
            model = call.args[0] if call.args else keyword(call, "model_class")
            data = call.args[1] if len(call.args) > 1 else keyword(call, "datamodule_class")
            parts = [("model", model), ("data", data)]
            own = [flag for prefix, node in parts for flag in _of_class(prefix, node, block.module, reach.modules)]
            return [*own, *(_trainer_flag(*row) for row in _TRAINER)]
    return []


def _trainer_flag(name: str, kind: str, default: Any) -> Flag:
    return Flag(name=name, option=f"--{name}", type=kind, default=default, where="lightning.Trainer")


def _of_class(prefix: str, node: ast.expr | None, module: Module, modules: Modules) -> Iterator[Flag]:
    found = modules.find(module, dotted(node))
    if not found or not isinstance(found[1], ast.ClassDef):
        return
    made = next((item for item in found[1].body if isinstance(item, Function) and item.name == "__init__"), None)
    for argument, default in list(parameters(made))[1:] if made else ():
        annotated = read_annotation(argument.annotation, found[0], modules)
        value = value_of(default, modules.constants_of(found[0]))
        yield Flag(
            name=f"{prefix}.{argument.arg}",
            option=f"--{prefix}.{argument.arg}",
            type=annotated.type if argument.annotation else type_of(value),
            default=None if value is UNKNOWN else known(value),
            required=default is None,
            choices=annotated.choices,
            where=found[0].at(argument),
        )
