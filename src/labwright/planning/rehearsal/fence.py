"""The sandbox of a rehearsal: the machine read-only, a copy in the project's place, no network, nothing that is secret.

It runs the project's own script as its own user, so it holds less back than the one for generated code: what that user
may read, the script can read, except the places below.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from labwright.compute.lab import Lab
from labwright.planning.project.contained import interpreter_folders
from labwright.planning.rehearsal.project_copy import DATA
from labwright.sandbox.machine import secret_places

_MEMORY_MB = 16384
_PROCESSES = 512
# Nothing answers there, and waiting for it would look like a script that hangs.
_OFFLINE = {"WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
_NOT_FOR_IT = ("LABWRIGHT_SERVER_URL", "LABWRIGHT_RUN_TOKEN")
_EMPTIED = Path("/tmp")  # noqa: S108
_RUN_DIR = '"$LABWRIGHT_RUN_DIR"'  # the shell of the run fills it in: what the script logs goes there


def fenced(lab: Lab, project: Path, copy: Path, command: str, python: str, *, gpus: bool) -> str:
    """One line for the shell of a run. `python`: the project's interpreter, which may lie where all else is emptied."""
    inside = [
        *("--ro-bind", "/", "/", "--proc", "/proc"),
        *(("--dev-bind", "/dev", "/dev") if gpus else ("--dev", "/dev")),
        *("--tmpfs", str(_EMPTIED), "--tmpfs", "/dev/shm"),  # noqa: S108
        *(word for path in _code_outside(project, python) for word in ("--ro-bind", path, path)),
        *_without_secrets(),
        *("--ro-bind", str(project), DATA, "--tmpfs", f"{DATA}/{lab.paths.state.name}"),
        *("--bind", str(copy), str(project), "--ro-bind", str(lab.paths.python_path), str(lab.paths.python_path)),
    ]
    held = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--new-session"]
    held += ["--cap-drop", "ALL", "--chdir", str(project), "--"]
    limits = ["prlimit", f"--data={_MEMORY_MB << 20}", f"--nproc={_PROCESSES}", "--core=0", "--"]
    variables = [f"{name}={value}" for name, value in _OFFLINE.items()]
    without = [word for name in _NOT_FOR_IT for word in ("-u", name)]
    words = ["env", *without, *variables, shutil.which("bwrap") or "bwrap", *inside]
    rest = [*held, *limits, "bash", "-c", command]
    return f"exec {shlex.join(words)} --bind {_RUN_DIR} {_RUN_DIR} {shlex.join(rest)}"


def missed(said: str, project: Path) -> str:
    """What a script did not find though it is there: the first such path, outside of the project, of its last words."""
    if "No such file or directory" not in said and "FileNotFoundError" not in said:
        return ""
    named = re.findall(rf"(?<!File \")({_EMPTIED}/[^\s'\",;:()]+)", said)
    own = os.path.realpath(project)
    real = (Path(os.path.realpath(path)) for path in named if os.path.exists(path))
    return next((str(path) for path in real if not path.is_relative_to(own)), "")


def _code_outside(project: Path, python: str) -> list[str]:
    """Of the interpreter and its packages what lies below the emptied folder; the rest is seen anyway."""
    prefixes = interpreter_folders(python)
    folders = [*prefixes, *(folder for prefix in prefixes for folder in _linked(Path(prefix)))]
    real = {Path(os.path.realpath(folder)) for folder in folders}
    own = os.path.realpath(project)
    return sorted(str(path) for path in real if _EMPTIED in path.parents and not path.is_relative_to(own))


def _linked(prefix: Path) -> Iterator[str]:
    """Folders that an environment finds packages in without having copied them, as `pip install -e` leaves them."""
    for file in prefix.glob("lib/python3*/site-packages/*.pth"):
        lines = file.read_text(errors="replace").splitlines()  # some are code, and name no folder
        yield from filter(os.path.isdir, (os.path.join(file.parent, line.strip()) for line in lines))


def _without_secrets() -> list[str]:
    words: list[str] = []
    for place in secret_places(os.path.expanduser("~")):
        words += ["--tmpfs", place] if os.path.isdir(place) else ["--ro-bind", "/dev/null", place]
    return words
