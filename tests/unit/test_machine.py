"""In containers: limits of control groups, v1 and v2, count as the machine's own, and a user may have no name."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from labwright.compute.cluster.machine import usable_cores, usable_memory_mb
from labwright.compute.snapshot.git import find_repository
from labwright.processes import user_name

GROUP = "user.slice/job"


def make(root: Path, own: str) -> Path:
    """Make a file tree as the kernel shows it, with the groups of this process."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(own)
    return root


def put(root: Path, path: str, text: str) -> None:
    target = root / "sys/fs/cgroup" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


@pytest.fixture
def many_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(32)))


@pytest.mark.usefixtures("many_cores")
def test_without_limits_the_machine_counts(tmp_path: Path) -> None:
    root = make(tmp_path, "0::/\n")
    assert usable_cores(root) == 32
    assert usable_memory_mb(root) == psutil.virtual_memory().total >> 20


@pytest.mark.usefixtures("many_cores")
@pytest.mark.parametrize(("quota", "cores"), [("400000 100000", 4), ("max 100000", 32), ("50000 100000", 1)])
def test_cgroup_v2_quota_counts(tmp_path: Path, quota: str, cores: int) -> None:
    root = make(tmp_path, f"0::/{GROUP}\n")
    put(root, f"{GROUP}/cpu.max", f"{quota}\n")
    assert usable_cores(root) == cores


@pytest.mark.usefixtures("many_cores")
def test_limit_of_a_parent_group_counts(tmp_path: Path) -> None:
    root = make(tmp_path, f"0::/{GROUP}\n")
    put(root, "user.slice/cpu.max", "200000 100000\n")
    put(root, "user.slice/memory.max", f"{300 << 20}\n")
    put(root, f"{GROUP}/memory.max", "max\n")
    assert (usable_cores(root), usable_memory_mb(root)) == (2, 300)


@pytest.mark.usefixtures("many_cores")
def test_cgroup_v1_limits_count(tmp_path: Path) -> None:
    root = make(tmp_path, "4:memory:/box\n2:cpu,cpuacct:/box\n0::/\n")
    put(root, "cpu/box/cpu.cfs_quota_us", "300000\n")
    put(root, "cpu/box/cpu.cfs_period_us", "100000\n")
    put(root, "memory/box/memory.limit_in_bytes", f"{200 << 20}\n")
    assert (usable_cores(root), usable_memory_mb(root)) == (3, 200)


@pytest.mark.usefixtures("many_cores")
def test_unlimited_cgroup_v1_is_no_limit(tmp_path: Path) -> None:
    root = make(tmp_path, "4:memory:/\n2:cpu,cpuacct:/\n")
    put(root, "cpu/cpu.cfs_quota_us", "-1\n")
    put(root, "cpu/cpu.cfs_period_us", "100000\n")
    put(root, "memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert usable_cores(root) == 32
    assert usable_memory_mb(root) == psutil.virtual_memory().total >> 20


def test_cpuset_counts_by_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3, 5})
    assert usable_cores(make(tmp_path, "0::/\n")) == 2


def test_user_without_a_name_is_shown_by_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a container started with an arbitrary uid."""

    def nobody(_uid: int) -> NoReturn:
        raise KeyError

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME", "HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert user_name() == str(os.getuid())
    (tmp_path / ".git").mkdir()
    assert find_repository(str(tmp_path)).top == str(tmp_path)
