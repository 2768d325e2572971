"""Requests to Slurm follow its version and configuration, as versions from 21.08 to 25.11 print them."""

from __future__ import annotations

from pathlib import Path

import pytest

from labwright.compute.slurm.commands import SlurmCommands
from labwright.compute.slurm.probe import Dialect, DialectProbe, probe_dialect, read_version
from labwright.compute.slurm.resources import SlurmDefaults
from labwright.compute.slurm.submit import JobBatch, send
from labwright.domain.run import Run
from labwright.paths import ProjectPaths
from labwright.sidecar.slurm import environment_on_node

CONFIGURATION = """Configuration data as of 2026-11-16T06:00:00
AccountingStorageBackupHost = (null)
AccountingStorageType   = {accounts}
MaxArraySize            = {size}
SLURM_VERSION           = {version}
"""


def slurm(folder: Path, version: str, accounts: str = "(null)", size: str = "1001") -> SlurmCommands:
    """A Slurm that records the script that sbatch was given."""
    configuration = CONFIGURATION.format(accounts=accounts, size=size, version=version)
    scripts = {
        "scontrol": f"cat <<'END'\n{configuration}END",
        "sinfo": f"echo '{version}'",
        "sbatch": f'cat > {folder}/script; echo "$@" > {folder}/arguments; echo 7',
    }
    for program, script in scripts.items():
        (folder / program).write_text(f"#!/bin/sh\n{script}\n")
        (folder / program).chmod(0o755)
    return SlurmCommands({"PATH": f"{folder}:/usr/bin:/bin"})


def run(number: int = 1) -> Run:
    return Run(
        id=f"run-{number:010d}",
        name="x",
        command="srun train",
        workdir="/w",
        created_at="t",
        created_by="me",
        run_dir=f"/runs/{number}",
    )


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("slurm-wlm 22.05.8", (22, 5)),
        ("slurm 20.11.9", (20, 11)),
        ("slurm 23.11.10-Bull.1.0", (23, 11)),
        ("slurm 25.05.0-0rc1", (25, 5)),
        ("slurm-wlm (development)", None),
    ],
)
def test_version_is_read_as_distributions_and_vendors_print_it(printed: str, version: tuple[int, int] | None) -> None:
    assert read_version(printed) == version


@pytest.mark.parametrize(
    ("version", "is_reminded"),
    [
        ("slurm 21.08.8", False),
        ("slurm-wlm 22.05.8", True),
        ("slurm 23.02.7", True),
        ("slurm 23.11.4", False),
        ("slurm 24.05.2", False),
        ("slurm 25.11.0", False),
    ],
)
def test_srun_cores_are_set_only_for_versions_that_forget_them(tmp_path: Path, version: str, is_reminded: bool) -> None:
    commands = slurm(tmp_path, version)
    batch = JobBatch(name=run().id, runs=(run(),), options=())
    sent = send(batch, commands, ProjectPaths(tmp_path), SlurmDefaults(), DialectProbe(commands).get())
    assert sent == {run().id: "7"}
    assert ("export SRUN_CPUS_PER_TASK" in (tmp_path / "script").read_text()) is is_reminded


def test_runs_own_srun_variable_wins() -> None:
    inherited = {"SLURM_CPUS_PER_TASK": "4", "SRUN_CPUS_PER_TASK": "4"}
    assert environment_on_node({}, inherited)["SRUN_CPUS_PER_TASK"] == "4"
    assert environment_on_node({"SRUN_CPUS_PER_TASK": "2"}, inherited)["SRUN_CPUS_PER_TASK"] == "2"
    assert "SRUN_CPUS_PER_TASK" not in environment_on_node({}, {"SLURM_CPUS_PER_TASK": "4"})


@pytest.mark.parametrize(
    ("accounts", "keeps"),
    [("accounting_storage/slurmdbd", True), ("accounting_storage/none", False), ("(null)", False)],
)
def test_array_size_and_accounting_come_from_the_configuration(tmp_path: Path, accounts: str, keeps: bool) -> None:
    found = probe_dialect(slurm(tmp_path, "slurm 24.05.2", accounts, "77"))
    assert found == Dialect(version=(24, 5), max_array_size=77, keeps_accounts=keeps)


@pytest.mark.parametrize(
    ("size", "parameters", "allowed"),
    [
        ("0", "(null)", 1),
        ("1001", "bf_interval=30,max_array_tasks=200,defer", 200),
        ("100", "max_array_tasks=200", 100),
    ],
)
def test_array_is_as_large_as_the_site_allows_or_one_run_if_arrays_are_off(
    tmp_path: Path, size: str, parameters: str, allowed: int
) -> None:
    found = probe_dialect(slurm(tmp_path, "slurm 24.11.5", size=f"{size}\nSchedulerParameters     = {parameters}"))
    assert found.max_array_size == allowed


def test_default_dialect_is_used_until_slurm_responds(tmp_path: Path) -> None:
    probe = DialectProbe(SlurmCommands({"PATH": str(tmp_path)}))
    assert probe.get() == Dialect() == Dialect(version=None, max_array_size=1001, keeps_accounts=False)
    slurm(tmp_path, "slurm 24.05.2", size="5")
    probe._commands = SlurmCommands({"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert probe.get().max_array_size == 5


def test_percent_sign_in_a_folder_name_is_kept(tmp_path: Path) -> None:
    commands = slurm(tmp_path, "slurm 24.05.2")
    paths = ProjectPaths(tmp_path / "50%j")
    send(JobBatch(name="array-1", runs=(run(1), run(2)), options=()), commands, paths, SlurmDefaults(), Dialect())
    assert "/50%%j/.labwright/arrays/array-1/%a.log " in (tmp_path / "arguments").read_text()
