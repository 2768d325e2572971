"""What generated code must not do, read from its text: start work itself, end the process, use names that are not."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator

from labwright.planning.checks.subject import Found, Subject

_STARTS_WORK = {"subprocess", "multiprocessing", "runpy", "pty", "socket", "threading", "ctypes", "gc", "inspect"}
_CALLS = {
    "os.system", "os.popen", "os._exit", "os.fork", "os.execv", "os.execvp", "os.spawnv", "os.kill", "sys.exit",
    "sys._getframe", "exec", "eval", "__import__", "importlib.import_module",
}  # fmt: skip
_NAMES_THAT_ARE = {*dir(builtins), "__file__", "__name__", "__doc__", "__package__"}


def check_source(subject: Subject) -> Iterator[Found]:
    protected = {file.path for file in subject.scan.evaluation_files}
    for path, text in {**subject.python_files("src"), **subject.python_files("tests")}.items():
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue  # said by the check of files
        yield from _forbidden(path, tree)
        yield from _protected(path, tree, protected)
        yield from _undefined(path, text)


def _forbidden(path: str, tree: ast.Module) -> Iterator[Found]:
    hint = "Tasks compute; an experiment declares the runs, and Labwright starts them."
    for node in ast.walk(tree):
        for name in _imported(node):
            if name.split(".")[0] in _STARTS_WORK:
                yield Found(
                    code="forbidden_import", place=f"{path}:{_line(node)}", message=f"imports {name}.", hint=hint
                )
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _CALLS:
            words = f"calls {ast.unparse(node.func)}."
            yield Found(code="forbidden_call", place=f"{path}:{node.lineno}", message=words, hint=hint)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _protected(path: str, tree: ast.Module, protected: set[str]) -> Iterator[Found]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in protected:
            words = f"names {node.value}, which decides what a result means."
            yield Found(code="touches_evaluation", place=f"{path}:{node.lineno}", message=words)


def _undefined(path: str, text: str) -> Iterator[Found]:
    top = symtable.symtable(text, path, "exec")
    known = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    known |= {symbol.get_name() for symbol in top.get_symbols() if symbol.is_namespace()} | _NAMES_THAT_ARE
    for name in sorted({name for table in _tables(top) for name in _globals_used(table)} - known):
        yield Found(code="undefined_name", place=path, message=f"{name} is used and nowhere defined.")


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _globals_used(table: symtable.SymbolTable) -> Iterator[str]:
    module = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (module or symbol.is_global()):
            yield symbol.get_name()
