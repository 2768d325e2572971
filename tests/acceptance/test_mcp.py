"""`labwright mcp` as assistants use it: the official client, over standard input and HTTP, on a live server."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from labwright.domain.actor import Scope
from labwright.mcp.bounds import LONGEST_RESULT
from labwright.mcp.server import packaged_tools
from labwright.tokens import mint
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until
from tests.support.wilding import write_project

LABWRIGHT = str(Path(sys.executable).with_name("labwright"))
TRAIN = 'for i in 0 1 2 3; do echo "{\\"step\\": $i, \\"loss\\": 0.$i}"; done; echo "RuntimeError: boom" >&2; exit 3'
PLAN = "## 📋 Plan: short\n\n### Objective\nFind out.\n"
Talk = Callable[[Client], Awaitable[None]]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = write_project(tmp_path_factory.mktemp("mcp") / "my project")
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="4", LABWRIGHT_GRACE_SECONDS="1").start()
    yield server
    for run in server.all_runs():
        server.call("POST", f"/runs/{run['id']}/stop")
    server.stop()


@pytest.fixture(scope="module")
def address(lab: LiveServer) -> Iterator[str]:
    """Start `labwright mcp --http` on a free port."""
    command = [LABWRIGHT, "mcp", "--http", "--port", "0", "--project", str(lab.project)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    line = process.stderr.readline()
    assert line.startswith("MCP at http://127.0.0.1:"), line
    found = line.split()[-1]
    wait_until(lambda: _answers(found), "the MCP server to answer")
    yield found
    process.terminate()
    process.wait(timeout=60)
    process.stderr.close()


def _answers(address: str) -> bool:
    try:
        return post(address, {}).status == 401
    except ConnectionError:
        return False


def over_stdio(lab: LiveServer, talk: Talk, mode: str = "auto") -> None:
    command = StdioServerParameters(command=LABWRIGHT, args=["mcp", "--project", str(lab.project)])
    _converse(lambda: _client(Client(command, mode=mode)), talk)


def over_http(address: str, token: str, talk: Talk) -> None:
    @asynccontextmanager
    async def connected() -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as wire,
            Client(streamable_http_client(address, http_client=wire)) as client,
        ):
            yield client

    _converse(connected, talk)


@asynccontextmanager
async def _client(client: Client) -> AsyncIterator[Client]:
    async with client:
        yield client


def _converse(connect: Callable[[], Any], talk: Talk) -> None:
    async def conversation() -> None:
        async with connect() as client:
            await talk(client)

    anyio.run(conversation)


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    text = await said(client, tool, **arguments)
    return json.loads(text)


async def said(client: Client, tool: str, *, wrong: bool = False, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    [content] = result.content
    assert content.type == "text"
    assert bool(result.is_error) == wrong, content.text
    return content.text


async def a_day_in_the_lab(client: Client) -> None:
    assert (await call(client, "get_cluster"))["type"] == "cpu_only"
    assert (await call(client, "detect_cluster"))["type"] == "cpu_only"
    sweep = await call(client, "create_wild_sweep", name="why", goal="which loss?")
    runs = [
        await call(client, "create_run", command=TRAIN, name=f"seed {seed}", seed=seed, sweep_id=sweep["id"])
        for seed in (0, 1)
    ]
    ids = [run["id"] for run in runs]
    waited = await call(client, "wait_for_run", run_ids=ids, max_seconds=30)
    assert not waited["timed_out"]
    assert {run["status"] for run in waited["ended"]} == {"failed"}
    listed = await call(client, "list_runs", sweep_id=sweep["id"], status=["failed"])
    assert {run["id"] for run in listed["runs"]} == set(ids)
    shown = await call(client, "get_run", run_id=ids[0])
    assert (shown["created_by"], shown["exit_code"]) == ("agent:mcp", 3)
    assert "boom" in (await call(client, "digest_logs", run_id=ids[0]))["first_error"]
    assert (await call(client, "read_logs", run_id=ids[0], limit=7))["content"].endswith("boom\n")
    assert (await call(client, "read_logs", run=ids[0], grep="boom"))["content"] == "RuntimeError: boom"
    assert (await call(client, "get_metrics", run_id=ids[0]))["keys"] == ["loss"]
    compared = await call(client, "compare_metrics", run_ids=ids, key="loss", max_points=20)
    assert compared["mean_over_all"]["n"] == compared["curves"]["groups"][0]["n"] == 2
    assert "evidence" not in json.dumps(compared)
    again = await call(client, "rerun_run", run_id=ids[0], command="sleep 60")
    assert (await call(client, "stop_run", run_id=again["id"]))["id"] == again["id"]
    assert (await call(client, "wait_for_run", run_ids=[again["id"]], max_seconds=30))["ended"][0][
        "status"
    ] == "stopped"
    later = await call(client, "create_run", command="true", auto_start=False)
    assert (await call(client, "start_run", run_id=later["id"]))["status"] == "queued"


async def sweeps_alerts_and_plans(client: Client) -> None:
    grid = await call(
        client,
        "create_sweep",
        name="grid",
        base_command='printf \'{"step": 1, "acc": %s}\\n\' {lr}',
        parameters={"lr": [1, 2]},
        metric={"key": "acc", "goal": "max"},
    )
    assert (await call(client, "wait_for_sweep", sweep_id=grid["id"], max_seconds=60))["sweep"]["status"] == "completed"
    assert (await call(client, "get_sweep", sweep_id=grid["id"]))["progress"]["finished"] == 2
    results = await call(client, "get_sweep_results", sweep_id=grid["id"])
    assert results["best"]["params"] == results["configurations"][0]["params"] == {"lr": 2}
    wild = await call(client, "create_wild_sweep", name="w", goal="g")
    assert (await call(client, "stop_sweep", sweep_id=wild["id"]))["status"] == "stopped"
    assert wild["id"] in [sweep["id"] for sweep in (await call(client, "list_sweeps"))["sweeps"]]
    run = await call(client, "create_run", command="false")
    await call(client, "wait_for_run", run_ids=[run["id"]], max_seconds=30)
    [alert] = [alert for alert in (await call(client, "list_alerts"))["alerts"] if alert["run_id"] == run["id"]]
    answered = await call(client, "respond_to_alert", alert_id=alert["id"], choice="ignore")
    assert (answered["status"], answered["answered_by"]) == ("resolved", "agent:mcp")
    plan = await call(client, "create_plan", title="short", goal="Find out.", raw_markdown=PLAN)
    assert plan["format"]["valid"] is False
    assert plan["format"]["errors"][0]["hint"]
    assert (await call(client, "change_plan", plan_id=f"@{plan['id']}", title="longer"))["version"] == 2
    assert (await call(client, "get_plan", plan_id=plan["id"]))["raw_markdown"] == PLAN
    assert plan["id"] in [found["id"] for found in (await call(client, "list_plans"))["plans"]]
    refused = await said(client, "execute_plan", wrong=True, plan_id=plan["id"])
    assert "not ready to run" in refused
    assert "not compiled yet" in await said(client, "validate_plan", wrong=True, plan_id=plan["id"])
    assert (await call(client, "compile_plan", plan_id=f"@{plan['id']}", rehearsal=False))["planning"]
    waited = await call(client, "wait_for_plan", plan_id=plan["id"], max_seconds=60)
    assert (waited["timed_out"], waited["plan"]["status"]) == (False, "draft")
    contents = (await client.read_resource(f"labwright://plans/{plan['id']}")).contents
    assert contents[0].text == PLAN  # type: ignore[union-attr]


async def loops_and_memories(client: Client) -> None:
    goal, budget = "tune lr: reach val_acc 0.99", {"runs": 3}
    loop = await call(client, "start_wild", goal=goal, budget=budget)
    assert (loop["budget"]["runs"], loop["criterion"]["threshold"]) == (3, 0.99)
    assert (await call(client, "pause_wild", wild_id=loop["id"]))["status"] == "paused"
    assert (await call(client, "steer_wild", wild_id="last", text="lr 0.25"))["id"] == loop["id"]
    assert (await call(client, "stop_wild", wild_id=loop["id"]))["status"] == "stopped"
    shown = await call(client, "get_wild", wild_id=loop["id"])
    assert (shown["created_by"], shown["steering"][0]["text"]) == ("agent:mcp", "lr 0.25")
    assert [found["id"] for found in (await call(client, "list_wild"))["wild"]] == [loop["id"]]
    assert (await call(client, "add_memory", text="It never rains."))["accepted"] is False
    assert await call(client, "list_memories") == {"memories": []}


def test_assistant_works_over_standard_input(lab: LiveServer) -> None:
    async def talk(client: Client) -> None:
        await a_day_in_the_lab(client)
        await sweeps_alerts_and_plans(client)
        await loops_and_memories(client)

    over_stdio(lab, talk)


def test_assistant_with_an_earlier_protocol_works(lab: LiveServer) -> None:
    async def talk(client: Client) -> None:
        assert (await call(client, "get_cluster"))["type"] == "cpu_only"

    over_stdio(lab, talk, mode="legacy")


def test_assistant_works_over_http(lab: LiveServer, address: str) -> None:
    over_http(address, mint(lab.token, Scope.AGENT, "editor", 600), a_day_in_the_lab)


def test_resources_are_runs_logs_and_plans(lab: LiveServer, address: str) -> None:
    run = lab.submit("echo of the mountains", name="echo")
    lab.wait_for_end(run["id"])

    async def talk(client: Client) -> None:
        async def text(uri: str) -> str:
            [content] = (await client.read_resource(uri)).contents
            return content.text  # type: ignore[union-attr,no-any-return]

        assert run["id"] in await text("labwright://runs")
        assert json.loads(await text(f"labwright://runs/{run['id']}"))["status"] == "finished"
        assert "of the mountains" in await text(f"labwright://runs/{run['id']}/logs")
        assert await text("labwright://plans")
        for uri in ("labwright://runs/run-0000000000", "labwright://plans/..%2f..%2fruns"):
            with pytest.raises(MCPError):
                await text(uri)

    over_http(address, lab.token, talk)


def test_no_tool_approves_deletes_or_changes_settings(lab: LiveServer) -> None:
    names = {tool["name"] for tool in packaged_tools()}
    assert not [name for name in names for word in ("approve", "review", "delete", "setting", "token") if word in name]

    async def talk(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == names
        assert not [tool.name for tool in tools if {"run", "runs"} & tool.input_schema["properties"].keys()]
        for made_up in ("../gc", "last/archive", "a?b", "", "..", "x\ny"):
            await said(client, "stop_sweep", wrong=True, sweep_id=made_up)
            await said(client, "respond_to_alert", wrong=True, alert_id=made_up, choice="stop")
            await said(client, "get_plan", wrong=True, plan_id=made_up)

    over_stdio(lab, talk)


def test_tools_act_as_an_agent_even_with_a_persons_token(lab: LiveServer, address: str) -> None:
    async def talk(client: Client) -> None:
        assert (await call(client, "get_run", run_id=(await call(client, "create_run", command="true"))["id"]))[
            "created_by"
        ] == "agent:mcp"

    over_http(address, lab.token, talk)


def test_results_have_a_bounded_size(lab: LiveServer, address: str) -> None:
    noise = "python3 -c \"print(('x' * 999 + chr(10)) * 2000)\"; echo '\\u0000'; false"
    loud = lab.submit(noise, name="n" * 200, notes="ñ" * 90_000)
    points = [{"key": f"m{key}/{'k' * 200}", "step": step, "value": 0.1} for key in range(90) for step in range(100)]
    assert lab.call("POST", f"/runs/{loud['id']}/metrics", {"points": points}).status == 202
    lab.wait_for_end(loud["id"])
    for number in range(60):
        body = {"command": "true", "name": f"{number}", "params": {f"p{i}": "v" * 300 for i in range(20)}}
        lab.post("/runs", body)

    async def talk(client: Client) -> None:
        for tool, arguments in (
            ("list_runs", {"limit": 100}),
            ("get_run", {"run_id": loud["id"]}),
            ("digest_logs", {"run_id": loud["id"]}),
            ("read_logs", {"run_id": loud["id"], "limit": 10_000}),
            ("read_logs", {"run_id": loud["id"], "grep": "x"}),
            ("get_metrics", {"run_id": loud["id"], "max_points": 500}),
        ):
            text = await said(client, tool, **arguments)
            assert len(text) <= LONGEST_RESULT + 100, tool
            json.loads(text)
        assert "more]" in await said(client, "get_metrics", run_id=loud["id"], max_points=500)
        for uri in ("labwright://runs", f"labwright://runs/{loud['id']}", f"labwright://runs/{loud['id']}/logs"):
            [content] = (await client.read_resource(uri)).contents
            assert len(content.text) <= LONGEST_RESULT + 100  # type: ignore[union-attr]

    over_http(address, lab.token, talk)


def test_wait_ends_at_its_timeout_with_the_current_status(lab: LiveServer, address: str) -> None:
    run = lab.submit("sleep 300")

    async def talk(client: Client) -> None:
        waited = await call(client, "wait_for_run", run_ids=[run["id"]], max_seconds=0.5)
        assert waited["timed_out"]
        assert [left["id"] for left in waited["not_ended"]] == [run["id"]]
        assert "Call again" in waited["hint"]
        assert "max_seconds must be 600 or less" in await said(
            client, "wait_for_run", wrong=True, run_ids=[run["id"]], max_seconds=6000
        )

    over_http(address, lab.token, talk)
    lab.post(f"/runs/{run['id']}/stop")


def test_many_waits_block_neither_other_calls_nor_the_exit(lab: LiveServer) -> None:
    run = lab.submit("sleep 300")
    command = [LABWRIGHT, "mcp", "--project", str(lab.project)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout

    def send(method: str, **message: Any) -> None:
        assert process.stdin
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, **message}) + "\n")
        process.stdin.flush()

    who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    send("initialize", id=0, params=who)
    send("notifications/initialized")
    waits = {"name": "wait_for_run", "arguments": {"run_ids": [run["id"]], "max_seconds": 600}}
    for number in range(1, 51):
        send("tools/call", id=number, params=waits)
    send("tools/call", id=99, params={"name": "get_run", "arguments": {"run_id": run["id"]}})
    assert [json.loads(process.stdout.readline())["id"] for _ in range(2)] == [0, 99]
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    process.stdout.close()
    lab.post(f"/runs/{run['id']}/stop")


def test_error_says_what_to_do(lab: LiveServer, address: str) -> None:
    async def talk(client: Client) -> None:
        assert "Hint: List runs" in await said(client, "get_run", wrong=True, run_id="nowhere")
        assert "Hint:" in await said(client, "create_run", wrong=True, command="true", sweep_id="sweep-0000000000")
        assert "command" in await said(client, "create_run", wrong=True)
        ended = await call(client, "create_run", command="true")
        await call(client, "wait_for_run", run_ids=[ended["id"]])
        assert "Hint:" in await said(client, "stop_run", wrong=True, run_id=ended["id"])

    over_http(address, lab.token, talk)


def test_unknown_argument_is_refused_with_the_right_name(lab: LiveServer, address: str) -> None:
    before = len(lab.all_runs())

    async def talk(client: Client) -> None:
        wrong = await said(client, "create_run", wrong=True, command="true", gpu=2, timeout=5)
        assert wrong.startswith("There is no argument gpu; perhaps gpus. There is no argument timeout. Hint: It takes ")
        assert "time_limit_seconds" in wrong
        assert "perhaps status" in await said(client, "list_runs", wrong=True, state="failed")
        assert "run_id is missing" in await said(client, "get_run", wrong=True, id="last")
        assert await said(client, "list_runs", wrong=True, limit=1000) == "limit must be 100 or less."
        assert await said(client, "wait_for_run", wrong=True, run_ids="last") == "run_ids must be a list."
        assert "takes none" in await said(client, "get_cluster", wrong=True, verbose=True)
        assert all(tool.input_schema["additionalProperties"] is False for tool in (await client.list_tools()).tools)

    over_http(address, lab.token, talk)
    assert len(lab.all_runs()) == before


def test_without_a_server_each_call_says_how_to_start_one(tmp_path: Path) -> None:
    """The assistant stays connected: once the server is up, the next call works."""
    server = LiveServer(tmp_path)

    async def talk(client: Client) -> None:
        assert "labwright up -d" in await said(client, "list_runs", wrong=True)
        await anyio.to_thread.run_sync(server.start)
        assert (await call(client, "list_runs"))["runs"] == []
        await anyio.to_thread.run_sync(server.restart)
        assert (await call(client, "list_runs"))["runs"] == []

    over_stdio(server, talk)
    server.stop()


def post(address: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    host, path = address.removeprefix("http://").split("/", 1)
    connection = http.client.HTTPConnection(host, timeout=60)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    connection.request("POST", f"/{path}", json.dumps(message), sent)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def test_http_needs_a_token(lab: LiveServer, address: str) -> None:
    expired = mint(lab.token, Scope.AGENT, "x", -10)
    strangers = (
        mint(lab.token, Scope.VIEWER, "x", 60),
        mint(lab.token, Scope.RUN, "run-1", 60),
        expired,
        "lw_wrong",
        "",
    )
    for token in strangers:
        assert post(address, {"Authorization": f"Bearer {token}"}).status == 401
        assert post(address, {"X-Auth-Token": token}).status == 401
    assert post(address, {}).getheader("www-authenticate") == "Bearer"
    assert post(address, {"X-Auth-Token": mint(lab.token, Scope.AGENT, "x", 60)}).status not in (401, 403, 421)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "evil.example:8485", "localhost", ""])
def test_http_refuses_a_foreign_host(lab: LiveServer, address: str, host: str) -> None:
    assert post(address, {"Authorization": f"Bearer {lab.token}", "Host": host}).status in (400, 421)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
def test_http_refuses_a_foreign_page(lab: LiveServer, address: str, origin: str) -> None:
    assert post(address, {"Authorization": f"Bearer {lab.token}", "Origin": origin}).status == 403


def test_taken_port_is_reported(lab: LiveServer, address: str) -> None:
    port = address.split(":")[2].split("/")[0]
    command = [LABWRIGHT, "mcp", "--http", "--port", port, "--project", str(lab.project)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)
    assert done.returncode == 1
    assert f"Port {port} is taken" in done.stderr
