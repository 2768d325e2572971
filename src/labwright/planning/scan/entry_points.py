"""Scripts that can be started, ranked by how likely they train or evaluate a model."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from labwright.planning.scan.commands import ConsoleScript, read_console_scripts
from labwright.planning.scan.facts import EntryPoint, Flag, Kind, LoggedMetric, Role
from labwright.planning.scan.flags import CommandLine, read_flags
from labwright.planning.scan.literals import dotted, last_name
from labwright.planning.scan.metrics import read_metrics
from labwright.planning.scan.modules import Modules, SourceModule
from labwright.planning.scan.reach import MAX_MODULES, Reach, reach
from labwright.planning.scan.walk import ProjectTree

_PACKAGES = {"flash_attn", "apex", "cupy", "bitsandbytes", "vllm", "triton", "deepspeed", "xformers"}
_CHECKS = ("is_available", "device_count", "use_cuda", "no_cuda", "find_device")
_MAX_LINES = 10


def read_cuda_evidence(reach: Reach, flags: list[Flag]) -> list[str]:
    """Return lines such as `train.py:12 .cuda()`, or none if the code checks first or a flag sets the device."""
    packages = [f"imports {name}" for name in sorted(_PACKAGES) if reach.imports(name)]
    has_flag = any(flag.role is Role.DEVICE and flag.is_settable for flag in flags)
    checks_first = any(word in module.text for module in reach.files() for word in _CHECKS)
    if has_flag or checks_first:
        return packages
    lines = (f"{block.module.at(call)} {use}" for block, call in reach.calls() for use in _cuda_uses(call))
    return [*packages, *list(lines)[:_MAX_LINES]]


def _cuda_uses(call: ast.Call) -> Iterator[str]:
    name = last_name(call.func)
    if isinstance(call.func, ast.Attribute) and name == "cuda":
        yield ".cuda()"
    elif dotted(call.func).startswith("torch.cuda.") and name in ("set_device", "synchronize", "Stream", "Event"):
        yield f"{dotted(call.func)}()"
    for item in [*call.args, *(keyword.value for keyword in call.keywords)]:
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            if item.value == "cuda" or item.value.startswith("cuda:"):
                yield f'"{item.value}"'
            elif item.value == "nccl":
                yield '"nccl"'


TRAINS = re.compile(
    r"(^|[_-])(train|trainer|training|finetune|fine_tune|pretrain|fit|learn)(ing)?([_-]|\d*$)", re.IGNORECASE
)
_EVALUATES = re.compile(
    r"(^|[_-])(eval|evaluate|evaluation|test|validate|benchmark|score|infer|inference|predict)([_-]|$)", re.IGNORECASE
)
_STARTS = re.compile(r"^(main|run|__main__|experiment|cli|run_.*|.*_run)$", re.IGNORECASE)
_ASIDE = re.compile(
    r"(^|/)(tests?|docs?|old|legacy|archive|deprecated|third_party|vendor|external|notebooks|tools|examples?)/"
)


@dataclass(slots=True)
class Ranking:
    kind: Kind = Kind.OTHER
    score: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, points: int, reason: str) -> None:
        self.score += points
        self.reasons.append(reason)


def _stem(path: str) -> str:
    stem = path.rsplit("/", 1)[-1].removesuffix(".py")
    return path.rsplit("/", 2)[-2] if stem == "__main__" and "/" in path else stem


def score_of_name(path: str) -> int:
    """Return a first score from the file name alone."""
    stem = _stem(path)
    points = 0
    if TRAINS.search(stem):
        points = 40
    elif _EVALUATES.search(stem):
        points = 30
    elif _STARTS.match(stem):
        points = 15
    return points - (20 if _ASIDE.search(path) else 0) - 2 * path.count("/") if points else 0


def rank(reach: Reach, line: CommandLine, metrics: list[LoggedMetric]) -> Ranking:
    ranking = Ranking()
    stem = _stem(reach.entry.path)
    if TRAINS.search(stem):
        ranking.kind = Kind.TRAIN
        ranking.add(40, f"the name {stem}")
    elif _EVALUATES.search(stem):
        ranking.kind = Kind.EVALUATE
        ranking.add(30, f"the name {stem}")
    elif _STARTS.match(stem):
        ranking.add(15, f"the name {stem}")
    learns = _signs_of_learning(reach)
    if learns:
        ranking.add(20, f"it learns: {', '.join(learns)}")
    if ranking.kind is Kind.OTHER and learns:
        ranking.kind = Kind.TRAIN
    if reach.entry.guarded:
        ranking.add(10, "it has a main guard")
    if line.flags and line.style not in ("plain", "globals"):
        ranking.add(10, f"it takes flags ({line.style})")
    if metrics:
        ranking.add(10, f"it reports {', '.join(metric.name for metric in metrics[:4])}")
    if _ASIDE.search(reach.entry.path):
        ranking.add(-30, "it stands aside")
    ranking.score -= 3 * reach.entry.path.count("/")
    return ranking


def _signs_of_learning(reach: Reach) -> list[str]:
    signs: dict[str, None] = {}
    for _block, call in reach.calls():
        name = last_name(call.func)
        is_step = name == "step" and "optim" in dotted(call.func).lower()
        is_fit = name in ("fit", "train_step", "partial_fit") and isinstance(call.func, ast.Attribute)
        if name == "backward" or is_step or is_fit:
            signs[f".{name}()"] = None
        elif name.endswith("Trainer"):
            signs[name] = None
    for node in (node for block in reach.blocks for node in block.nodes):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub):
            words = {last_name(inner).lower() for inner in ast.walk(node.value)}
            if words & {"lr", "learning_rate", "alpha", "eta", "rate", "step_size", "grad", "gradient"}:
                signs["gradient descent"] = None
    return list(signs)[:3]


_STARTABLE = (  # plain strings, as every file is searched: a regular expression takes four times as long
    "__main__", "argparse", "import click", "typer", "tyro", "hydra", "HfArgumentParser", "LightningCLI", "fire.Fire",
    "configurator.py", "absl", "\nfor ", "\nwhile ", "\nprint(",  # the last three: a script without functions
)  # fmt: skip
_NEVER = re.compile(r"(^|/)(setup|conftest|__init__|noxfile|fabfile|versioneer)\.py$|(^|/)test_[^/]*\.py$|_test\.py$")
_MAX_READ = 40
_MAX_KEPT = 20


def read_entry_points(tree: ProjectTree, modules: Modules) -> list[EntryPoint]:
    scripts = {script.path: script for script in read_console_scripts(tree, modules)}
    candidates = [
        path
        for path in modules.paths
        if path in scripts
        or (
            not _NEVER.search(path)
            and (text := modules.text(path))
            and (score_of_name(path) > 0 or any(word in text for word in _STARTABLE))
        )
    ]
    candidates.sort(key=lambda path: (path not in scripts, -score_of_name(path), path))
    for path in candidates[_MAX_READ:]:
        tree.skip(path, "not among the likeliest entry points")
    entries = []
    for path in candidates[:_MAX_READ]:
        module = modules.get(path)
        if module is None or tree.is_late:
            continue
        try:
            entry = _read_module(module, scripts.get(path), tree, modules)
        except RecursionError:
            tree.skip(path, "nested too deeply to be read")
            continue
        if entry:
            entries.append(entry)
    return sorted(entries, key=lambda entry: (-entry.score, entry.path))[:_MAX_KEPT]


def _read_module(
    module: SourceModule, script: ConsoleScript | None, tree: ProjectTree, modules: Modules
) -> EntryPoint | None:
    reached = reach(module, modules, "" if module.guarded or not script else script.function)
    line = read_flags(reached, tree)
    if script is None and not _can_start(module, line):
        return None
    metrics = read_metrics(reached, {flag.name for flag in line.flags})
    ranking = rank(reached, line, metrics)
    name = importable_name(module.path, modules)
    needed, optional = foreign_imports(reached)
    if ranking.kind is Kind.TRAIN and not any(flag.is_settable for flag in line.flags):
        line.notes.append("nothing of it can be set from outside")
    return EntryPoint(
        path=module.path,
        kind=ranking.kind,
        style=line.style,
        command=script.name if script and not module.guarded else _start_command(module, name),
        module=name,
        console_script=script.name if script else "",
        commands=tuple(line.commands),
        flags=tuple(line.flags),
        metrics=tuple(metrics),
        imports=tuple(needed),
        optional_imports=tuple(optional),
        cuda_only=tuple(read_cuda_evidence(reached, line.flags)),
        score=ranking.score,
        reasons=tuple(ranking.reasons),
        notes=tuple(line.notes),
    )


def _can_start(module: SourceModule, line: CommandLine) -> bool:
    """Return whether a module can be started: it has a main guard, a command line, or top-level work."""
    if module.guarded:
        return True
    works = any(
        isinstance(node, ast.For | ast.While | ast.Expr) and not isinstance(getattr(node, "value", None), ast.Constant)
        for node in module.statements
    )
    return works and (line.style != "plain" or score_of_name(module.path) > 0)


def importable_name(path: str, modules: Modules) -> str:
    """Return `pkg.train` if every folder above the file is a package, else ""."""
    parts = path.removesuffix(".py").split("/")
    if parts[0] in ("src", "lib", "python") and len(parts) > 2:
        parts = parts[1:]
    start = path.removesuffix(".py").split("/")[: -len(parts)]
    packages = ["/".join([*start, *parts[: index + 1], "__init__.py"]) for index in range(len(parts) - 1)]
    if not packages or not all(package in modules.paths for package in packages):
        return ""
    return ".".join(parts[:-1] if parts[-1] == "__main__" else parts)


def _start_command(module: SourceModule, name: str) -> str:
    """Return the start command: `python -m` if the file imports from its own package, else its path."""
    if not name:
        return f"python {shlex.quote(module.path)}"
    own = name.split(".")[0]
    relative = re.search(r"^\s*from \.", module.text, re.MULTILINE) or re.search(
        rf"^\s*(from|import) {re.escape(own)}\b", module.text, re.MULTILINE
    )
    if not relative and not module.path.endswith("__main__.py"):
        return f"python {shlex.quote(module.path)}"
    root = module.path.split("/")[0]
    return f"PYTHONPATH={shlex.quote(root)} python -m {name}" if root != own else f"python -m {name}"


def foreign_imports(reached: Reach) -> tuple[list[str], list[str]]:
    """Return packages outside the standard library and the project: needed to start, and imported only in some cases.

    An import is needed if it is at the top level of the script, or of a project module that is itself needed.
    """
    modules, needed, every = reached.modules, set[str](), set[str]()
    for module in reached.files():
        every |= {head for source, _name in module.imports.values() if (head := _foreign(source, module, modules))}
    waiting, seen = [reached.entry], {reached.entry.path}
    while waiting and len(seen) < MAX_MODULES:
        module = waiting.pop()
        for source, name in module.top_imports:
            if head := _foreign(source, module, modules):
                needed.add(head)
                continue
            paths = (modules.resolve(module.path, part) for part in (source, f"{source}.{name}".strip(".")))
            found = [other for path in paths if path and path not in seen and (other := modules.get(path))]
            seen |= {other.path for other in found}
            waiting += found
    return sorted(needed), sorted(every - needed)


def _foreign(source: str, module: SourceModule, modules: Modules) -> str:
    """Return the package of an import, or "" if it belongs to the project or the standard library."""
    head = source.split(".")[0]
    if not head or head in sys.stdlib_module_names:
        return ""
    if modules.resolve(module.path, source) or modules.resolve(module.path, head):
        return ""
    return "" if head in modules.folders else head
