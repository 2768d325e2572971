"""The project's Python environment: the files that describe it, and the interpreter to use."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace

from labwright.planning.scan.commands import read_toml, setup_argument, table
from labwright.planning.scan.facts import EntryPoint, Environment, EnvironmentFile, Interpreter, Kind
from labwright.planning.scan.interpreters import conda_tool, find_interpreters, installed, run_in
from labwright.planning.scan.modules import Modules
from labwright.planning.scan.walk import JUST_MADE, UNFINISHED, ProjectTree, read_yaml

_REQUIREMENTS = re.compile(r"^requirements[\w.-]*\.(txt|in)$")
_NAME = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_LOCKS = {
    "uv.lock": "uv",
    "poetry.lock": "poetry",
    "Pipfile.lock": "pipenv",
    "pdm.lock": "pdm",
    "conda-lock.yml": "conda",
}


def read_environment_files(tree: ProjectTree, modules: Modules) -> list[EnvironmentFile]:
    """Read environment files at the root, and requirements files one folder down."""
    files = list(_pyproject(tree))
    for path in tree.files:
        is_requirements = _REQUIREMENTS.match(path.rsplit("/", 1)[-1]) or re.match(r"^requirements/[\w.-]+\.txt$", path)
        if path.count("/") < 2 and is_requirements:
            lines = [line.partition("#")[0] for line in (tree.read(path) or "").splitlines()]
            kept = [line for line in lines if line.strip() and not line.lstrip().startswith("-")]
            files.append(EnvironmentFile(path=path, kind="requirements", packages=_packages(kept)))
    for path in (path for path in tree.files if "/" not in path):
        if path in ("environment.yml", "environment.yaml", "conda.yml", "conda.yaml"):
            files.append(_conda(tree, path))
        elif path == "setup.cfg":
            files.append(EnvironmentFile(path=path, kind="setup"))
        elif path == "setup.py":
            listed = setup_argument(modules, "install_requires")
            packages = _packages([str(item) for item in listed]) if isinstance(listed, list) else ()
            files.append(EnvironmentFile(path=path, kind="setup", packages=packages, installable=True))
        elif path in _LOCKS:
            files.append(EnvironmentFile(path=path, kind="lock", name=_LOCKS[path]))
        elif path == "Pipfile":
            packages = tuple(table(read_toml(tree, path), "packages"))
            files.append(EnvironmentFile(path=path, kind="pipfile", packages=packages))
    return files


def _pyproject(tree: ProjectTree) -> Iterator[EnvironmentFile]:
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


def _conda(tree: ProjectTree, path: str) -> EnvironmentFile:
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
    name = str(content.get("name") or "")
    return EnvironmentFile(path=path, kind="conda", name=name, requires_python=python, packages=packages)


# Packages whose import has another name.
_PACKAGES = {
    "sklearn": "scikit-learn", "cv2": "opencv-python", "PIL": "pillow", "yaml": "pyyaml", "skimage": "scikit-image",
    "bs4": "beautifulsoup4", "dateutil": "python-dateutil", "hydra": "hydra-core", "absl": "absl-py",
    "pytorch_lightning": "pytorch-lightning", "google": "protobuf", "Bio": "biopython", "attr": "attrs",
}  # fmt: skip
_ACTIVATE = "source .venv/bin/activate && "
_MARK = f".venv{UNFINISHED}"
_MOST_NOTES = 3


def read_environment(
    tree: ProjectTree, modules: Modules, entries: list[EntryPoint], environ: Mapping[str, str]
) -> Environment:
    files = read_environment_files(tree, modules)
    likely = [entry for entry in entries if entry.kind is not Kind.OTHER] or entries
    needs = [(entry.path, [name for name in entry.imports if name != "labwright"]) for entry in likely]
    imports = sorted({name for _path, names in needs for name in names})
    requires = next((file.requires_python for file in files if file.kind == "pyproject" and file.requires_python), "")
    # Bare scripts can use the system's Python, other projects need their own environment.
    needs_own = bool(imports) and any(file.packages or file.installable for file in files)
    interpreters = []
    chosen: Interpreter | None = None
    notes: tuple[str, ...] = ()
    for interpreter in find_interpreters(tree, files, environ):
        there = installed(interpreter)
        gaps = {path: tuple(name for name in names if not there & {name, "*"}) for path, names in needs}
        missing = min(gaps.values(), key=len, default=())  # of the script that it comes closest to running
        interpreter = replace(interpreter, missing=missing)
        interpreters.append(interpreter)
        is_own = "in the project" in interpreter.reason or "names" in interpreter.reason  # wins even with gaps
        runs_one = not missing and allows(requires, interpreter.version)
        if chosen is None and (is_own or (runs_one and (interpreter.kind != "system" or not needs_own))):
            chosen = interpreter
            notes = tuple(_notes(interpreter, gaps, requires))
    commands, activation = _create(files, imports, environ)
    # The recipe removes only what an earlier attempt left unfinished, never a user's folder.
    # umask: checks run as a user without rights, who must be able to read the environment.
    start = f"umask 022 && {{ [ ! -e {_MARK} ] || rm -rf .venv; }} && touch {_MARK}"
    recipe = " && ".join((start, *commands, f"mv {_MARK} .venv/{JUST_MADE}"))
    return Environment(
        files=tuple(files),
        interpreters=tuple(interpreters),
        chosen=chosen,
        create="" if chosen else recipe,
        recipe=recipe,
        activation=chosen.activation if chosen else activation,
        notes=notes,
    )


def _notes(chosen: Interpreter, gaps: Mapping[str, tuple[str, ...]], requires: str) -> Iterator[str]:
    if not allows(requires, chosen.version):
        yield f"{chosen.path} has Python {chosen.version}; pyproject.toml requires {requires}"
    lacking = [(path, names) for path, names in gaps.items() if names]
    for path, names in lacking[:_MOST_NOTES]:
        yield f"{chosen.path} lacks {', '.join(names)}, which {path} imports"
    if len(lacking) > _MOST_NOTES:
        yield f"{len(lacking) - _MOST_NOTES} more scripts import packages that {chosen.path} lacks"


def allows(requires: str, version: str) -> bool:
    """Return whether a range such as `>=3.8,<3.11`, `^3.9` or `==3.10.*` allows a version, or it is unknown."""
    found = _numbers(version)
    return not found or all(_meets(part.strip(), found) for part in requires.split(",") if part.strip())


def _meets(part: str, version: tuple[int, ...]) -> bool:
    sign = part.rstrip("0123456789.* ").strip()
    bound = _numbers(part[len(sign) :])
    if not bound:
        return True
    version = version[: max(2, len(bound))]
    bound = bound + (0,) * (len(version) - len(bound)) if sign not in ("==", "=", "!=") else bound
    same = version[: len(bound)] == bound
    known = {
        ">=": version >= bound,
        ">": version > bound,
        "<": version < bound,
        "<=": version <= bound,
        "==": same,
        "=": same,
        "!=": not same,
        "^": version >= bound and version[0] == bound[0],
        "~=": version >= bound and version[0] == bound[0],
        "~": version >= bound and version[:2] == bound[:2],
    }
    return known.get(sign, True)


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"\s*(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match.group(1).split(".")) if match else ()


def _create(files: list[EnvironmentFile], imports: list[str], environ: Mapping[str, str]) -> tuple[list[str], str]:
    """Return commands to make an environment, and the activation for its runs."""
    path = environ.get("PATH")
    tool = conda_tool(path)
    conda = next((file for file in files if file.kind == "conda"), None)
    for_pip = [file for file in files if file.kind in ("requirements", "pyproject", "setup")]
    if conda and not any(file.packages or file.installable for file in for_pip):
        tool = tool or "conda"
        create = f"{tool} create -y" if tool == "micromamba" else f"{tool} env create"
        return [f"{create} -p ./.venv -f {shlex.quote(conda.path)}"], run_in(tool, "./.venv", by="-p")
    packages = _pip_arguments(files, imports)
    if shutil.which("uv", path=path):
        if any(file.path == "uv.lock" for file in files):
            return ["uv sync"], _ACTIVATE
        return _make_venv("uv venv .venv", "uv pip install", packages), _ACTIVATE
    if tool:
        run = run_in(tool, "./.venv", by="-p")
        make = f"{tool} create -y -p ./.venv python pip"
        return [make, f"{run}python -m pip install {packages}"] if packages else [make], run
    return _make_venv("python3 -m venv .venv", "python -m pip install", packages), _ACTIVATE


def _make_venv(make: str, install: str, packages: str) -> list[str]:
    return [f"{make} && {_ACTIVATE}{install} {packages}" if packages else make]


def _pip_arguments(files: list[EnvironmentFile], imports: list[str]) -> str:
    """Return the arguments for pip: a requirements file, the project itself, or the imported packages."""
    requirements = sorted(
        (file.path for file in files if file.kind == "requirements"), key=lambda path: (path.count("/"), len(path))
    )
    parts = [f"-r {shlex.quote(requirements[0])}"] if requirements else []
    if any(file.installable for file in files):
        parts.append("-e .")
    return " ".join(parts) or " ".join(_PACKAGES.get(name, name) for name in imports)
