"""An environment for a copy of an example, with the packages of the test interpreter linked in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path


def make_environment(project: Path) -> None:
    """Create `.venv` with the packages in requirements.txt, without a network."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project / ".venv"], check=True)
    (site,) = (project / ".venv").glob("lib/python*/site-packages")
    wanted = (project / "requirements.txt").read_text().split() if (project / "requirements.txt").exists() else []
    done: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in done:
            done.add(name)
            wanted += _link(name, site)


def _link(name: str, site: Path) -> list[str]:
    """Link all files of a package and of its dependencies."""
    try:
        found = distribution(name)
    except PackageNotFoundError:  # for another platform, or an extra
        return []
    for file in found.files or ():
        source, target = Path(str(found.locate_file(file))), site / file
        if ".." in file.parts or "__pycache__" in file.parts or not source.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except OSError:  # on another file system
            shutil.copyfile(source, target)
    return [re.split(r"[^\w.-]", need, maxsplit=1)[0] for need in found.requires or () if "extra ==" not in need]
