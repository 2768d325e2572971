"""No module with which code starts work itself, ends its process, or looks at whoever runs it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.checks.names import imported_modules
from labwright.planning.checks.subject import Found, Subject

_WORK = {"subprocess", "multiprocessing", "threading", "_thread", "concurrent", "runpy", "pty", "signal", "sched"}
_NETWORK = {
    "socket", "_socket", "socketserver", "ssl", "http", "urllib.request", "ftplib", "smtplib", "telnetlib", "xmlrpc",
    "requests", "httpx", "aiohttp", "urllib3", "paramiko", "webbrowser",
}  # fmt: skip
_MACHINERY = {
    "ctypes", "_ctypes", "cffi", "gc", "inspect", "importlib", "imp", "pkgutil", "zipimport", "builtins", "atexit",
    "code", "codeop", "pdb", "bdb", "trace", "tracemalloc", "faulthandler", "posix", "resource", "mmap", "fcntl",
    "unittest.mock", "site", "sysconfig", "pickle", "marshal", "dill", "cloudpickle", "_posixsubprocess", "psutil",
}  # fmt: skip
_REASONS = {
    **dict.fromkeys(_WORK, "Tasks compute; an experiment declares the runs, and Labwright starts them."),
    **dict.fromkeys(_NETWORK, "Generated code has no network."),
    **dict.fromkeys(_MACHINERY, "Generated code does not look behind the interpreter."),
}


def check_forbidden_imports(subject: Subject) -> Iterator[Found]:
    for module in subject.modules.values():
        for node in ast.walk(module.tree):
            for name, reason in _forbidden(node):
                words = f"{module.path} imports {name}."
                yield Found(code="forbidden_import", place=module.at(node), message=words, hint=reason)


def _forbidden(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        yield f"everything from {node.module}", "Name what is imported."
    for name in imported_modules(node):
        parts = name.split(".")
        reason = _REASONS.get(parts[0]) or _REASONS.get(".".join(parts[:2]))
        if reason:
            yield name, reason
            return
