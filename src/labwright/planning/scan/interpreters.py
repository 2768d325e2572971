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
    match = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+(?:\.\d+)?)", _venv_config(prefix), re.MULTILINE)
    return match.group(1) if match else ""


def _venv_config(prefix: Path) -> str:
    try:
        return (prefix / "pyvenv.cfg").read_text(errors="replace")[:10_000]
    except OSError:
        return ""


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
    """Yield the conda environments that the project's files name."""
    home = Path(environ.get("HOME") or "/nonexistent")
    roots = [Path(path) for path in (environ.get("MAMBA_ROOT_PREFIX"), environ.get("CONDA_ROOT")) if path]
    if environ.get("CONDA_EXE"):
        roots.append(Path(environ["CONDA_EXE"]).parent.parent)
    roots += [*(home / name for name in _PREFIXES), Path("/opt/conda"), Path("/opt/miniconda3")]
    for name in (file.name for file in files if file.kind == "conda" and file.name and "/" not in file.name):
        for root in roots:
            prefix = root / "envs" / name
            if (prefix / "conda-meta").is_dir():
                tool = "micromamba" if "micromamba" in root.name else "conda"
                yield _conda(prefix, run_in(tool, name), f"environment.yml names {name}", tool)


def conda_tool(path: str | None) -> str:
    """Return the first installed tool. The same tool makes an environment and runs in it."""
    return next((tool for tool in ("micromamba", "mamba", "conda") if shutil.which(tool, path=path)), "")


def run_in(tool: str, name: str, by: str = "-n") -> str:
    """Return the command to run in an environment, without conda's output buffering, which would delay metrics."""
    return f"{tool} run{' --no-capture-output' if tool == 'conda' else ''} {by} {shlex.quote(name)} "


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
    """Yield the first python3 on the path that is not in an environment."""
    folders = [folder for folder in (environ.get("PATH") or os.defpath).split(":") if folder]
    for python in (Path(folder, name) for name in ("python3", "python") for folder in folders):
        root = python.parent.parent
        in_environment = (root / "pyvenv.cfg").exists() or (root / "conda-meta").exists()
        if in_environment or not os.access(python, os.X_OK):
            continue
        real = python
        if python.parent.name == "shims" and (root / "version").is_file():  # of pyenv
            version = (root / "version").read_text(errors="replace").split()
            real = root / "versions" / (version[0] if version else "") / "bin" / python.name
        real = Path(os.path.realpath(real))
        match = re.search(r"python(\d+\.\d+)$", str(real))
        yield Interpreter(
            kind="system",
            path=str(real.parent.parent),
            python=str(python),
            version=match.group(1) if match else "",
            reason="on the path",
        )
        return


def package_folders(interpreter: Interpreter) -> list[Path]:
    prefix = Path(interpreter.path)
    return [folder for pattern in _PACKAGES for folder in sorted(prefix.glob(pattern))]


def installed(interpreter: Interpreter) -> set[str]:
    """Return the names that can be imported, read from the package folders; `*` if it also sees the system's."""
    names: set[str] = set()
    for folder in package_folders(interpreter):
        names.update(name.split(".")[0] for name in os.listdir(folder) if "-info" not in name)
    config = _venv_config(Path(interpreter.path)) if interpreter.kind == "venv" else ""
    if re.search(r"^include-system-site-packages\s*=\s*true", config, re.MULTILINE | re.IGNORECASE):
        names.add("*")
    return names
