"""The environment of a project: an existing one is used, a missing one is created, nothing is executed."""

# ruff: noqa: E501 - small projects, written as their authors would
from __future__ import annotations

from pathlib import Path

import pytest

from labwright.planning.scan import Environment, run_command, scan_project
from tests.support.scanning import write

TRAIN = "import argparse, numpy\np = argparse.ArgumentParser()\np.add_argument('--lr')\np.parse_args()\n"
BOMB = "#!/bin/sh\ntouch {}/executed\n"


def tools(folder: Path, *names: str) -> str:
    """Return a PATH with only these commands, each of which leaves a mark if it is run."""
    bin_ = folder.parent / "bin"
    bin_.mkdir(exist_ok=True)
    for name in names:
        (bin_ / name).write_text(BOMB.format(folder.parent))
        (bin_ / name).chmod(0o755)
    return str(bin_)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path / "project", {"train.py": TRAIN})


def environment(project: Path, *there: str, **variables: str) -> Environment:
    environ = {"PATH": tools(project, *there), "HOME": str(project.parent / "home"), **variables}
    found = scan_project(project, environ=environ).environment
    assert not (project.parent / "executed").exists()
    return found


def make_venv(folder: Path, *packages: str, version: str = "3.12.1", line: str = "version") -> None:
    write(
        folder,
        {"pyvenv.cfg": f"home = /usr/bin\n{line} = {version}\n", "bin/activate": "", "bin/python": BOMB.format(folder)},
    )
    (folder / "bin/python").chmod(0o755)
    for package in packages:
        (folder / "lib/python3.12/site-packages" / package).mkdir(parents=True)


@pytest.mark.parametrize("name", [".venv", "venv", "env", "my env"])
def test_venv_in_the_project_is_activated(project: Path, name: str) -> None:
    make_venv(project / name, "numpy", line="version_info" if name == "venv" else "version")
    found = environment(project, "uv", "python3")
    assert found.chosen and (found.chosen.kind, found.chosen.version) == ("venv", "3.12.1")
    quoted = f"'{name}'" if " " in name else name
    assert found.activation == f"source {quoted}/bin/activate && "
    assert (found.create, found.notes, found.word) == ("", (), "venv")


def test_venv_behind_a_link_is_the_projects_own(project: Path) -> None:
    """Several projects may share it: it is used, and not replaced."""
    make_venv(project.parent / "shared", "numpy")
    (project / ".venv").symlink_to(project.parent / "shared")
    found = environment(project, "uv", "python3")
    assert found.chosen and found.chosen.activation == "source .venv/bin/activate && " and not found.create


def test_packages_missing_in_a_venv_are_reported(project: Path) -> None:
    make_venv(project / ".venv")
    assert "lacks numpy" in environment(project).notes[0]


def test_conda_environment_named_by_the_project_is_found(project: Path) -> None:
    write(
        project,
        {"environment.yml": "name: nets\ndependencies:\n  - python=3.10\n  - numpy>=1\n  - pip:\n    - einops\n"},
    )
    write(project.parent / "home/miniconda3/envs/nets/conda-meta", {"python-3.10.14-h1_0.json": "{}"})
    found = environment(project, "uv", "python3")
    assert found.chosen and (found.chosen.kind, found.chosen.version) == ("conda", "3.10.14")
    assert found.activation == "conda run --no-capture-output -n nets "
    assert (found.files[0].packages, found.files[0].requires_python) == (("numpy", "einops"), "=3.10")


def test_micromamba_environment_is_found_by_its_root_prefix(project: Path) -> None:
    write(project, {"environment.yml": "name: nets\n"})
    write(project.parent / "micromamba/envs/nets/conda-meta", {"python-3.9.1-0.json": "{}"})
    found = environment(project, MAMBA_ROOT_PREFIX=str(project.parent / "micromamba"))
    assert (found.activation, found.word) == ("micromamba run -n nets ", "conda")


def test_active_venv_counts_only_if_it_has_the_imported_packages(project: Path) -> None:
    make_venv(project.parent / "other")
    assert environment(project, "uv", VIRTUAL_ENV=str(project.parent / "other")).chosen is None
    make_venv(project.parent / "third", "numpy")
    found = environment(project, "uv", VIRTUAL_ENV=str(project.parent / "third"))
    assert found.activation == f"source {project.parent}/third/bin/activate && "


def whole(create: str) -> str:
    """Return the command with its protection against kills."""
    begin = "umask 022 && { [ ! -e .venv.unfinished ] || rm -rf .venv; } && touch .venv.unfinished"
    return f"{begin} && {create} && mv .venv.unfinished .venv/labwright.new"


def test_half_made_environment_does_not_count(project: Path) -> None:
    make_venv(project / ".venv", "numpy")
    write(project, {".venv/lib/tool.py": "", ".venv.unfinished": ""})
    found = scan_project(project, environ={"PATH": tools(project, "uv")})
    assert found.environment.chosen is None and "uv venv .venv" in found.environment.create
    assert ".venv/lib/tool.py" not in [entry.path for entry in found.entry_points]


