"""Which files are started, what for, and how: candidates are found by their text, then read and ranked."""

from __future__ import annotations

import re
import shlex
import sys

from labwright.planning.scan.console_scripts import ConsoleScript, read_console_scripts
from labwright.planning.scan.cuda_evidence import read_cuda_evidence
from labwright.planning.scan.facts import EntryPoint, Flag, Kind, Metric
from labwright.planning.scan.flags import CommandLine, read_flags
from labwright.planning.scan.metrics import read_metrics
from labwright.planning.scan.modules import Module, Modules
from labwright.planning.scan.ranking import Ranking, first_look, rank
from labwright.planning.scan.reach import Reach, reach
from labwright.planning.scan.walk import Tree

_STARTABLE = (  # looked for in every file, so plain words: an expression takes four times as long
    "__main__", "argparse", "import click", "typer", "tyro", "hydra", "HfArgumentParser", "LightningCLI", "fire.Fire",
    "configurator.py", "absl", "\nfor ", "\nwhile ", "\nprint(",  # the last three: it works as it is read
)  # fmt: skip
_NEVER = re.compile(r"(^|/)(setup|conftest|__init__|noxfile|fabfile|versioneer)\.py$|(^|/)test_[^/]*\.py$|_test\.py$")
_MOST_READ = 40
_MOST_KEPT = 20


def read_entry_points(tree: Tree, modules: Modules) -> list[EntryPoint]:
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


def _read(path: str, script: ConsoleScript | None, tree: Tree, modules: Modules) -> EntryPoint | None:
    module = modules.get(path)
    if module is None or tree.is_late:
        return None
    try:
        return _read_module(module, script, tree, modules)
    except RecursionError:
        tree.skip(path, "nested too deeply to be read")
        return None


def _read_module(module: Module, script: ConsoleScript | None, tree: Tree, modules: Modules) -> EntryPoint | None:
    reached = reach(module, modules, "" if module.guarded or not script else script.function)
    line = read_flags(reached, tree)
    metrics = read_metrics(reached, {flag.name for flag in line.flags})
    ranking = rank(reached, line, metrics)
    if script is None and not _is_started(module, line):
        return None
    return _entry_point(reached, line, metrics, ranking, script)


def _is_started(module: Module, line: CommandLine) -> bool:
    """A main guard, a command line, or a script that does its work as it is read."""
    if module.guarded:
        return True
    works = any(type(node).__name__ in ("For", "While", "Expr") and not _is_text(node) for node in module.statements)
    return works and (line.style != "plain" or first_look(module.path) > 0)


def _is_text(node: object) -> bool:
    return type(getattr(node, "value", None)).__name__ == "Constant"


def _entry_point(
    reached: Reach, line: CommandLine, metrics: list[Metric], ranking: Ranking, script: ConsoleScript | None
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
    """`pkg.train` if every folder above it is a package."""
    parts = path.removesuffix(".py").split("/")
    if parts[0] in ("src", "lib", "python") and len(parts) > 2:
        parts = parts[1:]
    start = path.removesuffix(".py").split("/")[: -len(parts)]
    packages = ["/".join([*start, *parts[: index + 1], "__init__.py"]) for index in range(len(parts) - 1)]
    if not packages or not all(package in modules.paths for package in packages):
        return ""
    return ".".join(parts[:-1] if parts[-1] == "__main__" else parts)


def _command(module: Module, name: str) -> str:
    """`python -m` where the file cannot be started by its path, since it imports from its own package."""
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
    """Top-level packages that come from neither the standard library nor the project."""
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
