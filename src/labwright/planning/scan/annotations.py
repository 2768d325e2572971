"""Types from annotations, and flags from annotated dataclasses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from labwright.planning.scan.facts import Flag
from labwright.planning.scan.literals import UNKNOWN, dotted, keyword, known, last_name, value_of
from labwright.planning.scan.modules import CodeBlock, Modules, SourceModule
from labwright.planning.scan.reach import Reach, names_in

_PLAIN = {"int": "int", "float": "float", "str": "str", "bool": "bool", "Path": "path", "PathLike": "path"}
_LISTS = {"list", "List", "tuple", "Tuple", "Sequence", "set", "Set", "Iterable"}


@dataclass(frozen=True, slots=True)
class Annotated:
    type: str = "str"
    choices: tuple[Any, ...] = ()
    optional: bool = False
    extras: tuple[ast.expr, ...] = ()  # the other arguments of Annotated[...]


def read_annotation(node: ast.expr | None, module: SourceModule, modules: Modules, depth: int = 0) -> Annotated:
    if node is None or depth > 8:
        return Annotated()
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _quoted(node.value, module, modules, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right], module, modules, depth)
    if isinstance(node, ast.Subscript):
        return _subscript(node, module, modules, depth)
    name = last_name(node)
    if name in _PLAIN:
        return Annotated(_PLAIN[name])
    if name in _LISTS:
        return Annotated("list[str]")
    return _enum(node, module, modules)


def _quoted(text: str, module: SourceModule, modules: Modules, depth: int) -> Annotated:
    try:
        inner = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Annotated()
    return read_annotation(inner, module, modules, depth + 1)


def _union(sides: list[ast.expr], module: SourceModule, modules: Modules, depth: int) -> Annotated:
    real = [side for side in sides if not (isinstance(side, ast.Constant) and side.value is None)]
    first = read_annotation(real[0] if real else None, module, modules, depth + 1)
    return Annotated(first.type, first.choices, len(real) < len(sides) or first.optional, first.extras)


def _subscript(node: ast.Subscript, module: SourceModule, modules: Modules, depth: int) -> Annotated:
    name = last_name(node.value)
    items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name == "Literal":
        values = [value for item in items if (value := value_of(item)) is not UNKNOWN]
        return Annotated(type(values[0]).__name__ if values else "str", tuple(values))
    if name == "Optional":
        inner = read_annotation(items[0], module, modules, depth + 1)
        return Annotated(inner.type, inner.choices, True, inner.extras)
    if name == "Union":
        return _union(items, module, modules, depth)
    if name == "Annotated":
        inner = read_annotation(items[0], module, modules, depth + 1)
        return Annotated(inner.type, inner.choices, inner.optional, tuple(items[1:]))
    if name in _LISTS:
        inner = read_annotation(items[0], module, modules, depth + 1)
        return Annotated(f"list[{inner.type}]", inner.choices)
    return read_annotation(items[0], module, modules, depth + 1) if name in ("Final", "ClassVar") else Annotated()


def _enum(node: ast.expr, module: SourceModule, modules: Modules) -> Annotated:
    found = modules.find(module, last_name(node))
    if not found or not isinstance(found[1], ast.ClassDef):
        return Annotated()
    if not any(last_name(base).endswith(("Enum", "Flag")) for base in found[1].bases):
        return Annotated("object")
    return Annotated("str", tuple(enum_values(found[1])))


def enum_values(definition: ast.ClassDef) -> list[Any]:
    values = [(target.id, value_of(node.value)) for node in definition.body if isinstance(node, ast.Assign)
              for target in node.targets if isinstance(target, ast.Name)]  # fmt: skip
    return [name if value is UNKNOWN else value for name, value in values]


def type_of(value: Any) -> str:
    """Return the type that a default suggests."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    if isinstance(value, list):
        return f"list[{type_of(value[0])}]" if value else "list[str]"
    return "str"


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


_INHERITED = {"TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig"}
_FIELDS = ("field", "HfArg", "ib")


def is_dataclass(definition: ast.ClassDef) -> bool:
    decorators = (item.func if isinstance(item, ast.Call) else item for item in definition.decorator_list)
    return any(last_name(item) in ("dataclass", "define", "attrs") for item in decorators)


def fields_of(
    definition: ast.ClassDef, module: SourceModule, modules: Modules, *, dashes: bool = False, depth: int = 0
) -> Iterator[Flag]:
    """Return one flag per field, those of base classes first."""
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


def _field(node: ast.AnnAssign, name: str, module: SourceModule, modules: Modules, *, dashes: bool) -> Flag:
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


def _default(node: ast.expr | None, module: SourceModule, modules: Modules) -> tuple[Any, str, tuple[Any, ...]]:
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


def _classes(node: ast.expr, block: CodeBlock, reach: Reach) -> list[ast.expr]:
    if isinstance(node, ast.Name):
        node = names_in(block, reach.modules).get(node.id, node)
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List) else [node]


def _of_class(node: ast.expr, block: CodeBlock, reach: Reach) -> list[Flag]:
    found = reach.modules.find(block.module, dotted(node))
    if found and isinstance(found[1], ast.ClassDef):
        return [_hf_switch(flag) for flag in fields_of(found[1], found[0], reach.modules)]
    return list(TRAINING_ARGUMENTS) if last_name(node) in _INHERITED else []


def _hf_switch(flag: Flag) -> Flag:
    """Return the flag as HfArgumentParser takes it: `--flag True`, and `--no_flag` for a default of True."""
    if flag.type == "bool" and flag.default is True:
        return replace(flag, negative=f"--no_{flag.name}")
    return flag