@pytest.mark.parametrize(
    ("files", "there", "create"),
    [
        ({"requirements.txt": "numpy\n"}, ["uv", "conda", "python3"],
         "uv venv .venv && source .venv/bin/activate && uv pip install -r requirements.txt"),
        ({"requirements.txt": "numpy\n"}, ["python3"],
         "python3 -m venv .venv && source .venv/bin/activate && python -m pip install -r requirements.txt"),
        ({"pyproject.toml": "[project]\nname = 'x'\n", "uv.lock": ""}, ["uv"], "uv sync"),
        ({"pyproject.toml": "[project]\nname = 'x'\ndependencies = ['numpy']\n"}, ["uv"],
         "uv venv .venv && source .venv/bin/activate && uv pip install -e ."),
        ({"pyproject.toml": "[tool.ruff]\n", "requirements.txt": "numpy"}, ["uv"],
         "uv venv .venv && source .venv/bin/activate && uv pip install -r requirements.txt"),
        ({"setup.py": "from setuptools import setup\nsetup(install_requires=['numpy'])\n"}, ["python3"],
         "python3 -m venv .venv && source .venv/bin/activate && python -m pip install -e ."),
        ({"environment.yml": "name: nets\n"}, ["uv", "micromamba", "conda"], "micromamba create -y -p ./.venv -f environment.yml"),
        ({"environment.yml": "name: nets\n"}, ["uv", "conda"], "conda env create -p ./.venv -f environment.yml"),
        ({}, ["uv"], "uv venv .venv && source .venv/bin/activate && uv pip install numpy"),
    ],
)  # fmt: skip
def test_without_an_environment_there_are_commands_to_make_one(
    project: Path, files: dict[str, str], there: list[str], create: str
) -> None:
    write(project, files)
    found = environment(project, *there)
    assert found.chosen is None
    assert found.create == whole(create)
    tool = create.split()[0]
    held = " --no-capture-output" if tool == "conda" else ""
    by_conda = f"{tool} run{held} -p ./.venv "
    assert found.activation == (by_conda if "environment.yml" in files else "source .venv/bin/activate && ")


def test_without_uv_conda_goes_before_pip(project: Path) -> None:
    write(project, {"requirements.txt": "numpy\n"})
    found = environment(project, "conda", "python3")
    run = "conda run --no-capture-output -p ./.venv "
    assert found.create == whole(
        f"conda create -y -p ./.venv python pip && {run}python -m pip install -r requirements.txt"
    )
    assert (found.activation, found.word) == (run, "conda")


def test_standard_library_script_needs_no_environment(project: Path) -> None:
    write(project, {"train.py": TRAIN.replace(", numpy", "")})
    found = environment(project, "python3", "uv")
    assert found.chosen and found.chosen.kind == "system"
    assert found.activation == ""


def test_imports_of_a_script_of_unknown_kind_count_if_there_is_no_other(project: Path) -> None:
    (project / "train.py").unlink()
    script = "import numpy, sys\nif __name__ == '__main__':\n    print('error:', numpy.abs(float(sys.argv[1])))\n"
    write(project, {"walk.py": script})
    found = environment(project, "python3", "uv")
    assert found.chosen is None and "numpy" in found.create


def test_run_command_combines_all_parts(project: Path) -> None:
    make_venv(project / ".venv", "numpy")
    scan = scan_project(project, environ={"PATH": ""})
    command = run_command(scan.entry_points[0], scan.environment, {"lr": 1e-05})
    assert command == "source .venv/bin/activate && python train.py --lr 1e-05"


@pytest.mark.parametrize("name", ["pyproject.toml", "setup.cfg", "environment.yml", "setup.py", "Pipfile"])
def test_broken_file_does_not_stop_the_scan(project: Path, name: str) -> None:
    write(project, {name: "]][[ = : {{ \x07 %%\n\t- a\n"})
    scan = scan_project(project, environ={"PATH": ""})
    assert scan.entry_points
    assert name in {skipped.path for skipped in scan.skipped}


def test_active_venv_that_can_run_one_script_is_used_whatever_other_scripts_import(project: Path) -> None:
    write(project, {"train_other.py": TRAIN.replace("numpy", "numpy, gymnasium"), "requirements.txt": "gymnasium\n"})
    make_venv(project.parent / "active", "numpy")
    found = environment(project, "uv", VIRTUAL_ENV=str(project.parent / "active"))
    assert found.chosen and found.chosen.name == "active" and not found.create
    assert [note.partition(" lacks ")[2] for note in found.notes] == ["gymnasium, which train_other.py imports"]


def test_imports_inside_if_try_and_functions_are_optional_also_in_project_modules(project: Path) -> None:
    ours = "import torch\nif False:\n    import wandb\ndef plot():\n    import matplotlib\n"
    write(
        project,
        {"train.py": f"import ours\ntry:\n    import apex\nexcept ImportError:\n    pass\n{TRAIN}", "ours.py": ours},
    )
    make_venv(project.parent / "active", "numpy", "torch")
    scan = scan_project(project, environ={"PATH": "", "VIRTUAL_ENV": str(project.parent / "active")})
    assert scan.entry_points[0].imports == ("numpy", "torch")
    assert scan.entry_points[0].optional_imports == ("apex", "matplotlib", "wandb")
    assert scan.environment.chosen and scan.environment.chosen.missing == ()


@pytest.mark.parametrize(
    ("requires", "fits"),
    [(">=3.8", True), (">=3.8,<3.11", False), ("^3.9", True), ("==3.12.*", True), ("~=3.12", True), (">3.12", False), (">=3.13", False)],
)  # fmt: skip
def test_python_range_of_the_project_is_respected(project: Path, requires: str, fits: bool) -> None:
    write(project, {"pyproject.toml": f"[project]\nname = 'x'\nrequires-python = '{requires}'\n"})
    make_venv(project.parent / "active", "numpy", version="3.12")
    found = environment(project, "uv", VIRTUAL_ENV=str(project.parent / "active"))
    assert (found.chosen is not None) == fits
