"""Scripts that use the SDK without an installed Labwright, in any supported interpreter."""

from __future__ import annotations

import glob
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from labwright.compute.sdk_folder import write_small_package
from tests.support.children import end_with_test


def interpreters() -> list[str]:
    """Return this interpreter, and the oldest and newest other ones that are installed and supported by the SDK."""
    found: dict[tuple[int, int], str] = {}
    for path in glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")):
        major, minor = path.split("/versions/")[1].split(".")[:2]
        if (int(major), int(minor)) >= (3, 8):
            found[int(major), int(minor)] = path
    ordered = [found[version] for version in sorted(found)]
    return [sys._base_executable, *ordered[:1], *ordered[-1:]]  # type: ignore[attr-defined]


class Scripts:
    """Run scripts in bare interpreters that find only the small SDK package on their path."""

    def __init__(self, tmp_path: Path) -> None:
        self.small = tmp_path / "small"
        self.workdir = tmp_path / "work"
        self.run_dir = tmp_path / "run_1"
        self.workdir.mkdir()
        self.run_dir.mkdir()
        write_small_package(self.small)

    def environment(self, *, inside: bool) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR")}
        run = {"LABWRIGHT_RUN_DIR": str(self.run_dir), "LABWRIGHT_RUN_ID": "run_1", "LABWRIGHT_ATTEMPT": "2"}
        return {**kept, "PYTHONPATH": str(self.small), **(run if inside else {})}

    def start(self, code: str, *, inside: bool = True, python: str = "", **variables: str) -> subprocess.Popen[str]:
        script = self.workdir / "train.py"
        script.write_text(code)
        return end_with_test(
            subprocess.Popen(
                [python or interpreters()[0], "-s", "-W", "error", str(script)],
                env={**self.environment(inside=inside), **variables},
                cwd=self.workdir,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )

    def run(self, code: str, *, code_expected: int = 0, **options: Any) -> tuple[str, str]:
        process = self.start(code, **options)
        out, err = process.communicate(timeout=60)
        assert process.returncode == code_expected, err
        return out, err

    def files(self, folder: Path | None = None) -> list[list[dict[str, Any]]]:
        """Return the lines of each file, headers included. Every line must be complete."""
        paths = sorted((folder or self.run_dir).glob("metrics/sdk-*.jsonl"))
        contents = [path.read_text() for path in paths]
        assert all(content.endswith("\n") for content in contents)
        return [[json.loads(line) for line in content.splitlines()] for content in contents]

    def points(self, folder: Path | None = None) -> list[dict[str, Any]]:
        return [line for lines in self.files(folder) for line in lines if "m" in line]

    def offline(self) -> Path:
        (folder,) = (self.workdir / ".labwright-offline").glob("2*")
        return folder
