"""What the project says it needs: pyproject.toml, requirements, environment.yml, setup.py, lock files, Pipfile."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from labwright.planning.scan.console_scripts import read_toml, table
from labwright.planning.scan.facts import EnvironmentFile
from labwright.planning.scan.literals import keyword, last_name, value_of
from labwright.planning.scan.modules import Modules
from labwright.planning.scan.walk import Tree
from labwright.planning.scan.yaml_files import read_yaml

_REQUIREMENTS = re.compile(r"^requirements[\w.-]*\.(txt|in)$")
_NAME = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_LOCKS = {
    "uv.lock": "uv",
    "poetry.lock": "poetry",
    "Pipfile.lock": "pipenv",
    "pdm.lock": "pdm",
    "conda-lock.yml": "conda",
}


def read_environment_files(tree: Tree, modules: Modules) -> list[EnvironmentFile]:
    """Those at the root, and requirements one folder down."""
    names = [path for path in tree.files if path.count("/") == 0]
    found = [*_pyproject(tree), *_requirements(tree)]
    for path in names:
        if path in ("environment.yml", "environment.yaml", "conda.yml", "conda.yaml"):
            found += _conda(tree, path)
        elif path in ("setup.py", "setup.cfg"):
            found += _setup(modules, path)
        elif path in _LOCKS:
            found.append(EnvironmentFile(path=path, kind="lock", name=_LOCKS[path]))
        elif path == "Pipfile":
            packages = tuple(table(read_toml(tree, path), "packages"))
            found.append(EnvironmentFile(path=path, kind="pipfile", packages=packages))
    return found


def _pyproject(tree: Tree) -> Iterator[EnvironmentFile]:
    content = read_toml(tree, "pyproject.toml")
    project, poetry = table(content, "project"), table(content, "tool", "poetry")
    if not content:
        return
    listed = project.get("dependencies")
    declared = [str(item) for item in listed] if isinstance(listed, list) else list(table(poetry, "dependencies"))
    python = project.get("requires-python") or table(poetry, "dependencies").get("python") or ""
    yield EnvironmentFile(
        path="pyproject.toml",
        kind="pyproject",
        requires_python=str(python),
        packages=_packages([item for item in declared if item != "python"]),
        installable=bool(project.get("name") or poetry.get("name")),
        note="" if project or poetry else "settings of tools only",
    )


def _packages(lines: list[str]) -> tuple[str, ...]:
    return tuple(match.group(1) for line in lines if (match := _NAME.match(line)))


def _requirements(tree: Tree) -> Iterator[EnvironmentFile]:
    for path in tree.files:
        if path.count("/") < 2 and (
            _REQUIREMENTS.match(path.rsplit("/", 1)[-1]) or re.match(r"^requirements/[\w.-]+\.txt$", path)
        ):
            lines = [line.partition("#")[0] for line in (tree.read(path) or "").splitlines()]
            kept = [line for line in lines if line.strip() and not line.lstrip().startswith("-")]
            yield EnvironmentFile(path=path, kind="requirements", packages=_packages(kept))


def _conda(tree: Tree, path: str) -> Iterator[EnvironmentFile]:
    content = read_yaml(tree, path)
    content = content if isinstance(content, dict) else {}
    listed = content.get("dependencies")
    flat: list[str] = []
    for item in listed if isinstance(listed, list) else ():
        below = item.get("pip") if isinstance(item, dict) else None
        flat += [str(line) for line in below] if isinstance(below, list) else [item] if isinstance(item, str) else []
    plain = [item.split("::")[-1] for item in flat]
    python = next((item.removeprefix("python").strip() for item in plain if re.match(r"^python\b", item)), "")
    packages = _packages([item for item in plain if not re.match(r"^(python|pip)\b", item)])
    name = content.get("name")
    yield EnvironmentFile(path=path, kind="conda", name=str(name or ""), requires_python=python, packages=packages)


def _setup(modules: Modules, path: str) -> Iterator[EnvironmentFile]:
    module = modules.get(path) if path.endswith(".py") else None
    packages: tuple[str, ...] = ()
    for node in ast.walk(module.tree) if module else ():
        if isinstance(node, ast.Call) and last_name(node.func) == "setup":
            listed = value_of(keyword(node, "install_requires"), module.constants if module else None)
            packages = _packages([str(item) for item in listed]) if isinstance(listed, list) else ()
    yield EnvironmentFile(path=path, kind="setup", packages=packages, installable=path == "setup.py")
