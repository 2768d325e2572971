"""Existing environments: venvs in the project, conda and micromamba by name, active ones, the system's.

Nothing is executed, not even `python -V`: an interpreter inside a project is the project's code. Versions come from
pyvenv.cfg, from conda's records and from the names of folders.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from labwright.planning.scan.facts import EnvironmentFile, Interpreter
from labwright.planning.scan.walk import ProjectTree

_USUAL = (".venv", "venv", "env", ".env")
_PREFIXES = (
    "miniconda3",
    "anaconda3",
    "miniforge3",
    "mambaforge",
    "micromamba",
    ".micromamba",
    ".conda",
    "mambaforge3",
)
_PACKAGES = (
    "lib/python3*/site-packages",
    "lib/python3/dist-packages",
    "lib/python3*/dist-packages",
    "local/lib/python3*/dist-packages",
    "lib64/python3*/site-packages",
)


def find_interpreters(tree: ProjectTree, files: list[EnvironmentFile], environ: Mapping[str, str]) -> list[Interpreter]:
    """Return interpreters, best first: the project's own, the one it names, the active one, the system's."""
    found = [*_in_project(tree, environ), *_named(files, environ), *_active(environ), *_system(environ)]
    return list({interpreter.path: interpreter for interpreter in reversed(found)}.values())[::-1]


def _in_project(tree: ProjectTree, environ: Mapping[str, str]) -> Iterator[Interpreter]:
    folders = sorted(tree.environments, key=lambda path: (path.count("/"), path not in _USUAL, path))
    for folder in folders:
        prefix = Path(tree.root, folder)
        if (prefix / "pyvenv.cfg").is_file() and (prefix / "bin" / "activate").is_file():
            yield _venv(prefix, f"source {shlex.quote(folder)}/bin/activate && ", f"{folder} is in the project")
        elif (prefix / "conda-meta").is_dir():
            tool = conda_tool(environ.get("PATH")) or "conda"
            yield _conda(prefix, run_in(tool, f"./{folder}", by="-p"), f"{folder} is in the project", tool)


def _venv(prefix: Path, activation: str, reason: str) -> Interpreter:
    return Interpreter(
        kind="venv",
        path=str(prefix),
        python=str(prefix / "bin" / "python"),
        version=version_of_venv(prefix),
        name=prefix.name,
        activation=activation,
        reason=reason,
    )


def version_of_venv(prefix: Path) -> str:
    """Return the version in pyvenv.cfg: `version` by venv, `version_info` by virtualenv and uv."""
    try:
        text = (prefix / "pyvenv.cfg").read_text(errors="replace")[:10_000]
    except OSError:
        return ""
    match = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+(?:\.\d+)?)", text, re.MULTILINE)
    return match.group(1) if match else ""


def _conda(prefix: Path, activation: str, reason: str, tool: str) -> Interpreter:
    return Interpreter(
        kind="micromamba" if tool == "micromamba" else "conda",
        path=str(prefix),
        python=str(prefix / "bin" / "python"),
        version=version_of_conda(prefix),
        name=prefix.name,
        activation=activation,
        reason=reason,
    )


def version_of_conda(prefix: Path) -> str:
    names = (path.name for path in (prefix / "conda-meta").glob("python-[0-9]*.json"))
    return next((match.group(1) for name in sorted(names) if (match := re.match(r"python-(\d+\.\d+\.\d+)", name))), "")


def _named(files: list[EnvironmentFile], environ: Mapping[str, str]) -> Iterator[Interpreter]:
    for name in (file.name for file in files if file.kind == "conda" and file.name):
        for prefix in _roots(environ):
            place = prefix / "envs" / name
            if "/" not in name and (place / "conda-meta").is_dir():
                tool = "micromamba" if "micromamba" in prefix.name else "conda"
                yield _conda(place, run_in(tool, name), f"environment.yml names {name}", tool)


def conda_tool(path: str | None) -> str:
    """Return the first installed tool. The same tool makes an environment and runs in it."""
    return next((tool for tool in ("micromamba", "mamba", "conda") if shutil.which(tool, path=path)), "")


def run_in(tool: str, name: str, by: str = "-n") -> str:
    """Return the command to run in an environment, without conda's output buffering, which would delay metrics."""
    return f"{tool} run{' --no-capture-output' if tool == 'conda' else ''} {by} {shlex.quote(name)} "


