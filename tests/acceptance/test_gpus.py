"""A GPU is never shared by accident: leases, waiting, foreign use and contention, on simulated cards."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.domain.clock import epoch_seconds
from labwright.gpu.lease import holders
from labwright.processes import start_time
from labwright.sim.gpus import SimulatedGpus
from tests.support.live_server import LiveServer
from tests.support.sidecars import monitors_of, supervisor_of
from tests.support.waiting import wait_until

MakeGpuServer = Callable[..., tuple[LiveServer, SimulatedGpus]]


@pytest.fixture
def gpu_server(make_server: Callable[..., LiveServer], tmp_path: Path) -> MakeGpuServer:
    def make(count: int, **environment: str) -> tuple[LiveServer, SimulatedGpus]:
        cards = SimulatedGpus.create(tmp_path / "sim", count)
        return make_server(**cards.environment(os.environ), **environment).start(), cards

    return make


@pytest.fixture
def somebody() -> Iterator[int]:
    """A foreign process, to be seen on a card."""
    process = subprocess.Popen(["sleep", "1000"])
    yield process.pid
    process.kill()
    process.wait()


def uuids(server: LiveServer) -> list[str]:
    return [gpu["uuid"] for gpu in server.get("/cluster")["cluster"]["gpus"]]


def until_file(name: str) -> str:
    return f"while [ ! -e {name} ]; do sleep 0.05; done"


def test_gpu_machine_is_recognized(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(4)
    cluster = server.get("/cluster")["cluster"]
    assert (cluster["type"], cluster["gpu_count"], cluster["recommended"]["max_parallel"]) == ("local_gpu", 4, 4)
    assert len(set(uuids(server))) == 4


def test_each_run_is_pinned_to_its_own_cards(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(4)
    show = f'echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"; {until_file("go")}'
    submitted = [server.submit(show), server.submit(show, gpus=2), server.submit(show), server.submit(show, gpus=0)]
    runs = [server.wait_for_status(run["id"], "running") for run in submitted]
    assert [len(run["gpu_uuids"]) for run in runs] == [1, 2, 1, 0]
    assert sorted(uuid for run in runs for uuid in run["gpu_uuids"]) == sorted(uuids(server))
    held = {gpu["uuid"]: gpu["lease"]["run_id"] for gpu in server.get("/cluster")["cluster"]["gpus"]}
    assert all(held[uuid] == run["id"] for run in runs for uuid in run["gpu_uuids"])
    (server.project / "go").touch()
    for run in runs:
        server.wait_for_end(run["id"])
        order = "PCI_BUS_ID" if run["gpu_uuids"] else ""
        assert server.output(run["id"]) == f"{','.join(run['gpu_uuids'])} {order}\n"
    assert all(gpu["lease"] is None for gpu in server.get("/cluster")["cluster"]["gpus"])


def test_foreign_process_is_respected_and_named(gpu_server: MakeGpuServer, somebody: int) -> None:
    server, cards = gpu_server(1)
    cards.set_card(0, memory_used_mb=30_000, utilization=90, processes=[(somebody, 30_000)])
    run = server.submit("echo on it", gpuwrap_config={"enabled": True, "retry_delay_seconds": 0.3})
    waiting = server.wait_for_status(run["id"], "waiting")
    assert str(somebody) in waiting["status_reason"] and "sleep" in waiting["status_reason"]
    cards.set_card(0, memory_used_mb=0, utilization=0, processes=[])
    assert server.wait_for_end(run["id"])["status"] == "finished"
    alerts = server.get(f"/alerts?run_id={run['id']}")
    assert [alert["rule"] for alert in alerts] == ["gpu_wait"]
    assert alerts[0]["status"] == "resolved"


def test_used_memory_without_a_process_is_not_free(gpu_server: MakeGpuServer) -> None:
    server, cards = gpu_server(1)
    cards.set_card(0, memory_used_mb=20_000, utilization=0, processes=[])
    run = server.submit("true", gpuwrap_config={"enabled": True, "retries": 1, "retry_delay_seconds": 0.2})
    failed = server.wait_for_end(run["id"])
    assert (failed["status"], failed["status_reason"]) == ("failed", "no_gpu")
    rules = sorted(alert["rule"] for alert in server.get(f"/alerts?run_id={run['id']}"))
    assert rules == ["gpu_wait", "no_gpu"]


def test_run_that_names_its_cards_gets_a_warning_and_their_lease(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(2)
    run = server.submit(
        f'export CUDA_VISIBLE_DEVICES=1; echo "$CUDA_VISIBLE_DEVICES"; {until_file("go")}',
        gpuwrap_config={"enabled": True},
    )
    assert run["gpuwrap_config"]["enabled"] is False
    assert any("CUDA_VISIBLE_DEVICES" in warning for warning in run["warnings"])
    server.wait_for_status(run["id"], "running")
    assert holders(server.environment["LABWRIGHT_LEASE_DIR"])[uuids(server)[1]].run_id == run["id"]
    (server.project / "go").touch()
    server.wait_for_end(run["id"])
    assert server.output(run["id"]) == "1\n"


def test_gpu_count_that_contradicts_the_named_cards_gives_a_warning(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(2)
    run = server.submit("CUDA_VISIBLE_DEVICES=1 true", gpus=2)
    said = "gpus is 2, but the run sets CUDA_VISIBLE_DEVICES=1, which takes precedence."
    assert (run["gpus"], run["warnings"]) == (1, [said])
    assert server.submit("CUDA_VISIBLE_DEVICES=1 true", gpus=1)["warnings"] == []


@pytest.mark.parametrize("named", ["0,1,2,3", "0,0,1"])
def test_run_that_names_too_many_cards_runs_on_existing_ones(gpu_server: MakeGpuServer, named: str) -> None:
    server, _ = gpu_server(2)
    run = server.wait_for_end(server.submit(f"CUDA_VISIBLE_DEVICES={named} true")["id"])
    assert (run["status"], sorted(run["gpu_uuids"])) == ("finished", sorted(uuids(server)))
    assert run["warnings"] == [
        f"The command names GPU {name}, which is not on this machine." for name in "23" if name in named
    ]


def test_run_that_names_a_card_in_use_gets_a_warning(gpu_server: MakeGpuServer, somebody: int) -> None:
    server, cards = gpu_server(1)
    cards.set_card(0, memory_used_mb=30_000, processes=[(somebody, 30_000)])
    run = server.wait_for_end(server.submit("CUDA_VISIBLE_DEVICES=0 true")["id"])
    (warning,) = run["warnings"]
    assert warning.startswith("GPU 0 is in use by ")
    assert f"pid {somebody}" in warning
    assert run["gpu_uuids"] == uuids(server)


def test_run_that_names_cards_in_two_commands_leases_both(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(3)
    waiting = f"bash -c '{until_file('go')}'"
    both = server.submit(f"CUDA_VISIBLE_DEVICES=0 {waiting} & CUDA_VISIBLE_DEVICES=1 {waiting} & wait")["id"]
    server.wait_for_status(both, "running")
    assert server.wait_for_end(server.submit("true")["id"])["gpu_uuids"] == uuids(server)[2:]
    (server.project / "go").touch()
    assert sorted(server.wait_for_end(both)["gpu_uuids"]) == uuids(server)[:2]


def test_card_known_only_to_the_runs_shell_is_reported_as_unleased(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(1)
    run = server.wait_for_end(server.submit("for card in 0; do CUDA_VISIBLE_DEVICES=$card true; done")["id"])
    (warning,) = run["warnings"]
    assert "picks a GPU by $card, which only its shell can resolve" in warning


def test_runs_that_share_a_named_card_leave_other_cards_to_waiting_runs(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(2)
    on_first = [server.submit(f"CUDA_VISIBLE_DEVICES=0 bash -c '{until_file('go')}'")["id"] for _ in range(5)]
    for run_id in on_first[:2]:
        server.wait_for_status(run_id, "running")
    for command in ("true", "CUDA_VISIBLE_DEVICES=1 true"):
        assert server.wait_for_end(server.submit(command)["id"])["status"] == "finished"
    assert [server.run(run_id)["status"] for run_id in on_first[2:]] == ["queued"] * 3  # as many as there are cards
    assert server.run(on_first[2])["status_reason"].startswith("it names GPU 0, as ")
    (server.project / "go").touch()
    assert {server.wait_for_end(run_id)["status"] for run_id in on_first} == {"finished"}


def test_card_is_free_before_the_last_metrics_of_its_run_are_read(gpu_server: MakeGpuServer) -> None:
    """The monitor is suspended, as if it had very much to read."""
    server, _ = gpu_server(1)
    first = server.submit(until_file("go"))["id"]
    heartbeat = server.state / "runs" / first / "heartbeat"
    wait_until(heartbeat.exists, "the first run to be watched")
    monitor = wait_until(lambda: monitors_of(server), "its monitor").pop()
    os.kill(monitor, signal.SIGSTOP)
    second = server.submit("true")["id"]
    (server.project / "go").touch()

    def second_ended() -> bool:
        os.utime(heartbeat)  # suspended, but too briefly to be given up
        return bool(server.run(second)["status"] == "finished")

    wait_until(second_ended, "the second run to have the card")
    assert server.run(first)["status"] == "running"
    os.kill(monitor, signal.SIGCONT)
    over, after = server.wait_for_end(first), server.run(second)
    assert over["status"] == "finished"
    assert over["started_at"] < over["ended_at"] <= after["started_at"]
    assert over["usage"]["wall_seconds"] == pytest.approx(
        epoch_seconds(over["ended_at"]) - epoch_seconds(over["started_at"]), abs=0.1
    )


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB"


def test_own_out_of_memory_is_a_failure_with_that_reason(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(1)
    run = server.submit(f"echo x >> tries; echo '{OOM}' >&2; exit 1", gpuwrap_config={"enabled": True})
    failed = server.wait_for_end(run["id"])
    assert (failed["status"], failed["status_reason"], failed["exit_code"]) == ("failed", "cuda_oom", 1)
    assert (server.project / "tries").read_text() == "x\n"
    assert [alert["rule"] for alert in server.get(f"/alerts?run_id={run['id']}")] == ["cuda_oom"]


def crowd_then_calm(server: LiveServer, cards: SimulatedGpus, somebody: int, run_id: str) -> None:
    """A foreign process takes the card while the run works, and leaves once the run waits for a retry."""
    server.wait_for_status(run_id, "running")
    cards.set_card(0, memory_used_mb=30_000, utilization=80, processes=[(somebody, 30_000)])
    (server.project / "crowded").touch()
    server.wait_for_status(run_id, "waiting")
    (server.project / "calm").touch()
    cards.set_card(0, memory_used_mb=0, utilization=0, processes=[])


def test_contention_with_a_foreign_process_is_retried(gpu_server: MakeGpuServer, somebody: int) -> None:
    server, cards = gpu_server(1)
    command = f"echo $LABWRIGHT_TRY >> tries; [ -e calm ] && exit 0; {until_file('crowded')}; echo '{OOM}' >&2; exit 1"
    run = server.submit(command, gpuwrap_config={"enabled": True, "retry_delay_seconds": 0.3})
    crowd_then_calm(server, cards, somebody, run["id"])
    finished = server.wait_for_end(run["id"])
    assert finished["status"] == "finished"
    assert (server.project / "tries").read_text() == "1\n2\n"
    assert [alert["rule"] for alert in server.get(f"/alerts?run_id={run['id']}")] == ["gpu_contention"]


def test_attempt_is_judged_only_by_its_own_output(gpu_server: MakeGpuServer, somebody: int) -> None:
    server, cards = gpu_server(1)
    command = f"[ -e calm ] && {{ echo ValueError; exit 3; }}; {until_file('crowded')}; echo '{OOM}' >&2; exit 1"
    run = server.submit(command, gpuwrap_config={"enabled": True, "retry_delay_seconds": 0.3})
    crowd_then_calm(server, cards, somebody, run["id"])
    failed = server.wait_for_end(run["id"])
    assert (failed["status_reason"], failed["exit_code"]) == ("exit_code", 3)


def test_own_processes_are_not_foreign_while_the_driver_still_shows_them(gpu_server: MakeGpuServer) -> None:
    server, cards = gpu_server(1)
    command = f"echo x >> tries; echo $$ > pid; {until_file('seen')}; echo '{OOM}' >&2; exit 1"
    run = server.submit(command, gpuwrap_config={"enabled": True, "retry_delay_seconds": 0.3})
    wait_until(lambda: (server.project / "pid").exists() and (server.project / "pid").read_text(), "the job")
    pid = int((server.project / "pid").read_text())
    cards.set_card(0, memory_used_mb=30_000, processes=[(pid, 30_000)])
    (server.project / "seen").touch()
    wait_until(lambda: start_time(pid) is None, "the job to be gone")
    time.sleep(0.5)  # as long as a driver may take to notice
    cards.set_card(0, memory_used_mb=0, processes=[])
    assert server.wait_for_end(run["id"])["status_reason"] == "cuda_oom"
    assert (server.project / "tries").read_text() == "x\n"


@pytest.mark.slow
def test_process_that_hides_its_run_is_not_taken_as_foreign(gpu_server: MakeGpuServer) -> None:
    """Many processes set their own title. The monitor checks every ten seconds."""
    server, cards = gpu_server(1)
    hidden = f"env -i sh -c 'echo $$ > pid; {until_file('seen')}'"
    command = f"echo x >> tries; {hidden}; echo '{OOM}' >&2; exit 1"
    run = server.submit(command, gpuwrap_config={"enabled": True, "retry_delay_seconds": 0.3})
    wait_until(lambda: (server.project / "pid").exists() and (server.project / "pid").read_text(), "the job")
    cards.set_card(0, memory_used_mb=30_000, processes=[(int((server.project / "pid").read_text()), 30_000)])
    wait_until(lambda: "system/gpu0/memory_mb" in server.run(run["id"])["summary"], "a look")
    cards.set_card(0, memory_used_mb=0, processes=[])
    (server.project / "seen").touch()
    assert server.wait_for_end(run["id"])["status_reason"] == "cuda_oom"
    assert (server.project / "tries").read_text() == "x\n"


def test_killed_supervisor_frees_a_card_only_after_the_job_ends(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(1)
    first = server.submit(until_file("go"))
    server.wait_for_status(first["id"], "running")
    os.kill(supervisor_of(server, first["id"]), signal.SIGKILL)
    second = server.submit("echo mine now")
    wait_until(lambda: server.run(first["id"])["status_reason"], "the dead supervisor to be noticed")
    assert holders(server.environment["LABWRIGHT_LEASE_DIR"])[uuids(server)[0]].run_id == first["id"]
    (server.project / "go").touch()
    server.wait_for_status(first["id"], "lost")
    assert server.wait_for_end(second["id"])["status"] == "finished"


def test_wide_run_is_not_starved_by_narrow_ones(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(2, LABWRIGHT_AGEING_SECONDS="1")
    first = server.submit(until_file("go"))
    server.wait_for_status(first["id"], "running")
    wide = server.submit("echo both", gpus=2)
    narrow = [server.submit("sleep 0.4") for _ in range(30)]
    server.wait_for_status(narrow[0]["id"], "running", "finished")  # a narrow run may pass at first
    (server.project / "go").touch()
    ended = server.wait_for_end(wide["id"])
    assert ended["status"] == "finished"
    last = server.run(narrow[-1]["id"])["started_at"]
    assert last is None or last > ended["started_at"], "the wide run came last"


def test_request_for_more_cards_than_exist_is_refused(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(2)
    answer = server.call("POST", "/runs", {"command": "true", "gpus": 3})
    assert answer.status == 422
    assert "this machine has 2" in answer.json["error"]["message"]
    assert answer.json["error"]["field"] == ["gpus"]


def test_hanging_driver_costs_a_timeout_and_not_the_server(gpu_server: MakeGpuServer) -> None:
    server, cards = gpu_server(2)
    cards.hang()
    try:
        seen: dict[str, Any] = server.post("/cluster/detect")["cluster"]
        assert (seen["status"], seen["type"], seen["gpu_count"]) == ("degraded", "local_gpu", 2)
        assert any("did not answer" in item["said"] for item in seen["evidence"])
        assert server.get("/runs") == []
    finally:
        cards.hang(False)


def test_server_that_starts_while_the_driver_hangs_knows_its_cards(gpu_server: MakeGpuServer) -> None:
    """Otherwise its runs would start without a lease, beside leased ones."""
    server, cards = gpu_server(1)
    held = server.submit("sleep 300")
    server.wait_for_status(held["id"], "running")
    cards.hang()
    try:
        server.restart()
        seen = server.get("/cluster")["cluster"]
        assert (seen["type"], seen["status"], seen["gpu_count"]) == ("local_gpu", "degraded", 1)
        waiting = server.submit("true")
        assert waiting["gpus"] == 1
        server.wait_for_status(server.submit("true", gpus=0)["id"], "finished")
        assert server.run(waiting["id"])["status"] == "queued"
    finally:
        cards.hang(False)
    server.post(f"/runs/{held['id']}/stop")
    assert server.wait_for_end(waiting["id"])["gpu_uuids"] == server.run(held["id"])["gpu_uuids"]


def test_gpu_run_does_not_wait_behind_runs_without_gpus(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(1)
    for _ in range(40):
        server.submit("sleep 30", gpus=0)
    assert server.wait_for_status(server.submit("true", gpus=1)["id"], "finished")


def test_only_cards_visible_to_the_server_are_used(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(3, CUDA_VISIBLE_DEVICES="2")
    assert server.get("/cluster")["cluster"]["gpu_count"] == 1
    run = server.wait_for_end(server.submit('echo "$CUDA_VISIBLE_DEVICES"')["id"])
    assert run["gpu_uuids"] == uuids(server)


def test_named_card_is_leased_even_if_the_server_cannot_see_it(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(2, CUDA_VISIBLE_DEVICES="1")
    elsewhere = server.submit(f"CUDA_VISIBLE_DEVICES=0 bash -c '{until_file('go')}'")["id"]
    server.wait_for_status(elsewhere, "running")
    assert [holder.run_id for holder in holders(server.environment["LABWRIGHT_LEASE_DIR"]).values()] == [elsewhere]
    assert server.wait_for_end(server.submit("true")["id"])["gpu_uuids"] == uuids(server)
    (server.project / "go").touch()
    assert server.wait_for_end(elsewhere)["warnings"] == []


def test_queued_gpu_run_shows_which_runs_hold_the_cards(gpu_server: MakeGpuServer) -> None:
    server, _ = gpu_server(2)
    holder = server.submit(until_file("go"), gpus=2)
    server.wait_for_status(holder["id"], "running")
    queued = server.submit("true")
    assert server.run(queued["id"])["status_reason"] == f"all 2 GPUs are in use by {holder['id']}"
    (server.project / "go").touch()
    server.wait_for_end(queued["id"])
