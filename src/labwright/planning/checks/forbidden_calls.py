"""No call that starts a process, ends this one, or makes code of text; by whatever name it was imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from labwright.planning.checks.names import full_name, imported_names
from labwright.planning.checks.subject import Found, Module, Subject

_HINT = "Tasks compute; an experiment declares the runs, and Labwright starts them."
# Referring to one is enough: `leave = exit` would call it by another name.
_BUILTINS = {
    "exec",
    "eval",
    "compile",
    "__import__",
    "breakpoint",
    "exit",
    "quit",
    "input",
    "globals",
    "locals",
    "vars",
}
_FORBIDDEN = re.compile(
    r"os\.(_exit|abort|system|popen|fork\w*|exec\w*|spawn\w*|posix_spawn\w*|kill\w*|set\w*id|register_at_fork|environ\w*"
    r"|putenv|unsetenv|getenv\w*|pipe\w*|dup\w*|chroot|ptrace|memfd_create|pidfd_open|openpty|tcsetpgrp|nice)"
    r"|sys\.(exit|_\w+|settrace|setprofile|modules|meta_path|path|path_hooks|path_importer_cache|addaudithook|exc_info"
    r"|excepthook|unraisablehook|monitoring|setrecursionlimit|stdin|executable|last_\w+|call_tracing)"
    r"|asyncio\.(create_)?subprocess\w*"
)


def check_forbidden_calls(subject: Subject) -> Iterator[Found]:
    for module in subject.modules.values():
        for node, name in _used(module):
            words = f"{module.path} uses {name}."
            yield Found(code="forbidden_call", place=module.at(node), message=words, hint=_HINT)


def _used(module: Module) -> Iterator[tuple[ast.AST, str]]:
    imported = imported_names(module.tree)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute | ast.Name):
            name = full_name(node, imported)
            if (name in _BUILTINS and isinstance(node, ast.Name)) or _FORBIDDEN.fullmatch(name):
                yield node, name
        elif isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from ((node, name) for name in names if _FORBIDDEN.fullmatch(name))
