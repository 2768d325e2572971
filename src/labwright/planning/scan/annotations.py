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
        try:
            quoted = ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return Annotated()
        return read_annotation(quoted, module, modules, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right], module, modules, depth)
    if isinstance(node, ast.Subscript):
        return _subscript(node, module, modules, depth)
    name = last_name(node)
    if name in _PLAIN:
        return Annotated(_PLAIN[name])
    if name in _LISTS:
        return Annotated("list[str]")
    definition = modules.find_class(module, name)
    if not definition:
        return Annotated()
    if any(last_name(base).endswith(("Enum", "Flag")) for base in definition[1].bases):
        return Annotated("str", tuple(enum_values(definition[1])))
    return Annotated("object")


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
    """Yield one flag per field of a dataclass, the fields of base classes first."""
    for base in definition.bases:
        parent = modules.find_class(module, dotted(base))
        if parent and depth < 5:
            yield from fields_of(parent[1], parent[0], modules, dashes=dashes, depth=depth + 1)
        elif last_name(base) in _INHERITED:
            yield from TRAINING_ARGUMENTS
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            annotation = node.annotation
            outer = annotation.value if isinstance(annotation, ast.Subscript) else annotation
            if last_name(outer) != "ClassVar":
                yield _field(node, node.target.id, module, modules, dashes=dashes)


def _field(node: ast.AnnAssign, name: str, module: SourceModule, modules: Modules, *, dashes: bool) -> Flag:
    annotated = read_annotation(node.annotation, module, modules)
    has_default, default, help_, choices = _read_default(node.value, modules.constants_of(module))
    return Flag(
        name=name,
        option=f"--{name.replace('_', '-') if dashes else name}",
        type=annotated.type if annotated.type != "object" or default is None else type_of(default),
        default=known(default),
        required=default is UNKNOWN and not has_default,
        choices=annotated.choices or choices,
        help=help_,
        where=module.at(node),
    )


def _read_default(node: ast.expr | None, names: dict[str, ast.expr]) -> tuple[bool, Any, str, tuple[Any, ...]]:
    """Return whether a field has a default, the default, the help text and the choices."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in _FIELDS:
        return node is not None, value_of(node, names), "", ()
    default = value_of(keyword(node, "default"), names)
    factory = keyword(node, "default_factory")
    if isinstance(factory, ast.Lambda):
        default = value_of(factory.body, names)
    elif last_name(factory) == "list":
        default = []
    metadata = value_of(keyword(node, "metadata"), names)
    metadata = metadata if isinstance(metadata, dict) else {}
    text = metadata.get("help", value_of(keyword(node, "help"), names))
    help_ = " ".join(text.split())[:300] if isinstance(text, str) else ""
    has_default = bool(keyword(node, "default") or factory)
    return has_default, default, help_, tuple(metadata.get("choices") or ())


def read_hf_parser(reach: Reach) -> list[Flag]:
    """Read `HfArgumentParser((ModelArguments, ...))`, and simple_parsing's `add_arguments(Config, ...)`."""
    flags: list[Flag] = []
    for block, call in reach.calls():
        if last_name(call.func) in ("HfArgumentParser", "TrlParser") and call.args:
            classes = call.args[0]
            if isinstance(classes, ast.Name):
                classes = names_in(block, reach.modules).get(classes.id, classes)
            for node in classes.elts if isinstance(classes, ast.Tuple | ast.List) else [classes]:
                flags += _flags_of_class(node, block, reach)
        elif last_name(call.func) == "add_arguments" and call.args:
            flags += _flags_of_class(call.args[0], block, reach)
    return flags


def _flags_of_class(node: ast.expr, block: CodeBlock, reach: Reach) -> list[Flag]:
    definition = reach.modules.find_class(block.module, dotted(node))
    if not definition:
        return list(TRAINING_ARGUMENTS) if last_name(node) in _INHERITED else []
    flags = fields_of(definition[1], definition[0], reach.modules)
    return [  # HfArgumentParser takes `--flag True`, and `--no_flag` if the default is True
        replace(flag, negative=f"--no_{flag.name}") if flag.type == "bool" and flag.default is True else flag
        for flag in flags
    ]
