"""What a run requests from Slurm: its fields, the srun in its command, the defaults; and what is refused."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from labwright.compute.slurm.resources import (
    SlurmDefaults,
    check_extra,
    gpus_held,
    load_defaults,
    sbatch_options,
    signal_before_limit,
    warning_of,
)
from labwright.compute.slurm.srun import refuse_nested, srun_sizes
from labwright.compute.slurm.submit import batches_of
from labwright.domain.cluster import Cluster, ClusterType
from labwright.domain.errors import Invalid
from labwright.domain.run import Run
from labwright.paths import RunPaths
from labwright.services.runs.new_run import NewRun, plan_gpus
from labwright.sidecar.slurm import attempt_of, environment_on_node, facts_of

NO_DEFAULTS = SlurmDefaults()


def run(number: int = 0, **facts: Any) -> Run:
    base = {"name": "x", "command": "true", "workdir": "/w", "created_at": "t", "created_by": "me"}
    return Run(**{"id": f"run-{number:010d}", "run_dir": f"/runs/{number}", **base, **facts})


def options(defaults: SlurmDefaults = NO_DEFAULTS, **facts: Any) -> set[str]:
    return set(sbatch_options(run(**facts), defaults))


def test_fields_of_a_run_become_options() -> None:
    asked = {"partition": "gpu", "account": "lab", "qos": "high", "constraint": "a100", "extra": ["--exclusive"]}
    assert options(gpus=2, cpus=4, memory_mb=512, time_limit_seconds=61, slurm=asked) == {
        "--gres=gpu:2", "--cpus-per-task=4", "--mem=512M", "--time=2", "--ntasks=1", "--partition=gpu", "--account=lab",
        "--qos=high", "--constraint=a100", "--exclusive",
    }  # fmt: skip


def test_several_nodes_have_one_task_each() -> None:
    assert options(nodes=2, gpus=1) == {"--nodes=2", "--ntasks-per-node=1", "--gres=gpu:1"}


@pytest.mark.parametrize(
    ("facts", "held"),
    [
        ({}, 0),
        ({"gpus": 2}, 2),
        ({"gpus": 2, "nodes": 3}, 6),
        ({"slurm": {"gres": "gpu:a100:2"}}, 2),
        ({"slurm": {"gres": "gpu"}}, 1),
        ({"slurm": {"gres": "shard:8,gpu:a100:2,gpu:v100"}}, 3),
        ({"gpus": 1, "slurm": {"gres": "gpu:4"}}, 4),
        ({"gpus": 1, "slurm": {"extra": ["-N2", "--gres=gpu:4"]}}, 8),
        ({"slurm": {"extra": ["--gpus=a100:3"]}}, 3),
        ({"slurm": {"extra": ["--hold", "-G3"]}}, 3),
        ({"command": "srun -N2 -n8 --gres=gpu:4 python train.py"}, 8),
        ({"command": "srun -n8 --gpus-per-task=1 python train.py"}, 8),
        ({"command": "srun -N1-2 --ntasks-per-node=2 --gpus-per-task=1 python train.py"}, 4),
        ({"command": "srun --gpus-per-node=a100:2 python train.py", "nodes": 2}, 4),
    ],
)
def test_cards_of_a_job_are_counted_however_they_were_requested(facts: dict[str, Any], held: int) -> None:
    assert gpus_held(run(**facts), NO_DEFAULTS) == held


def test_cards_from_project_defaults_are_counted() -> None:
    assert gpus_held(run(nodes=2), SlurmDefaults(gres="gpu:1")) == 2


def test_explicit_gres_wins_over_a_number_of_gpus() -> None:
    assert "--gres=gpu:a100:3" in options(gpus=1, slurm={"gres": "gpu:a100:3"})


def test_srun_overrides_defaults_and_the_run_overrides_both() -> None:
    defaults = SlurmDefaults(partition="main", account="lab", gres="gpu:1", extra=("--nice=5",))
    command = "srun -p debug -n4 --gpus-per-task=1 python train.py"
    assert options(defaults, command=command) == {
        "--partition=debug", "--account=lab", "--ntasks=4", "--gpus-per-task=1", "--nice=5",
    }  # fmt: skip
    assert options(defaults, command=command, gpus=2, slurm={"partition": "big"}) == {
        "--partition=big", "--account=lab", "--ntasks=4", "--gres=gpu:2", "--nice=5",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("command", "sizes"),
    [
        (
            "srun -N2 -n 8 --gres=gpu:2 --mem=4G python t.py -n 9",
            {"nodes": "2", "ntasks": "8", "gres": "gpu:2", "mem": "4G"},
        ),
        ("cd x && FOO=1 srun --ntasks 2 ./a; srun -n4 ./b", {"ntasks": "4"}),
        ("/usr/bin/srun -c 3 --pty bash", {"cpus-per-task": "3"}),
        ("srun \\\n  --nodes=2 \\\n  ./a", {"nodes": "2"}),
        ("echo srun -n 4", {}),
        ("python train.py # srun -n 9", {}),
        ("srun python -n 4", {}),
        ("echo 'an open quote\nsrun -n 2 ./a", {"ntasks": "2"}),
        ("bash -c 'cd x && srun -n 3 ./a'", {"ntasks": "3"}),
        ("bash -euo pipefail -c 'cd x\nsrun -n 3 ./a'", {"ntasks": "3"}),
        ("sh -lc \"bash -c 'srun -n 3 ./a'\"", {"ntasks": "3"}),
        ("bash <<'EOF'\nsrun -n 3 ./a\nEOF\necho done", {"ntasks": "3"}),
        ("cat > job.sh <<EOF\nsrun -n 3 ./a\nEOF\nsrun -n 2 ./b", {"ntasks": "2"}),
        ("echo 'two lines\nsrun -n 9' && srun -n 2 ./b", {"ntasks": "2"}),
    ],
)
def test_srun_in_the_command_is_respected(command: str, sizes: dict[str, str]) -> None:
    assert srun_sizes(command) == sizes


@pytest.mark.parametrize(
    "command",
    [
        "sbatch x.sh",
        "cd a; /usr/bin/sbatch --wrap x",
        "id=$(sbatch --parsable a)",
        "if true; then sbatch x; fi",
        "A=1 exec sbatch x",
        "salloc -N1 bash",
        "bash -c 'sbatch x.sh'",
        'bash -lc "cd a && sbatch x.sh"',
        "eval 'sbatch x.sh'",
        "bash -s <<EOF\nsbatch x.sh\nEOF",
    ],
)
def test_nested_sbatch_is_refused(command: str) -> None:
    with pytest.raises(Invalid) as caught:
        refuse_nested(command)
    assert "slurm" in caught.value.hint


@pytest.mark.parametrize(
    "command", ["sh jobs/go.sh", "./jobs/go.sh 1 2", "source jobs/go.sh", "bash -x jobs/go.sh", "bash outer.sh"]
)
def test_sbatch_in_a_project_script_is_refused_by_the_scripts_name(tmp_path: Path, command: str) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "go.sh").write_text("#!/bin/bash\n#SBATCH -N1\nfor i in 1 2; do\n  sbatch x.sh\ndone\n")
    (tmp_path / "outer.sh").write_text("srun -n 4 true\nbash jobs/go.sh\n")
    with pytest.raises(Invalid) as caught:
        refuse_nested(command, tmp_path)
    assert "jobs/go.sh calls sbatch" in caught.value.message
    assert srun_sizes("bash outer.sh", tmp_path) == {"ntasks": "4"}


def test_unreadable_or_recursive_scripts_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "again.sh").write_text("bash again.sh\n")
    (tmp_path / "train.py").write_text("sbatch = 1\n")
    for command in ("bash again.sh", "bash missing.sh", "bash .", "bash", "./train.py", "python train.py", "bash -c"):
        refuse_nested(command, tmp_path)


@pytest.mark.parametrize(
    "command", ["echo sbatch", "python sbatch.py", "./sbatch_all.sh", "grep 'sbatch x' log", "cat <<EOF\nsbatch x\nEOF"]
)
def test_word_sbatch_alone_is_not_refused(command: str) -> None:
    refuse_nested(command)


@pytest.mark.parametrize(
    "item", ["x.sh", "", "--job-name=x", "-Jx", "--output=x", "-o/dev/null", "--array=1-3", "--export=ALL", "--wrap=x",
             "--signal=KILL@10", "--signal=NOSUCH@1", "--signal", "-p debug"]
)  # fmt: skip
def test_invalid_and_reserved_options_are_refused(item: str) -> None:
    with pytest.raises(Invalid):
        check_extra([item])


@pytest.mark.parametrize(
    ("item", "own", "instead"),
    [
        ("--wra=id", "--wrap", "`command`"),
        ("--job-nam=x", "--job-name", "`name`"),
        ("--outpu=/dev/null", "--output", "labwright logs"),
        ("--arr=0-3", "--array", "sweep"),
        ("--test-onl", "--test-only", "sbatch"),
        ("--ui=0", "--uid", "server's own user"),
        ("--gid=0", "--gid", "server's own user"),
        ("-D/tmp", "--chdir", "`workdir`"),
        ("-Mother", "--clusters", "SLURM_CLUSTERS"),
    ],
)
def test_reserved_options_are_refused_in_short_form_with_a_hint(item: str, own: str, instead: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_extra([item])
    assert own in caught.value.message and item in caught.value.message
    assert instead in caught.value.hint


@pytest.mark.parametrize("item", ["-HJmine", "-Qo/dev/null", "--signa=KILL@10", "--si=KILL@10"])
def test_reserved_options_cannot_hide_behind_another_option(item: str) -> None:
    with pytest.raises(Invalid):
        check_extra([item])


def test_srun_passes_on_sizes_and_no_reserved_options() -> None:
    assert srun_sizes("srun --job-nam=x --outpu=y --uid=0 --arr=0-3 -Jz -n2 ./a") == {"ntasks": "2"}


def test_other_options_are_accepted() -> None:
    check_extra(["--wait-all-nodes=1", "--part=debug", "-H", "-vv", "-k", "--hold"])
    check_extra(["--exclusive", "--mail-type=END", "-pdebug", "--comment=two words", "--no-requeue"])


def test_warning_signal_goes_to_the_sidecar_which_knows_it() -> None:
    assert "--signal=B:USR1@120" in options(slurm={"extra": ["--signal=USR1@120"]})
    assert signal_before_limit(["--nice", "--signal=B:SIGUSR2@60"]) == signal.SIGUSR2


@pytest.mark.parametrize(
    ("limit", "asked", "after", "told"),
    [(70, "USR1@15", 55, 5), (60.5, "USR1", 0.5, 60), (120, "USR1@15", 105, 0), (7200, "USR1@300", 6900, 240)],
)
def test_warning_comes_before_the_limit_to_the_second(limit: float, asked: str, after: float, told: int) -> None:
    """The sidecar sends it. Slurm rounds the limit up to minutes and must not be earlier."""
    warned = run(time_limit_seconds=limit, slurm={"extra": [f"--signal={asked}"]})
    assert warning_of(warned, NO_DEFAULTS) == {"warning_signal": signal.SIGUSR1, "warning_after_seconds": after}
    assert f"--signal=B:USR1@{told}" in sbatch_options(warned, NO_DEFAULTS)


def test_slurm_warns_before_a_limit_that_only_slurm_knows() -> None:
    warned = run(slurm={"extra": ["--signal=USR1@15"]})
    assert warning_of(warned, NO_DEFAULTS)["warning_after_seconds"] is None
    assert "--signal=B:USR1@15" in sbatch_options(warned, NO_DEFAULTS)


def test_equal_requests_share_arrays_within_slurms_limit() -> None:
    alike = [run(number) for number in range(7)]
    found = list(batches_of([*alike, run(8, cpus=2)], NO_DEFAULTS, 3))
    assert [len(batch.runs) for batch in found] == [3, 3, 1, 1]
    assert [batch.is_array for batch in found] == [True, True, False, False]
    assert found[0].job_ids("5") == {alike[0].id: "5_0", alike[1].id: "5_1", alike[2].id: "5_2"}
    assert (found[2].name, found[2].job_ids("6")) == (alike[6].id, {alike[6].id: "6"})


def write(tmp_path: Path, text: str) -> Path:
    (tmp_path / "labwright.toml").write_text(text)
    return tmp_path


def test_defaults_come_from_the_table(tmp_path: Path) -> None:
    found = load_defaults(write(tmp_path, '[slurm]\npartition = "gpu"\nextra = ["--exclusive"]\nquery_seconds = 10\n'))
    assert (found.partition, found.extra, found.query_seconds) == ("gpu", ("--exclusive",), 10)
    assert load_defaults(tmp_path / "nowhere") == SlurmDefaults()


@pytest.mark.parametrize(
    "line", ["partion = 'x'", "partition = 3", "extra = 'x'", "extra = ['x.sh']", "query_seconds = 0"]
)
def test_mistake_in_the_table_is_reported(tmp_path: Path, line: str) -> None:
    with pytest.raises(Invalid):
        load_defaults(write(tmp_path, f"[slurm]\n{line}\n"))


def test_job_sees_its_own_allocation_and_not_the_servers() -> None:
    stored = {"PATH": "/p", "SLURM_JOB_ID": "1", "SLURM_CONF": "/c", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    inherited = {"PATH": "/node", "SLURM_JOB_ID": "9", "CUDA_VISIBLE_DEVICES": "2", "TMPDIR": "/scratch/9", "HOST": "n"}
    assert environment_on_node(stored, inherited) == {
        "PATH": "/p", "SLURM_CONF": "/c", "SLURM_JOB_ID": "9", "CUDA_VISIBLE_DEVICES": "2", "TMPDIR": "/scratch/9",
    }  # fmt: skip


def test_restarted_job_is_the_next_attempt(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    assert attempt_of(paths, {"attempt": 1}, {}) == 1
    assert attempt_of(paths, {"attempt": 2}, {"SLURM_RESTART_COUNT": "2"}) == 4
    task = {"SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "10", "SLURM_ARRAY_TASK_ID": "3", "SLURMD_NODENAME": "n1"}
    facts = facts_of({**task, "SLURM_JOB_PARTITION": "gpu"})
    assert facts == {"slurm_job_id": "10_3", "slurm_partition": "gpu", "node": "n1"}


def test_contradicting_gpus_and_gres_give_a_warning() -> None:
    def warnings(gpus: int, gres: str, *extra: str) -> tuple[str, ...]:
        wanted = NewRun(command="true", gpus=gpus, slurm={"gres": gres, "extra": list(extra)})
        return plan_gpus(Cluster(type=ClusterType.SLURM), wanted, {}).warnings

    assert "gres=gpu:2 takes precedence" in warnings(1, "gpu:2")[0]
    assert "gres=gpu:3 takes precedence" in warnings(1, "", "--gres=gpu:3")[0]
    assert warnings(2, "gpu:a100:2") == warnings(0, "gpu:2") == warnings(1, "") == ()
