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
from labwright.planning.scan.reach import Reach, reach
from labwright.planning.scan.walk import ProjectTree

_PACKAGES = {"flash_attn", "apex", "cupy", "bitsandbytes", "vllm", "triton", "deepspeed", "xformers"}
_ASKS = ("is_available", "device_count", "use_cuda", "no_cuda", "find_device")
_MOST = 10


def read_cuda_evidence(reach: Reach, flags: list[Flag]) -> list[str]:
    """Return lines such as `train.py:12 .cuda()`, or none if the code checks first or a flag sets the device."""
    packages = [f"imports {name}" for name in sorted(_PACKAGES) if reach.imports(name)]
    chosen = any(flag.role is Role.DEVICE and flag.is_settable for flag in flags)
    asks = any(word in module.text for module in reach.files() for word in _ASKS)
    if chosen or asks:
        return packages
    found = (f"{block.module.at(call)} {what}" for block, call in reach.calls() for what in _of_call(call))
    return [*packages, *list(found)[:_MOST]]


def _of_call(call: ast.Call) -> Iterator[str]:
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


def first_look(path: str) -> int:
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
    _by_name(ranking, reach.entry.path)
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


def _by_name(ranking: Ranking, path: str) -> None:
    stem = _stem(path)
    if TRAINS.search(stem):
        ranking.kind = Kind.TRAIN
        ranking.add(40, f"the name {stem}")
    elif _EVALUATES.search(stem):
        ranking.kind = Kind.EVALUATE
        ranking.add(30, f"the name {stem}")
    elif _STARTS.match(stem):
        ranking.add(15, f"the name {stem}")


def _signs_of_learning(reach: Reach) -> list[str]:
    signs: dict[str, None] = {}
    for _block, call in reach.calls():
        name = last_name(call.func)
        if (
            name == "backward"
            or (name == "step" and "optim" in dotted(call.func).lower())
            or (name in ("fit", "train_step", "partial_fit") and isinstance(call.func, ast.Attribute))
        ):
            signs[f".{name}()"] = None
        elif name.endswith("Trainer"):
            signs[name] = None
    for block in reach.blocks:
        if any(
            isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub) and _names_a_rate(node.value)
            for node in block.walk()
        ):
            signs["gradient descent"] = None
    return list(signs)[:3]


def _names_a_rate(node: ast.expr) -> bool:
    words = {last_name(inner).lower() for inner in ast.walk(node)}
    return bool(words & {"lr", "learning_rate", "alpha", "eta", "rate", "step_size", "grad", "gradient"})


_STARTABLE = (  # plain strings, as every file is searched: a regular expression takes four times as long
    "__main__", "argparse", "import click", "typer", "tyro", "hydra", "HfArgumentParser", "LightningCLI", "fire.Fire",
    "configurator.py", "absl", "\nfor ", "\nwhile ", "\nprint(",  # the last three: a script without functions
)  # fmt: skip
_NEVER = re.compile(r"(^|/)(setup|conftest|__init__|noxfile|fabfile|versioneer)\.py$|(^|/)test_[^/]*\.py$|_test\.py$")
_MOST_READ = 40
_MOST_KEPT = 20


def read_entry_points(tree: ProjectTree, modules: Modules) -> list[EntryPoint]:
    scripts = {script.path: script for script in read_console_scripts(tree, modules)}
    candidates = [path for path in modules.paths if path in scripts or _may_be_started(path, modules)]
    candidates.sort(key=lambda path: (path not in scripts, -first_look(path), path))
    for path in candidates[_MOST_READ:]:
        tree.skip(path, "not among the likeliest entry points")
    found = [entry for path in candidates[:_MOST_READ] if (entry := _read(path, scripts.get(path), tree, modules))]
    return sorted(found, key=lambda entry: (-entry.score, entry.path))[:_MOST_KEPT]


def _may_be_started(path: str, modules: Modules) -> bool:
    if _NEVER.search(path):
        return False
    text = modules.text(path)
    return bool(text) and (first_look(path) > 0 or any(word in (text or "") for word in _STARTABLE))


def _read(path: str, script: ConsoleScript | None, tree: ProjectTree, modules: Modules) -> EntryPoint | None:
    module = modules.get(path)
    if module is None or tree.is_late:
        return None
    try:
        return _read_module(module, script, tree, modules)
    except RecursionError:
        tree.skip(path, "nested too deeply to be read")
        return None


def _read_module(
    module: SourceModule, script: ConsoleScript | None, tree: ProjectTree, modules: Modules
) -> EntryPoint | None:
    reached = reach(module, modules, "" if module.guarded or not script else script.function)
    line = read_flags(reached, tree)
    metrics = read_metrics(reached, {flag.name for flag in line.flags})
    ranking = rank(reached, line, metrics)
    if script is None and not _is_started(module, line):
        return None
    return _entry_point(reached, line, metrics, ranking, script)


def _is_started(module: SourceModule, line: CommandLine) -> bool:
    """Return whether a module can be started: a main guard, a command line, or top-level work."""
    if module.guarded:
        return True
    works = any(type(node).__name__ in ("For", "While", "Expr") and not _is_text(node) for node in module.statements)
    return works and (line.style != "plain" or first_look(module.path) > 0)


def _is_text(node: object) -> bool:
    return type(getattr(node, "value", None)).__name__ == "Constant"


def _entry_point(
    reached: Reach, line: CommandLine, metrics: list[LoggedMetric], ranking: Ranking, script: ConsoleScript | None
) -> EntryPoint:
    module = importable_name(reached.entry.path, reached.modules)
    return EntryPoint(
        path=reached.entry.path,
        kind=ranking.kind,
        style=line.style,
        command=script.name if script and not reached.entry.guarded else _command(reached.entry, module),
        module=module,
        console_script=script.name if script else "",
        commands=tuple(line.commands),
        flags=tuple(line.flags),
        metrics=tuple(metrics),
        imports=tuple(foreign_imports(reached)),
        cuda_only=tuple(read_cuda_evidence(reached, line.flags)),
        score=ranking.score,
        reasons=tuple(ranking.reasons),
        notes=(*line.notes, *_notes(line.flags, ranking.kind)),
    )


def _notes(flags: list[Flag], kind: Kind) -> list[str]:
    if kind is Kind.TRAIN and not any(flag.is_settable for flag in flags):
        return ["nothing of it can be set from outside"]
    return []


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


def _command(module: SourceModule, name: str) -> str:
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


def foreign_imports(reached: Reach) -> list[str]:
    """Return imported packages outside the standard library and the project."""
    names = set()
    for module in reached.files():
        for source, _name in module.imports.values():
            head = source.split(".")[0]
            if head and head not in sys.stdlib_module_names and not _is_own(module.path, source, reached.modules):
                names.add(head)
    return sorted(names)


def _is_own(importer: str, source: str, modules: Modules) -> bool:
    head = source.split(".")[0]
    if modules.resolve(importer, source) or modules.resolve(importer, head):
        return True
    return any(path.startswith((f"{head}/", f"src/{head}/")) or f"/{head}/" in path for path in modules.paths)
