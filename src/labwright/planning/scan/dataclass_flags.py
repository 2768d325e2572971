"""Flags from the fields of dataclasses, and the classes that HfArgumentParser is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from labwright.planning.scan.annotations import read_annotation, type_of
from labwright.planning.scan.blocks import Block
from labwright.planning.scan.facts import Flag
from labwright.planning.scan.literals import UNKNOWN, dotted, keyword, known, last_name, value_of
from labwright.planning.scan.modules import Module, Modules
from labwright.planning.scan.names import names_in
from labwright.planning.scan.reach import Reach
from labwright.planning.scan.training_arguments import TRAINING_ARGUMENTS

_INHERITED = {"TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig"}
_FIELDS = ("field", "HfArg", "ib")


def is_dataclass(definition: ast.ClassDef) -> bool:
    decorators = (item.func if isinstance(item, ast.Call) else item for item in definition.decorator_list)
    return any(last_name(item) in ("dataclass", "define", "attrs") for item in decorators)


def fields_of(
    definition: ast.ClassDef, module: Module, modules: Modules, *, dashes: bool = False, depth: int = 0
) -> Iterator[Flag]:
    """One flag a field, those of base classes first."""
    for base in definition.bases:
        found = modules.find(module, dotted(base))
        if found and isinstance(found[1], ast.ClassDef) and depth < 5:
            yield from fields_of(found[1], found[0], modules, dashes=dashes, depth=depth + 1)
        elif last_name(base) in _INHERITED:
            yield from TRAINING_ARGUMENTS
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not _is_class_variable(node):
            yield _field(node, node.target.id, module, modules, dashes=dashes)


def _is_class_variable(node: ast.AnnAssign) -> bool:
    annotation = node.annotation
    return last_name(annotation.value if isinstance(annotation, ast.Subscript) else annotation) == "ClassVar"


def _field(node: ast.AnnAssign, name: str, module: Module, modules: Modules, *, dashes: bool) -> Flag:
    annotated = read_annotation(node.annotation, module, modules)
    default, text, choices = _default(node.value, module, modules)
    plain = annotated.type if annotated.type != "object" or default is None else type_of(default)
    return Flag(
        name=name,
        option=f"--{name.replace('_', '-') if dashes else name}",
        type=plain,
        default=known(default),
        required=default is UNKNOWN and not _has_default(node.value),
        choices=annotated.choices or choices,
        help=text,
        where=module.at(node),
    )


def _has_default(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Call) and last_name(node.func) in _FIELDS:
        return bool(keyword(node, "default") or keyword(node, "default_factory"))
    return node is not None


def _default(node: ast.expr | None, module: Module, modules: Modules) -> tuple[Any, str, tuple[Any, ...]]:
    names = modules.constants_of(module)
    if not isinstance(node, ast.Call) or last_name(node.func) not in _FIELDS:
        return value_of(node, names), "", ()
    default = value_of(keyword(node, "default"), names)
    factory = keyword(node, "default_factory")
    if isinstance(factory, ast.Lambda):
        default = value_of(factory.body, names)
    elif last_name(factory) == "list":
        default = []
    about = value_of(keyword(node, "metadata"), names)
    about = about if isinstance(about, dict) else {}
    text = about.get("help", value_of(keyword(node, "help"), names))
    choices = about.get("choices")
    return default, " ".join(text.split())[:300] if isinstance(text, str) else "", tuple(choices or ())


def read_hf_parser(reach: Reach) -> list[Flag]:
    """`HfArgumentParser((ModelArguments, TrainingArguments))`; also simple_parsing's `add_arguments(Config, ...)`."""
    found: list[Flag] = []
    for block, call in reach.calls():
        if last_name(call.func) in ("HfArgumentParser", "TrlParser") and call.args:
            for item in _classes(call.args[0], block, reach):
                found += _of_class(item, block, reach)
        elif last_name(call.func) == "add_arguments" and call.args:
            found += _of_class(call.args[0], block, reach)
    return found


def _classes(node: ast.expr, block: Block, reach: Reach) -> list[ast.expr]:
    if isinstance(node, ast.Name):
        node = names_in(block, reach.modules).get(node.id, node)
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List) else [node]


def _of_class(node: ast.expr, block: Block, reach: Reach) -> list[Flag]:
    found = reach.modules.find(block.module, dotted(node))
    if found and isinstance(found[1], ast.ClassDef):
        return [_hf_switch(flag) for flag in fields_of(found[1], found[0], reach.modules)]
    return list(TRAINING_ARGUMENTS) if last_name(node) in _INHERITED else []


def _hf_switch(flag: Flag) -> Flag:
    """Its parser takes `--flag True`; a field that is True by default also gets `--no_flag`."""
    if flag.type == "bool" and flag.default is True:
        return replace(flag, negative=f"--no_{flag.name}")
    return flag
