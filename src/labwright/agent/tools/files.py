"""The project's files: list, read, search and edit. Nothing outside of the project, hidden or secret."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from labwright.agent.tools.tool import Json, Tool, ToolContext, text, whole
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


def list_files(context: ToolContext, folder: str = ".") -> Json:
    root = _inside(context, folder)
    if not root.is_dir():
        raise NotFound(f"There is no folder {folder}.")
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in root.iterdir() if _is_shown(entry))
    return {"folder": folder, "files": names[:_FILES], "left_out": max(0, len(names) - _FILES)}


def read_file(context: ToolContext, path: str, first_line: int = 1) -> Json:
    lines = _read(context, path).splitlines()
    shown = "\n".join(lines[first_line - 1 : first_line - 1 + _LINES])
    return {
        "path": path,
        "first_line": first_line,
        "lines": len(lines),
        "text": shown,
        **context.cite("text", what=path, shown=shown[:8000]),
    }


def search_files(context: ToolContext, pattern: str, folder: str = ".") -> Json:
    """Return the lines that contain a text, in the order of the files."""
    hits: list[str] = []
    for path in _walk(_inside(context, folder)):
        name = path.relative_to(context.lab.paths.project)
        try:
            lines = path.read_text().splitlines()
        except (UnicodeDecodeError, OSError):
            continue  # not text, or not readable
        hits += [f"{name}:{n}: {line.strip()[:200]}" for n, line in enumerate(lines, 1) if pattern in line]
        if len(hits) >= _HITS:
            break
    evidence = context.cite("text", what=folder, shown="\n".join(hits[:_HITS]))
    return {"pattern": pattern, "hits": hits[:_HITS], "left_out": len(hits) > _HITS, **evidence}


def edit_file(context: ToolContext, path: str, new: str, old: str | None = None) -> Json:
    """Replace one place, or create a file without `old`. Idempotent: repeated after a kill it changes nothing."""
    target = _inside(context, path, writing=True)
    if old is None and target.exists() and _read(context, path) != new:
        raise Invalid(f"{path} already exists.", hint="Pass the text to replace as `old`.")
    before = _read(context, path) if target.exists() else ""
    if not old:
        after = new
    elif before.count(old) == 1:
        after = before.replace(old, new)
    elif new and new in before and old not in before:
        after = before
    else:
        raise Invalid(
            f"`old` occurs {before.count(old)} times in {path}.", hint="Pass a text that occurs exactly once."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    if after != before:
        write_whole(target, after.encode())
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return {"path": path, "diff": "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)}


def _read(context: ToolContext, path: str) -> str:
    target = _inside(context, path)
    if not target.is_file():
        raise NotFound(f"There is no file {path}.", hint="List the files with list_files.")
    if target.stat().st_size > _MOST_BYTES:
        raise Invalid(f"{path} is larger than {_MOST_BYTES >> 20} MB.")
    try:
        return target.read_text()
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} is not a text file.") from error


def _inside(context: ToolContext, path: str, *, writing: bool = False) -> Path:
    """Return the real path, with links followed. Refuse what is outside of the project, hidden or secret."""
    project = context.lab.paths.project.resolve()
    real = (project / path).resolve()
    if not real.is_relative_to(project):
        raise Forbidden(f"{path} is not in the project.")
    parts = real.relative_to(project).parts
    if any(part.startswith(".") for part in parts) or any(_SECRET.search(part) for part in parts[-1:]):
        raise Forbidden(f"{path} is hidden or may contain secrets. Agents cannot use it.")
    if str(real) in PrivateFiles(context.lab.paths)():
        raise Forbidden(f"{path} contains the address of a notification channel. Agents cannot use it.")
    if writing and parts == (CONFIG_FILE,):
        raise Forbidden(f"{CONFIG_FILE} contains settings. Only a person changes those.")
    return real


def _is_shown(entry: Path) -> bool:
    return not entry.name.startswith(".") and entry.name not in _SKIPPED and not _SECRET.search(entry.name)


def _walk(root: Path) -> Iterator[Path]:
    """Yield the files to search, without links, up to a limit."""
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
    Tool(
        name="list_files",
        description="List a folder of the project.",
        do=list_files,
        takes={"folder": _PATH},
        chat_only=True,
        operation="",
    ),
    Tool(
        name="read_file",
        description=f"Read a text file of the project, {_LINES} lines at a time.",
        do=read_file,
        takes={"path": _PATH, "first_line": whole("the first line to return", 1, 10**7)},
        needs=("path",),
        chat_only=True,
        operation="",
    ),
    Tool(
        name="search_files",
        description="Find the lines of the project's files that contain a text.",
        do=search_files,
        takes={"pattern": text("plain text to search for"), "folder": _PATH},
        needs=("pattern",),
        chat_only=True,
        operation="",
    ),
    Tool(
        name="edit_file",
        description="Replace `old`, which must occur once in the file, by `new`. Without `old`, create a file.",
        do=edit_file,
        takes={
            "path": _PATH,
            "old": text("the text to replace", maxLength=_LONGEST_EDIT),
            "new": text("the new text", maxLength=_LONGEST_EDIT),
        },
        needs=("path", "new"),
        writes=True,
        chat_only=True,
        operation="",
    ),
)
