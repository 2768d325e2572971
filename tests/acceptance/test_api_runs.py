"""Every verb of `/runs` over HTTP, on a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

ENDED = {"finished", "failed", "stopped", "lost"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("runs") / "project"
    project.mkdir()
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="4", LABWRIGHT_GRACE_SECONDS="1").start()
    yield server
    for run in server.all_runs():
        if run["status"] not in ENDED:
            server.call("POST", f"/runs/{run['id']}/stop")
    server.stop()


def ready(lab: LiveServer, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = lab.post("/runs", {"command": "true", **fields})
    return made


def listed(lab: LiveServer, query: str) -> list[str]:
    return [run["id"] for run in lab.get(f"/runs?{query}")]


def test_run_waits_for_start_unless_auto_start_is_set(lab: LiveServer) -> None:
    run = ready(lab)
    assert run["status"] == "ready"
    assert run["created_by"] == "person"
    assert lab.post(f"/runs/{run['id']}/start")["status"] == "queued"
    assert lab.wait_for_end(run["id"])["status"] == "finished"


def test_run_shows_its_facts(lab: LiveServer) -> None:
    fields = {
        "name": "trial",
        "params": {"lr": 0.1, "deep": {"a": [1, None, "ü"]}},
        "seed": 7,
        "tags": ["a", "b"],
        "notes": "why",
        "env": {"GREETING": "hé", "HF_TOKEN": "hf_secret"},
        "chat_session_id": "chat-1",
        "time_limit_seconds": 30,
        "cpus": 1,
        "memory_mb": 100,
    }
    run = lab.submit('echo "$GREETING $HF_TOKEN $LABWRIGHT_RUN_ID"; exit 3', **fields)
    ended = lab.wait_for_end(run["id"])
    for name in ("name", "params", "seed", "tags", "notes", "chat_session_id", "cpus", "memory_mb"):
        assert ended[name] == fields[name]
    assert ended["env"] == {"GREETING": "hé"}
    assert ended["secret_env"] == ["HF_TOKEN"]
    assert (ended["status"], ended["exit_code"], ended["signal"], ended["attempt"]) == ("failed", 3, None, 1)
    assert lab.output(run["id"]) == f"hé hf_secret {run['id']}\n"
    times = [ended[f"{what}_at"] for what in ("created", "queued", "launched", "started", "ended")]
    assert times == sorted(times)
    assert ended["launcher"] == "local"
    assert ended["usage"]["wall_seconds"] >= 0
    assert Path(ended["run_dir"]).is_dir()


def test_name_defaults_to_the_first_line_of_the_command(lab: LiveServer) -> None:
    assert ready(lab, command="\n  echo one\necho two")["name"] == "echo one"
    assert len(ready(lab, command="x" * 500)["name"]) == 60


def test_workdir_can_be_relative_to_the_project(lab: LiveServer) -> None:
    (lab.project / "sub folder").mkdir(exist_ok=True)
    run = lab.wait_for_end(lab.submit("pwd", workdir="sub folder")["id"])
    assert lab.output(run["id"]) == f"{lab.project / 'sub folder'}\n"


@pytest.mark.parametrize("verb", ["start", "stop", "archive"])
def test_verb_at_the_wrong_time_is_a_conflict_and_changes_nothing(lab: LiveServer, verb: str) -> None:
    run = ready(lab)
    if verb != "archive":
        run = lab.wait_for_end(lab.post(f"/runs/{run['id']}/start")["id"])
    answer = lab.call("POST", f"/runs/{run['id']}/{verb}")
    assert answer.status == 409
    assert answer.json["error"]["hint"]
    assert lab.run(run["id"]) == run


def test_stop_works_before_the_start(lab: LiveServer) -> None:
    run = ready(lab)
    stopped = lab.post(f"/runs/{run['id']}/stop")
    assert (stopped["status"], stopped["status_reason"]) == ("stopped", "stopped before it began")
    assert stopped["ended_at"]


def test_stop_ends_a_running_process_tree_with_daemons(lab: LiveServer) -> None:
    run = lab.submit("setsid sleep 300 & nohup sleep 300 & echo up; trap '' TERM; while :; do sleep 300; done")
    wait_until(lambda: "up" in lab.get(f"/runs/{run['id']}/logs")["content"], "the tree to be up")
    lab.post(f"/runs/{run['id']}/stop")
    ended = lab.wait_for_end(run["id"])
    assert ended["status"] == "stopped"
    assert not _alive(run["id"])


def _alive(run_id: str) -> list[str]:
    mark = f"LABWRIGHT_RUN_ID={run_id}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_run_is_found_by_id_id_prefix_name_or_last(lab: LiveServer) -> None:
    run = ready(lab, name="one of a kind ✓")
    for reference in (run["id"], run["id"][:-2], run["id"].removeprefix("run-")[:-2], run["name"], "last"):
        assert lab.get(f"/runs/{quote(reference)}")["id"] == run["id"], reference


def test_filters_narrow_the_list(lab: LiveServer) -> None:
    sweep = lab.post("/sweeps/wild", {"name": "filters"})["id"]
    ok = lab.wait_for_end(lab.submit("true  # needle-in-command", sweep_id=sweep, tags=["x", "y"])["id"])["id"]
    bad = lab.wait_for_end(lab.submit("false", sweep_id=sweep, name="Needle-In-Name", tags=["xy"])["id"])["id"]
    idle = ready(lab, sweep_id=sweep)["id"]
    assert listed(lab, f"sweep_id={sweep}") == [idle, bad, ok]
    assert listed(lab, f"sweep_id={sweep}&status=finished") == [ok]
    assert listed(lab, f"sweep_id={sweep}&status=finished,failed") == [bad, ok]
    assert listed(lab, f"sweep_id={sweep}&tag=x") == [ok]
    assert listed(lab, "q=needle-in") == [bad, ok]
    assert listed(lab, f"q={bad}") == [bad]
    assert listed(lab, "sweep_id=sweep-zzzzzzzzzz") == []
    assert listed(lab, f"sweep_id={sweep}&q=100%25") == []
    progress = lab.get(f"/sweeps/{sweep}")["progress"]
    assert (progress["total"], progress["finished"], progress["failed"], progress["ready"]) == (3, 1, 1, 1)
    assert next(s for s in lab.get("/sweeps") if s["id"] == sweep)["progress"] == progress


@pytest.mark.parametrize("sort", ["-created_at", "created_at", "name", "-name", "-priority", "ended_at", "-ended_at"])
def test_pages_are_stable_while_runs_are_added(lab: LiveServer, sort: str) -> None:
    tag = f"pages{sort}"
    made = [ready(lab, tags=[tag], name=f"n{i % 3}", priority=i % 2)["id"] for i in range(7)]
    whole = listed(lab, f"tag={tag}&sort={sort}")
    seen: list[str] = []
    cursor = ""
    while True:
        answer = lab.call("GET", f"/runs?tag={tag}&sort={sort}&limit=3{cursor}")
        seen += [run["id"] for run in answer.json]
        ready(lab, tags=[tag], name="n1", priority=1)
        following = answer.headers.get("x-next-cursor")
        if following is None or len(seen) > 30:
            break
        cursor = f"&cursor={following}"
    assert [run_id for run_id in seen if run_id in made] == whole
    assert len(seen) == len(set(seen))
    assert sorted(whole) == sorted(made)


def test_priority_order_matches_the_queue(lab: LiveServer) -> None:
    made = [ready(lab, tags=["in-line"], priority=priority)["id"] for priority in (0, 2, 0, 2, 1)]
    assert listed(lab, "tag=in-line&sort=-priority") == [made[at] for at in (1, 3, 4, 0, 2)]


def test_runs_are_listed_by_their_ids(lab: LiveServer) -> None:
    first, second, _ = (ready(lab)["id"] for _ in range(3))
    assert listed(lab, f"ids={first},run-zzzzzzzzzz,{second}") == [second, first]
    assert listed(lab, "ids=run-zzzzzzzzzz") == []


def test_empty_list_has_no_next_page(lab: LiveServer) -> None:
    answer = lab.call("GET", "/runs?tag=of-nobody")
    assert (answer.json, answer.headers.get("x-next-cursor")) == ([], None)


def test_patch_changes_only_the_named_fields(lab: LiveServer) -> None:
    run = ready(lab, name="before", tags=["a"])
    changed = lab.call("PATCH", f"/runs/{run['id']}", {"name": "after", "notes": "n", "priority": 5}).json
    assert changed == {**run, "name": "after", "notes": "n", "priority": 5}
    assert lab.call("PATCH", f"/runs/{run['id']}", {"tags": []}).json["tags"] == []
    assert lab.call("PATCH", f"/runs/{run['id']}", {}).status == 200


@pytest.mark.parametrize("body", [{"status": "finished"}, {"command": "x"}, {"name": ""}, {"priority": 1.5}, []])
def test_patch_refuses_fields_that_cannot_change(lab: LiveServer, body: Any) -> None:
    run = ready(lab)
    assert lab.call("PATCH", f"/runs/{run['id']}", body).status == 422
    assert lab.run(run["id"]) == run


def test_archived_runs_leave_the_default_list_and_come_back(lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("true", tags=["shelf"])["id"])
    assert lab.post(f"/runs/{run['id']}/archive")["archived"] is True
    assert listed(lab, "tag=shelf") == []
    assert listed(lab, "tag=shelf&archived=true") == listed(lab, "tag=shelf&archived=all") == [run["id"]]
    assert lab.post(f"/runs/{run['id']}/unarchive")["archived"] is False
    assert listed(lab, "tag=shelf") == [run["id"]]


def test_rerun_is_a_new_run_with_the_same_spec(lab: LiveServer) -> None:
    old = lab.wait_for_end(lab.submit("echo $A; exit 2", env={"A": "1"}, params={"lr": 1}, tags=["t"], seed=3)["id"])
    new = lab.call("POST", f"/runs/{old['id']}/rerun").json
    assert new["parent_run_id"] == old["id"]
    assert new["id"] != old["id"]
    for name in ("command", "env", "params", "tags", "seed", "workdir", "sweep_id", "name"):
        assert new[name] == old[name]
    assert lab.wait_for_end(new["id"])["exit_code"] == 2
    assert lab.run(old["id"]) == old
    other = lab.post(f"/runs/{old['id']}/rerun", {"command": "exit 5", "auto_start": False})
    assert (other["status"], other["command"]) == ("ready", "exit 5")
    assert lab.call("POST", f"/runs/{old['id']}/rerun", {"command": "  "}).status == 422


def test_rerun_accepts_values_only_for_secrets_of_the_run(lab: LiveServer) -> None:
    first = lab.wait_for_end(lab.submit("true", env={"API_TOKEN": "x"})["id"])
    refused = lab.call("POST", f"/runs/{first['id']}/rerun", {"secrets": {"OTHER_TOKEN": "y"}})
    assert refused.status == 422 and "OTHER_TOKEN" in refused.json["error"]["message"]


def test_rerun_names_the_secrets_it_no_longer_has(lab: LiveServer) -> None:
    old = lab.wait_for_end(lab.submit("true", env={"HF_TOKEN": "x"})["id"])
    again = lab.post(f"/runs/{old['id']}/rerun")
    assert "HF_TOKEN" in again["warnings"][0]
    given = lab.post(f"/runs/{old['id']}/rerun", {"env": {"HF_TOKEN": "y"}})
    assert given["warnings"] == []


def test_only_an_ended_run_can_be_deleted_and_nothing_is_left(lab: LiveServer) -> None:
    idle = ready(lab, env={"HF_TOKEN": "x"})
    assert lab.call("DELETE", f"/runs/{idle['id']}").status == 409
    lab.post(f"/runs/{idle['id']}/stop")
    ended = lab.wait_for_end(lab.submit("echo x")["id"])
    lab.post(f"/runs/{ended['id']}/alerts", {"message": "look"})
    for run in (idle, ended):
        assert lab.call("DELETE", f"/runs/{run['id']}").status == 204
        assert lab.call("GET", f"/runs/{run['id']}").status == 404
        assert lab.call("DELETE", f"/runs/{run['id']}").status == 404
        assert lab.get(f"/alerts?run_id={run['id']}") == []
        assert not (lab.state / "runs" / run["id"]).exists()
        assert not (lab.state / "secrets" / f"{run['id']}.json").exists()
    assert lab.get(f"/events?run_id={ended['id']}")[-1]["type"] == "run.deleted"


def test_concurrent_deletes_succeed_once(lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("true")["id"])
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: lab.call("DELETE", f"/runs/{run['id']}").status, range(8)))
    assert sorted(answers) == [204, *[404] * 7]
    told = [event["type"] for event in lab.get(f"/events?run_id={run['id']}")]
    assert told.count("run.deleted") == 1


def test_idempotency_key_returns_the_first_result_after_a_restart(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    folder = server.project / "gone"
    folder.mkdir()
    body = {"command": "true", "workdir": "gone", "auto_start": True, "env": {"HF_TOKEN": "x"}}
    keyed = {"headers": {"Idempotency-Key": "once"}}
    first = server.call("POST", "/runs", body, **keyed)
    assert first.status == 201
    server.wait_for_end(first.json["id"])
    folder.rmdir()
    assert server.call("POST", "/runs", body, **keyed).json == first.json
    server.restart()
    again = server.call("POST", "/runs", body, **keyed)
    assert (again.status, again.json) == (201, first.json)
    assert len(server.all_runs()) == 1
    different = server.call("POST", "/runs", {**body, "command": "false"}, **keyed)
    assert (different.status, different.json["error"]["code"]) == (409, "conflict")
    assert len(server.all_runs()) == 1
    assert not list((server.state / "secrets").glob("*"))


def test_twenty_equal_requests_at_once_make_one_run(lab: LiveServer) -> None:
    def send(_: int) -> tuple[int, str]:
        body = {"command": "true", "tags": ["twenty"]}
        answer = lab.call("POST", "/runs", body, headers={"Idempotency-Key": "twenty"})
        return answer.status, answer.json["id"]

    with ThreadPoolExecutor(20) as pool:
        answers = set(pool.map(send, range(20)))
    assert len(answers) == 1
    assert answers == {(201, listed(lab, "tag=twenty")[0])}
    assert len(listed(lab, "tag=twenty")) == 1


def test_refused_request_does_not_use_up_its_key(lab: LiveServer) -> None:
    keyed = {"headers": {"Idempotency-Key": "second try"}}
    assert lab.call("POST", "/runs", {"command": "true", "workdir": "not yet"}, **keyed).status == 422
    assert lab.call("POST", "/runs", {"command": "true"}, **keyed).status == 201


def test_sweeps_alerts_and_reruns_accept_keys(lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("true")["id"])
    for path, body in (
        ("/sweeps/wild", {"name": "keyed"}),
        (f"/runs/{run['id']}/alerts", {"message": "keyed"}),
        (f"/runs/{run['id']}/rerun", {"auto_start": False}),
    ):
        first, second = (lab.call("POST", path, body, headers={"Idempotency-Key": "k"}) for _ in range(2))
        assert (first.status, first.json["id"]) == (second.status, second.json["id"]) == (201, first.json["id"])


def test_diff_since_submit_is_shown_even_without_the_folder(lab: LiveServer) -> None:
    folder = lab.project / "code"
    folder.mkdir()
    (folder / "train.py").write_text("1\n")
    run = ready(lab, workdir="code")
    (folder / "train.py").write_text("2\n")
    shown = lab.call("GET", f"/runs/{run['id']}/diff")
    assert shown.status == 200
    assert b"train.py" in shown.body
    (folder / "train.py").unlink()
    folder.rmdir()
    assert lab.call("GET", f"/runs/{run['id']}/diff").status in (200, 409)


def test_rerun_without_its_snapshot_is_refused(lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("true", use_snapshot=True)["id"])
    for kept in (lab.state / "snapshots").rglob(f"{run['snapshot']['hash']}.json"):
        kept.unlink()
    answer = lab.call("POST", f"/runs/{run['id']}/rerun", {})
    assert answer.status == 409 and "has been deleted" in answer.json["error"]["message"]


def test_run_without_its_environment_fails_and_cannot_be_repeated(lab: LiveServer) -> None:
    kept = lab.state / "environments"
    before = set(kept.glob("*")) if kept.exists() else set()
    run = lab.post("/runs", {"command": "true", "caller_env": {"ONLY_HERE": "1"}})
    for path in set(kept.glob("*")) - before:
        path.unlink()
    lab.post(f"/runs/{run['id']}/start")
    ended = lab.wait_for_end(run["id"])
    assert ended["status"] == "failed" and "no longer stored" in ended["error"]
    answer = lab.call("POST", f"/runs/{run['id']}/rerun", {})
    assert answer.status == 409 and "no longer stored" in answer.json["error"]["message"]


def test_name_wins_over_an_id_prefix_but_not_over_an_id(lab: LiveServer) -> None:
    other = lab.submit("true")["id"]
    beginning = other.removeprefix("run-")[:4]
    named = lab.submit("true", name=beginning)["id"]
    posing = lab.submit("true", name=other)["id"]
    assert lab.get(f"/runs/{beginning}")["id"] == named
    assert lab.get(f"/runs/{other}")["id"] == other != posing
