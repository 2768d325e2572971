"""The environment that a run command needs: one that is there, or the command that makes one.

The order is uv, then micromamba or conda, then pip. It is made at `.venv`, whatever makes it. While that goes on, a
file beside it says so: what a kill left half made is not taken for an environment, and the next attempt clears it away.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import replace

from labwright.planning.scan.environment_files import read_environment_files
from labwright.planning.scan.facts import EntryPoint, Environment, EnvironmentFile, Interpreter, Kind
from labwright.planning.scan.interpreters import conda_tool, find_interpreters, installed, run_in
from labwright.planning.scan.modules import Modules
from labwright.planning.scan.walk import JUST_MADE, UNFINISHED, Tree

# Where the import has another name than the package.
_PACKAGES = {
    "sklearn": "scikit-learn", "cv2": "opencv-python", "PIL": "pillow", "yaml": "pyyaml", "skimage": "scikit-image",
    "bs4": "beautifulsoup4", "dateutil": "python-dateutil", "hydra": "hydra-core", "absl": "absl-py",
    "pytorch_lightning": "pytorch-lightning", "google": "protobuf", "Bio": "biopython", "attr": "attrs",
}  # fmt: skip
_ACTIVATE = "source .venv/bin/activate && "
_MARK = f".venv{UNFINISHED}"


def read_environment(
    tree: Tree, modules: Modules, entries: list[EntryPoint], environ: Mapping[str, str]
) -> Environment:
    files = read_environment_files(tree, modules)
    known = [entry for entry in entries if entry.kind is not Kind.OTHER]  # where there is none, any may be meant
    imports = sorted({name for entry in known or entries for name in entry.imports} - {"labwright"})
    found = [replace(one, missing=tuple(_missing(one, imports))) for one in find_interpreters(tree, files, environ)]
    chosen = _choose(found, files, imports)
    commands, activation = _create(files, imports, environ)
    recipe = _whole_or_anew(commands)
    if chosen:
        return Environment(
            files=tuple(files),
            interpreters=tuple(found),
            chosen=chosen,
            activation=chosen.activation,
            recipe=recipe,
            notes=tuple(_notes(chosen)),
        )
    return Environment(
        files=tuple(files), interpreters=tuple(found), create=recipe, recipe=recipe, activation=activation
    )


def _missing(interpreter: Interpreter, imports: list[str]) -> list[str]:
    there = installed(interpreter)
    return [] if "*" in there else [name for name in imports if name not in there]


def _choose(found: list[Interpreter], files: list[EnvironmentFile], imports: list[str]) -> Interpreter | None:
    """The project's own counts even when a package is missing: whoever made it meant it."""
    for one in found:
        own = "in the project" in one.reason or "names" in one.reason
        if own or (not one.missing and (one.kind != "system" or not _asks_for_more(files, imports))):
            return one
    return None


def _asks_for_more(files: list[EnvironmentFile], imports: list[str]) -> bool:
    """Whether the project's files ask for an environment of its own; the system's will do for bare scripts."""
    return bool(imports) and any(file.packages or file.installable for file in files)


def _notes(chosen: Interpreter) -> list[str]:
    return [f"{chosen.path} lacks {', '.join(chosen.missing)}"] if chosen.missing else []


def _whole_or_anew(commands: list[str]) -> str:
    """One line for a shell. Only what an earlier attempt left unfinished is removed, never somebody's folder.

    Runs write for their user alone; an environment is also read by the user without rights that checks run as.
    """
    begin = f"umask 022 && {{ [ ! -e {_MARK} ] || rm -rf .venv; }} && touch {_MARK}"
    return " && ".join((begin, *commands, f"mv {_MARK} .venv/{JUST_MADE}"))


def _create(files: list[EnvironmentFile], imports: list[str], environ: Mapping[str, str]) -> tuple[list[str], str]:
    """Commands to make an environment, and the activation that a run then needs."""
    path = environ.get("PATH")
    conda = next((file for file in files if file.kind == "conda"), None)
    others = [
        file
        for file in files
        if file.kind in ("requirements", "pyproject", "setup") and (file.packages or file.installable)
    ]
    if conda and not others:
        return _create_conda(conda, path)
    what = _to_install(files, imports)
    if shutil.which("uv", path=path):
        if any(file.path == "uv.lock" for file in files):
            return ["uv sync"], _ACTIVATE
        return _joined("uv venv .venv", "uv pip install", what), _ACTIVATE
    tool = conda_tool(path)
    if tool:
        return _joined_conda(tool, what)
    return _joined("python3 -m venv .venv", "python -m pip install", what), _ACTIVATE


def _joined(make: str, install: str, what: str) -> list[str]:
    return [f"{make} && {_ACTIVATE}{install} {what}" if what else make]


def _joined_conda(tool: str, what: str) -> tuple[list[str], str]:
    run = run_in(tool, "./.venv", by="-p")
    make = f"{tool} create -y -p ./.venv python pip"
    return [make, f"{run}python -m pip install {what}"] if what else [make], run


def _create_conda(file: EnvironmentFile, path: str | None) -> tuple[list[str], str]:
    tool = conda_tool(path) or "conda"
    create = f"{tool} create -y" if tool == "micromamba" else f"{tool} env create"
    return [f"{create} -p ./.venv -f {shlex.quote(file.path)}"], run_in(tool, "./.venv", by="-p")


def _to_install(files: list[EnvironmentFile], imports: list[str]) -> str:
    """What pip is given: the plain requirements file, the project itself, else the packages that are imported."""
    requirements = sorted(
        (file.path for file in files if file.kind == "requirements"), key=lambda path: (path.count("/"), len(path))
    )
    parts = [f"-r {shlex.quote(requirements[0])}"] if requirements else []
    if any(file.installable for file in files):
        parts.append("-e .")
    return " ".join(parts) or " ".join(_PACKAGES.get(name, name) for name in imports)
