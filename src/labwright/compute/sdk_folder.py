"""Write the small package: the folder that lets a run's own interpreter `import labwright` without installing it.

Each version has its own folder, and `labwright` is a link that is replaced in one step. So a script that starts at that
moment, or runs for weeks, never sees files of two versions.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_SDK, _WORKFLOW = _PACKAGE / "sdk", _PACKAGE / "workflow"
_NOT_FOR_RUNS = frozenset({"small_package.py"})


def write_small_package(target: Path) -> None:
    """Make `<target>/labwright`. A second call, or two servers at once, is harmless."""
    files = _files()
    name = f"labwright-{_digest(files)}"
    link = target / "labwright"
    target.mkdir(parents=True, exist_ok=True)
    target.chmod(0o755)  # for sandboxed code, which runs as another user; the folders around it stay private
    if link.is_symlink() and os.readlink(link) == name and (target / name).is_dir():
        return
    if not (target / name).is_dir():
        _write_folder(target, name, files)
    aside = target / f"labwright.{os.getpid()}.new"
    aside.unlink(missing_ok=True)
    aside.symlink_to(name)
    aside.replace(link)


def _files() -> dict[str, bytes]:
    start = (_PACKAGE / "__init__.py").read_bytes() + b"\n" + (_SDK / "small_package.py").read_bytes()
    found = [path for folder in (_SDK, _WORKFLOW) for path in folder.glob("*.py") if path.name not in _NOT_FOR_RUNS]
    modules = {f"{path.parent.name}/{path.name}": path.read_bytes() for path in found}
    return {"__init__.py": start, "version.py": (_PACKAGE / "version.py").read_bytes(), **modules}


def _digest(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode() + files[name])
    return digest.hexdigest()[:12]


def _write_folder(target: Path, name: str, files: dict[str, bytes]) -> None:
    aside = Path(tempfile.mkdtemp(prefix="new-", dir=target))
    try:
        for folder in (_SDK, _WORKFLOW):
            (aside / folder.name).mkdir()
        for relative, content in files.items():
            (aside / relative).write_bytes(content)
        aside.chmod(0o755)
        with contextlib.suppress(OSError):  # another server was faster; its folder is the same
            aside.rename(target / name)
            return
        if not (target / name).is_dir():
            raise OSError(f"{target / name} could not be made")
    finally:
        shutil.rmtree(aside, ignore_errors=True)
