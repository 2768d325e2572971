"""The project's files: list, read, search, and edit with a diff to look at. Nothing outside, hidden or secret."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from labwright.agent.tools.tool import Deed, Json, Tool, text, whole
from labwright.compute.notify.channels import PrivateFiles
from labwright.domain.errors import Forbidden, Invalid, NotFound
from labwright.files import write_whole
from labwright.paths import CONFIG_FILE

_LINES = 400
_MOST_BYTES = 2 << 20
_LONGEST_EDIT = 500_000  # characters
_FILES = 300
_HITS = 60
_SCANNED = 5000
_SECRET = re.compile(
    r"(?i)(^|[._-])(env|secrets?|credentials?|tokens?|passwords?)([._-]|$)|\.(pem|key|p12|pfx)$|^id_(rsa|ed25519)"
)
_SKIPPED = {"__pycache__", "node_modules", "wandb", "mlruns"}


def list_files(deed: Deed, folder: str = ".") -> Json:
    root = _inside(deed, folder)
    if not root.is_dir():
        raise NotFound(f"There is no folder {folder}.")
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in root.iterdir() if _is_shown(entry))
    return {"folder": folder, "files": names[:_FILES], "left_out": max(0, len(names) - _FILES)}


def read_file(deed: Deed, path: str, first_line: int = 1) -> Json:
    lines = _read(deed, path).splitlines()
    shown = "\n".join(lines[first_line - 1 : first_line - 1 + _LINES])
    return {
        "path": path,
        "first_line": first_line,
        "lines": len(lines),
        "text": shown,
        "evidence": deed.cite("text", what=path, shown=shown[:8000]),
    }


def search_files(deed: Deed, pattern: str, folder: str = ".") -> Json:
    """Lines that contain a text, in the order of the files."""
    hits: list[str] = []
    for path in _walk(_inside(deed, folder)):
        name = path.relative_to(deed.lab.paths.project)
        try:
            lines = path.read_text().splitlines()
        except (UnicodeDecodeError, OSError):
            continue  # not a text, or not ours to read
        hits += [f"{name}:{n}: {line.strip()[:200]}" for n, line in enumerate(lines, 1) if pattern in line]
        if len(hits) >= _HITS:
            break
    evidence = deed.cite("text", what=folder, shown="\n".join(hits[:_HITS]))
    return {"pattern": pattern, "hits": hits[:_HITS], "left_out": len(hits) > _HITS, "evidence": evidence}


def edit_file(deed: Deed, path: str, new: str, old: str | None = None) -> Json:
    """Replaces one place; without `old` it makes a new file. Done again after a kill it finds it done."""
    target = _inside(deed, path, writing=True)
    if old is None and target.exists() and _read(deed, path) != new:
        raise Invalid(f"{path} is there already.", hint="Say with `old` which of its text is to be replaced.")
    before = _read(deed, path) if target.exists() else ""
    if not old:
        after = new
    elif before.count(old) == 1:
        after = before.replace(old, new)
    elif new and new in before and old not in before:
        after = before
    else:
        raise Invalid(f"`old` is {before.count(old)} times in {path}.", hint="Give a text that is in it exactly once.")
    target.parent.mkdir(parents=True, exist_ok=True)
    if after != before:
        write_whole(target, after.encode())
    return {"path": path, "diff": _diff(path, before, after)}


def _diff(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _read(deed: Deed, path: str) -> str:
    target = _inside(deed, path)
    if not target.is_file():
        raise NotFound(f"There is no file {path}.", hint="Look with list_files.")
    if target.stat().st_size > _MOST_BYTES:
        raise Invalid(f"{path} is larger than {_MOST_BYTES >> 20} MB.")
    try:
        return target.read_text()
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} is no text.") from error


def _inside(deed: Deed, path: str, *, writing: bool = False) -> Path:
    """Where it really is, links followed: only what belongs to the project and is not hidden."""
    project = deed.lab.paths.project.resolve()
    real = (project / path).resolve()
    if not real.is_relative_to(project):
        raise Forbidden(f"{path} is not in the project.")
    parts = real.relative_to(project).parts
    if any(part.startswith(".") for part in parts) or any(_SECRET.search(part) for part in parts[-1:]):
        raise Forbidden(f"{path} is hidden or may hold secrets; it is not for an agent.")
    if str(real) in PrivateFiles(deed.lab.paths)():
        raise Forbidden(f"{path} holds an address of notifications; it is not for an agent.")
    if writing and parts == (CONFIG_FILE,):
        raise Forbidden(f"{CONFIG_FILE} holds settings; those are a person's to change.")
    return real


def _is_shown(entry: Path) -> bool:
    return not entry.name.startswith(".") and entry.name not in _SKIPPED and not _SECRET.search(entry.name)


def _walk(root: Path) -> Iterator[Path]:
    """Files worth searching, links not followed, and so many at most."""
    seen = 0
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if _is_shown(Path(name)))
        for name in sorted(files):
            path = Path(folder, name)
            seen += 1
            if seen > _SCANNED:
                return
            if _is_shown(path) and not path.is_symlink() and path.stat().st_size <= _MOST_BYTES:
                yield path


_PATH = text("relative to the project's root")
TOOLS = (
    Tool(name="list_files", description="What is in a folder of the project.", do=list_files, takes={"folder": _PATH}),
    Tool(
        name="read_file",
        description=f"A text file of the project, {_LINES} lines at a time.",
        do=read_file,
        takes={"path": _PATH, "first_line": whole("where to begin", 1, 10**7)},
        needs=("path",),
    ),
    Tool(
        name="search_files",
        description="Lines of the project's files that contain a text.",
        do=search_files,
        takes={"pattern": text("plain text to look for"), "folder": _PATH},
        needs=("pattern",),
    ),
    Tool(
        name="edit_file",
        description="Replace `old`, which must be in the file once, by `new`; without `old` make a new file.",
        do=edit_file,
        takes={
            "path": _PATH,
            "old": text("what is there", maxLength=_LONGEST_EDIT),
            "new": text("what is to be there", maxLength=_LONGEST_EDIT),
        },
        needs=("path", "new"),
        writes=True,
    ),
)
