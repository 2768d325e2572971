"""Packages built from a clone can be installed elsewhere and work there without the clone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_CODE = {".js", ".css", ".html", ".svg", ".sql", ".md", ".txt", ".c", ".sh", ".typed"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, check=True, capture_output=True
    )
    return folder


def tracked(*, under: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", "-z", under], cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in listed.stdout.split("\0") if name}


def test_wheel_has_the_code_and_the_files_it_reads(built: Path) -> None:
    (wheel,) = built.glob("labwright-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    wanted = {name.removeprefix("src/") for name in tracked(under="src/labwright")}
    assert wanted - names == set()
    assert {Path(name).suffix for name in names} >= NOT_CODE
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]


def test_source_archive_can_be_tested_and_built_from(built: Path) -> None:
    (archive,) = built.glob("labwright-*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
    assert tracked(under=".") - names <= {name for name in tracked(under=".") if name.startswith(".")}


def test_installed_wheel_serves_runs_and_shows_its_version(built: Path, tmp_path: Path) -> None:
    """It uses the dependencies of the tests; `make test-all` installs them too."""
    (wheel,) = built.glob("labwright-*.whl")
    place = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", place, wheel], check=True, capture_output=True)
    serves_and_runs([str(place / "bin" / "labwright")], place, tmp_path, PYTHONPATH=str(place))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_empty_environment_and_pip_are_enough(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("labwright-*.whl")
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pins = ROOT / "requirements" / "runtime.txt"
    subprocess.run([place / "bin/pip", "install", "--quiet", "--require-hashes", "-r", pins], check=True)
    subprocess.run([place / "bin/pip", "install", "--quiet", "--no-deps", wheel], check=True)
    subprocess.run([place / "bin/pip", "check"], check=True)
    serves_and_runs([str(place / "bin" / "labwright")], place, tmp_path)


def serves_and_runs(labwright: list[str], place: Path, tmp_path: Path, **environment: str) -> None:
    project = tmp_path / "a project"
    project.mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def call(*arguments: str) -> str:
        done = subprocess.run(
            [*labwright, *arguments],
            cwd=project,
            env={**inherited, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert call("--version").startswith("labwright 0.")
    try:
        call("up", "-d", "--no-browser", "--port", "0")
        pid = json.loads((project / ".labwright/server.json").read_text())["pid"]
        assert str(place) in how_started(pid)
        assert "agent-mode" in call("skills", "list")
        assert json.loads(call("run", "--wait", "--json", "--", "echo", "hello"))["exit_code"] == 0
    finally:
        call("down")


def how_started(pid: int) -> str:
    """Return the command and the environment of a process."""
    return "".join(Path(f"/proc/{pid}/{name}").read_text() for name in ("cmdline", "environ"))
