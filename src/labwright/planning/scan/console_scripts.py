"""Commands that installing the project makes: `name = "package.module:function"`."""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
from dataclasses import dataclass

from labwright.planning.scan.literals import keyword, last_name, value_of
from labwright.planning.scan.modules import Modules
from labwright.planning.scan.walk import Tree

_LINE = re.compile(r"^\s*([\w.-]+)\s*=\s*([\w.]+)\s*:\s*(\w+)")


@dataclass(frozen=True, slots=True)
class ConsoleScript:
    name: str
    path: str
    function: str


def read_console_scripts(tree: Tree, modules: Modules) -> list[ConsoleScript]:
    lines = [*_of_pyproject(tree), *_of_setup_cfg(tree), *_of_setup_py(modules)]
    found = []
    for line in lines:
        match = _LINE.match(line)
        path = modules.resolve("", match.group(2)) if match else None
        if match and path:
            found.append(ConsoleScript(match.group(1), path, match.group(3)))
    return list(dict.fromkeys(found))


def read_toml(tree: Tree, path: str) -> dict[str, object]:
    if path not in tree.files:
        return {}
    text = tree.read(path)
    try:
        return tomllib.loads(text) if text else {}
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        tree.skip(path, f"not TOML: {error}")
        return {}


def table(content: object, *keys: str) -> dict[str, object]:
    """A table inside tables; empty where it is missing or something else."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else {}


def _of_pyproject(tree: Tree) -> list[str]:
    content = read_toml(tree, "pyproject.toml")
    tables = [table(content, "project", "scripts"), table(content, "tool", "poetry", "scripts")]
    return [f"{name} = {target}" for found in tables for name, target in found.items()]


def _of_setup_cfg(tree: Tree) -> list[str]:
    text = tree.read("setup.cfg") if "setup.cfg" in tree.files else None
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text or "")
    except configparser.Error as error:
        tree.skip("setup.cfg", f"cannot be parsed: {str(error).splitlines()[0]}")
        return []
    return parser.get("options.entry_points", "console_scripts", fallback="").splitlines()


def _of_setup_py(modules: Modules) -> list[str]:
    module = modules.get("setup.py") if "setup.py" in modules.paths else None
    for node in ast.walk(module.tree) if module else ():
        if isinstance(node, ast.Call) and last_name(node.func) == "setup":
            points = value_of(keyword(node, "entry_points"), module.constants if module else None)
            listed = points.get("console_scripts") if isinstance(points, dict) else None
            return [line for line in listed if isinstance(line, str)] if isinstance(listed, list) else []
    return []
