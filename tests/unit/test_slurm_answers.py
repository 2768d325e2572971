"""Slurm's output of old and new versions is parsed correctly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from labwright.compute.slurm.commands import SlurmCommands, SlurmRefused, SlurmSilent, client_environment
from labwright.compute.slurm.jobs import Phase, ending_of, expand_tasks, read_squeue
from labwright.compute.slurm.probe import (
    SlurmProbe,
    count_gpus,
    probe_slurm,
    read_duration,
    read_gpus_allocated,
    read_rows,
)
from labwright.domain.run import RunStatus


def squeue(*rows: str) -> str:
    return "".join(row.replace("|", "\x1f") + "\n" for row in ("JOBID|STATE|REASON|NAME|NODELIST", *rows))


def test_row_of_squeue_is_a_job_a_task_or_all_pending_tasks() -> None:
    single, task, pending = read_squeue(
        squeue(
            "17|RUNNING|None|run-0123456789|node1",
            "2_4|COMPLETED|None|array-0123456789|node[1-2]",
            "2_[5-7,9%1]|PENDING|JobArrayTaskLimit|array-0123456789|",
        )
    )
    assert (single.job_id, single.tasks, single.phase, single.id_of(None)) == ("17", None, Phase.ACTIVE, "17")
    assert (task.job_id, task.tasks, task.phase, task.id_of(4)) == ("2", (4,), Phase.ENDED, "2_4")
    assert (pending.job_id, pending.tasks, pending.phase) == ("2", (5, 6, 7, 9), Phase.PENDING)
    assert pending.pending_message == "Slurm: pending (JobArrayTaskLimit)"


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        ("1-5%1", (1, 2, 3, 4, 5)),
        ("3", (3,)),
        ("0-8:4", (0, 4, 8)),
        ("0,3,7-9%2", (0, 3, 7, 8, 9)),
        ("1-3,...", (1, 2, 3)),
    ],
)
def test_tasks_of_an_array_are_expanded(text: str, tasks: tuple[int, ...]) -> None:
    assert expand_tasks(text) == tasks


def test_lines_that_are_not_rows_are_skipped() -> None:
    assert read_squeue(f"Welcome to the cluster!\n\n{squeue()}") == []


@pytest.mark.parametrize("text", ["", "slurm_load_jobs error: something\n\n", "a|b|c|d|e\n", "\x1f\x1f\x1f\x1f\n"])
def test_answer_without_a_list_is_not_an_empty_queue(text: str) -> None:
    with pytest.raises(SlurmSilent, match="squeue listed no jobs"):
        read_squeue(text)


@pytest.mark.parametrize(
    ("row", "status", "reason"),
    [
        ("1|TIMEOUT|TimeLimit|x|n1", RunStatus.FAILED, "time_limit"),
        ("1|OUT_OF_MEMORY|OutOfMemory|x|n1", RunStatus.FAILED, "out_of_memory"),
        ("1|NODE_FAIL|NodeDown|x|n1", RunStatus.LOST, "node_fail"),
        ("1|PREEMPTED|None|x|n1", RunStatus.FAILED, "preempted"),
        ("1|CANCELLED|None|x|", RunStatus.STOPPED, "cancelled in Slurm"),
        ("1|FAILED|NonZeroExitCode|x|n1", RunStatus.LOST, "sidecar_lost"),
        ("1|COMPLETED|None|x|n1", RunStatus.LOST, "sidecar_lost"),
        ("1|FAILED|BadConstraints|x|", RunStatus.FAILED, "slurm_refused"),
    ],
)
def test_slurm_end_state_becomes_a_run_status(row: str, status: RunStatus, reason: str) -> None:
    (job,) = read_squeue(squeue(row))
    ending = ending_of(job)
    assert job.phase is Phase.ENDED
    assert (ending.status, ending.reason) == (status, reason)
    assert ending.message


@pytest.mark.parametrize(
    "state", ["RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STAGE_OUT", "EXPEDITING", "SOMETHING_NEW"]
)
def test_unknown_state_is_not_an_end(state: str) -> None:
    assert read_squeue(squeue(f"1|{state}|None|x|n1"))[0].phase is Phase.ACTIVE


def test_nodes_and_partitions_are_read_from_sinfo() -> None:
    rows = read_rows(
        squeue(
            "n10|gpu*|up|1-00:00:00|64|512000|gpu:a100:4(S:0-1)|idle|0/64/0/64|none",
            "n2|gpu*|up|1-00:00:00|64|512000|gpu:a100:4(S:0-1)|down*|0/0/64/64|a fan\x85 is gone",
            "n2|debug|up|30:00|64|512000|gpu:a100:4(S:0-1)|drained|0/0/64/64|a fan\x85 is gone",
            "n3|cpu|down|infinite|128+|256000+|(null)|mixed-|16/112/0/128|none",
        )
    )
    assert [(row.partition, row.is_default, row.gpus, row.is_unwell) for row in rows] == [
        ("gpu", True, 4, False), ("gpu", True, 4, True), ("debug", False, 4, True), ("cpu", False, 0, False),
    ]  # fmt: skip
    assert [row.time_limit_seconds for row in rows] == [86400, 86400, 1800, None]
    assert (rows[3].cpus, rows[3].memory_mb) == (128, 256000)
    nodes = SlurmProbe(rows=tuple(rows)).machines
    assert [(node.name, node.is_well, node.cpus_allocated, node.reason, node.partitions) for node in nodes] == [
        ("n2", False, 0, "a fan\x85 is gone", ("gpu", "debug")),
        ("n3", True, 16, "", ("cpu",)),
        ("n10", True, 0, "", ("gpu",)),
    ]


def test_gpus_in_use_are_read_for_each_node() -> None:
    lines = (
        "n1    gpu:a100:3(IDX:0-2)  ",
        "n1    gpu:a100:3(IDX:0-2)  ",
        "n2    gpu:(null):0(IDX:N/A)",
        "n3    (null)",
        "",
    )
    listing = "\n".join(lines)
    assert read_gpus_allocated(listing) == {"n1": 3, "n2": 0, "n3": 0}


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("(null)", 0),
        ("gpu:2", 2),
        ("gpu:a100:4", 4),
        ("gpu:a100:4(S:0-1),gpu:v100:2", 6),
        ("shard:8,gpu:1", 1),
        ("nic:3", 0),
    ],
)
def test_gpus_are_counted_from_gres(gres: str, count: int) -> None:
    assert count_gpus(gres) == count


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("infinite", None), ("n/a", None), ("10:00", 600), ("1:00:00", 3600), ("2-12:00:00", 216_000), ("0:30", 30)],
)
def test_durations_are_parsed(text: str, seconds: int | None) -> None:
    assert read_duration(text) == seconds


def fake(tmp_path: Path, program: str, script: str) -> SlurmCommands:
    path = tmp_path / program
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return SlurmCommands({"PATH": f"{tmp_path}:{os.defpath}"})


def test_hanging_command_costs_its_time_limit(tmp_path: Path) -> None:
    with pytest.raises(SlurmSilent, match="did not answer in") as caught:
        fake(tmp_path, "squeue", "sleep 100 & wait").call("squeue", timeout=0.2)
    assert caught.value.in_doubt


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
            SlurmSilent,
        ),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", SlurmSilent),
        ("sbatch: error: QOSMaxSubmitJobPerUserLimit", SlurmSilent),
        ("sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying", SlurmSilent),
        ("sbatch: error: Batch job submission failed: Invalid partition name specified", SlurmRefused),
        (
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination",
            SlurmRefused,
        ),
    ],
)
def test_temporary_and_permanent_refusals_are_distinguished(
    tmp_path: Path, message: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as caught:
        fake(tmp_path, "sbatch", f"echo '{message}' >&2; exit 1").call("sbatch")
    assert not str(caught.value).startswith("sbatch:")


def test_without_sinfo_there_is_no_slurm_and_the_evidence_says_so(tmp_path: Path) -> None:
    found = probe_slurm({"PATH": str(tmp_path)})
    assert (found.answers, found.is_configured, found.said) == (False, False, "sinfo is not installed")


@pytest.mark.parametrize(
    ("message", "is_there"),
    [
        ("slurm_load_partitions: Unable to contact slurm controller (connect failure)", True),
        ("slurm_load_partitions: Socket timed out on send/recv operation", True),
        ("sinfo: fatal: Could not establish a configuration source", False),
    ],
)
def test_sinfo_that_knows_its_controller_means_slurm_is_configured(
    tmp_path: Path, message: str, is_there: bool
) -> None:
    """Otherwise runs would start on the login node while the controller of a cluster restarts."""
    fake(tmp_path, "sinfo", f"echo '{message}' >&2; exit 1")
    found = probe_slurm({"PATH": f"{tmp_path}:{os.defpath}"})
    assert (found.answers, found.is_configured, found.said.endswith(message.removeprefix("sinfo: fatal: "))) == (
        False, is_there, True,
    )  # fmt: skip


def test_sbatch_gets_no_secret_and_no_variables_of_an_outer_allocation() -> None:
    kept = client_environment(
        {
            "PATH": "/bin", "HOME": "/h", "SLURM_CONF": "/c", "SLURM_JOB_ID": "7", "HF_TOKEN": "x", "AWS_SECRET": "y",
            "SBATCH_ACCOUNT": "a", "SBATCH_EXPORT": "ALL", "PGPASSWORD": "z", "LC_ALL": "C",
        }
    )  # fmt: skip
    assert kept == {
        "PATH": "/bin", "HOME": "/h", "SLURM_CONF": "/c", "SBATCH_ACCOUNT": "a", "LC_ALL": "C", "SLURM_BITSTR_LEN": "0",
    }  # fmt: skip
