"""`labwright sim slurm`: a private cluster that leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from labwright.domain.errors import Invalid
from labwright.processes import all_pids, start_time
from labwright.sim.slurm import SlurmSize, simulated_slurm
from labwright.sim.slurm_config import Layout
from tests.support.waiting import wait_until


def labwright(*arguments: str) -> list[str]:
    code = "import sys; from labwright.cli.main import main; sys.argv[0] = 'labwright'; main()"
    return [sys.executable, "-c", code, *arguments]


def test_cgroup_option_is_set_only_for_a_slurm_that_knows_it(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.write_cgroup((23, 11))
    assert not layout.cgroup.exists()
    layout.write_cgroup((24, 11))
    assert layout.cgroup.read_text() == "CgroupPlugin=disabled\n"


def processes_with(mark: str) -> list[int]:
    """Return live processes that name the folder in their arguments or environment, or work in it."""
    return [pid for pid in all_pids() if _names(pid, mark) and start_time(pid) is not None and pid != os.getpid()]


def _names(pid: int, mark: str) -> bool:
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
        place = os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return False
    return mark.encode() in text or mark in place


def test_command_sees_the_cluster_and_its_exit_code_is_returned() -> None:
    script = (
        "sinfo -h -N -p main -o '%N %G'; srun --gres=gpu:1 bash -c 'echo on $SLURMD_NODENAME'; echo $SLURM_CONF; exit 7"
    )
    done = subprocess.run(
        labwright("sim", "slurm", "--nodes", "2", "--gpus", "1", "--", "bash", "-c", script),
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    *nodes, where, conf = done.stdout.splitlines()
    assert nodes == ["node1 gpu:sim:1", "node2 gpu:sim:1"], done.stderr
    assert where == "on node1"
    assert done.returncode == 7
    assert not Path(conf).parent.exists()
    assert not processes_with(str(Path(conf).parent))


def test_srun_works_on_a_host_named_as_debian_does(tmp_path: Path) -> None:
    """There the host name resolves to 127.0.1.1, and connections to that address come from 127.0.0.1."""
    hosts, told = tmp_path / "hosts", tmp_path / "told"
    hosts.write_text(f"127.0.0.1\tlocalhost\n127.0.1.1\t{socket.gethostname()}\n")
    caps = ["--cap-add", "ALL"] if os.geteuid() == 0 else []  # root's slurmd switches to the job's user
    machine = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(hosts), "/etc/hosts", *caps]
    script = f"srun echo alone; sbatch --wait --chdir=/ --output={told} --wrap='srun echo in a job'; cat {told}"
    done = subprocess.run(
        [*machine, *labwright("sim", "slurm", "--nodes", "1", "--", "bash", "-c", script)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    alone, _submitted, in_a_job = done.stdout.splitlines()
    assert (alone, in_a_job) == ("alone", "in a job"), done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_however_it_ends(number: signal.Signals) -> None:
    simulation = subprocess.Popen(labwright("sim", "slurm", "--nodes", "1"), stdout=subprocess.PIPE, text=True)
    assert simulation.stdout is not None
    with simulation.stdout as said:
        line = said.readline()
        assert line.startswith("export SLURM_CONF=")
        conf = line.partition("=")[2].strip()
        env = {**os.environ, "SLURM_CONF": conf}
        subprocess.run(
            ["sbatch", "--chdir=/", "--output=/dev/null", "--wrap=sleep 1000"], env=env, check=True, stdout=-3
        )
        listing = ["squeue", "-h", "-t", "R"]
        wait_until(lambda: subprocess.run(listing, env=env, capture_output=True).stdout, "the job to run")
        simulation.send_signal(number)
        simulation.wait(timeout=30)
    folder = str(Path(conf).parent)
    wait_until(lambda: not processes_with(folder), "everything to end")
    wait_until(lambda: not os.path.exists(folder), "the folder to go")


def test_without_slurm_it_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys, labwright.sim.slurm as sim; sim._DAEMON_FOLDERS = ''; from labwright.cli.main import main;"
        "sys.argv[0] = 'labwright'; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "sim", "slurm", "--", "true"],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "munge" in done.stderr and "slurm-wlm" in done.stderr and "apt-get install" in done.stderr


def test_user_without_a_name_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Many containers have such a user."""
    monkeypatch.setattr("os.getuid", lambda: 3_999_999)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(Invalid, match="none for user id 3999999"), simulated_slurm(SlurmSize(nodes=1, gpus=0)):
        pass
    assert list(tmp_path.iterdir()) == []