def _roots(environ: Mapping[str, str]) -> list[Path]:
    home = Path(environ.get("HOME") or "/nonexistent")
    given = [environ.get("MAMBA_ROOT_PREFIX"), environ.get("CONDA_ROOT")]
    of_conda = Path(environ["CONDA_EXE"]).parent.parent if environ.get("CONDA_EXE") else None
    places = [Path(path) for path in given if path] + ([of_conda] if of_conda else [])
    return [*places, *(home / name for name in _PREFIXES), Path("/opt/conda"), Path("/opt/miniconda3")]


def _active(environ: Mapping[str, str]) -> Iterator[Interpreter]:
    venv, conda = environ.get("VIRTUAL_ENV"), environ.get("CONDA_PREFIX")
    if venv and (Path(venv) / "pyvenv.cfg").is_file():
        own = os.path.realpath(venv) == os.path.realpath(sys.prefix)
        reason = "it was active; Labwright itself lives in it" if own else "it was active"
        yield _venv(Path(venv), f"source {shlex.quote(venv)}/bin/activate && ", reason)
    if conda and (Path(conda) / "conda-meta").is_dir():
        name = environ.get("CONDA_DEFAULT_ENV") or Path(conda).name
        tool = "conda" if environ.get("CONDA_EXE") else "micromamba"
        yield _conda(Path(conda), run_in(tool, name), "it was active", tool)


def _system(environ: Mapping[str, str]) -> Iterator[Interpreter]:
    """Return the first python3 on the path that is not in an environment."""
    places = [place for place in (environ.get("PATH") or os.defpath).split(":") if place]
    candidates = (Path(place, name) for name in ("python3", "python") for place in places)
    python = next((path for path in candidates if os.access(path, os.X_OK) and not _is_inside_one(path)), None)
    if python:
        real = _behind_shim(python)
        prefix = Path(os.path.realpath(real)).parent.parent
        version = _version_of(real)
        yield Interpreter(kind="system", path=str(prefix), python=str(python), version=version, reason="on the path")


def _is_inside_one(python: Path) -> bool:
    prefix = python.parent.parent
    return (prefix / "pyvenv.cfg").exists() or (prefix / "conda-meta").exists()


def _behind_shim(python: Path) -> Path:
    """Return the real interpreter behind a pyenv shim."""
    root = python.parent.parent
    if python.parent.name != "shims" or not (root / "version").is_file():
        return python
    version = (root / "version").read_text(errors="replace").split()
    return root / "versions" / (version[0] if version else "") / "bin" / python.name


def _version_of(python: Path) -> str:
    match = re.search(r"python(\d+\.\d+)$", os.path.realpath(python))
    return match.group(1) if match else ""


def package_folders(interpreter: Interpreter) -> list[Path]:
    prefix = Path(interpreter.path)
    return [folder for pattern in _PACKAGES for folder in sorted(prefix.glob(pattern))]


def installed(interpreter: Interpreter) -> set[str]:
    """Return the names that can be imported, read from the package folders."""
    names: set[str] = set()
    for folder in package_folders(interpreter):
        names.update(name.split(".")[0] for name in os.listdir(folder) if "-info" not in name)
    if interpreter.kind == "venv" and _sees_the_system(Path(interpreter.path)):
        names.update({"*"})
    return names


def _sees_the_system(prefix: Path) -> bool:
    try:
        text = (prefix / "pyvenv.cfg").read_text(errors="replace")
    except OSError:
        return False
    return bool(re.search(r"^include-system-site-packages\s*=\s*true", text, re.MULTILINE | re.IGNORECASE))
