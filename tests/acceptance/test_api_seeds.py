"""The prompts' curl lines, verbatim, with `{{server_url}}` and `{{auth_header}}` filled in."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.live_server import LiveServer

DETECT = "curl -X POST {{server_url}}/cluster/detect {{auth_header}}"
CLUSTER = "curl -X GET {{server_url}}/cluster {{auth_header}}"
DOCS = "curl -sf {{server_url}}/docs > /dev/null"
OPENAPI = "curl -sf {{server_url}}/openapi.json > /dev/null"
SWEEP_OF_PLAN_MODE = r"""curl -X POST {{server_url}}/sweeps/wild \
-H "Content-Type: application/json" \
{{auth_header}} \
-d '{"name": "descriptive-sweep-name", "goal": "what this sweep tests"}'"""
SWEEP_OF_AGENT_MODE = r"""curl -X POST {{server_url}}/sweeps/wild \
  -H "Content-Type: application/json" \
  {{auth_header}} \
  -d '{"name": "sweep-name", "goal": "what this tests"}'"""
RUN_OF_PLAN_MODE = r"""curl -X POST {{server_url}}/runs \
-H "Content-Type: application/json" \
{{auth_header}} \
-d '{
"name": "trial-name",
"command": "source .venv/bin/activate && cd /path && python train.py --lr 0.001",
"sweep_id": "<sweep_id>",
"auto_start": true,
"gpuwrap_config": {"enabled": true}
}'"""
RUN_OF_AGENT_MODE = r"""curl -X POST {{server_url}}/runs \
  -H "Content-Type: application/json" \
  {{auth_header}} \
  -d '{
    "name": "trial-name",
    "command": "cd /path/to/workdir && python train.py --lr 0.001",
    "sweep_id": "<sweep_id>",
    "auto_start": true,
    "gpuwrap_config": {"enabled": true}
  }'"""
RUNS = "curl -X GET {{server_url}}/runs {{auth_header}}"
LOGS = "curl -X GET {{server_url}}/runs/{id}/logs {{auth_header}}"
TRAIN = 'import sys\nprint("trained with", *sys.argv[1:])\n'


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("seeds") / "project"
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "activate").write_text("export ACTIVATED=1\n")
    server = LiveServer(project).start()
    yield server
    server.stop()


@pytest.fixture(scope="module", params=["header", "header file", "bearer"])
def auth_header(request: pytest.FixtureRequest, lab: LiveServer) -> str:
    """Return the header as the prompts render it: the token itself, or a file that only its owner can read."""
    if request.param == "header":
        return f'-H "X-Auth-Token: {lab.token}"'
    if request.param == "bearer":
        return f'-H "Authorization: Bearer {lab.token}"'
    file = lab.project / "header"
    file.touch(0o600)
    file.write_text(f"X-Auth-Token: {lab.token}\n")
    return f"-H @{file}"


def sh(lab: LiveServer, line: str, auth_header: str, **filled: str) -> Any:
    for name, value in {"{{server_url}}": lab.url, "{{auth_header}}": auth_header, **filled}.items():
        line = line.replace(name, value)
    assert "{{" not in line
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True, env=environment, timeout=60)
    return json.loads(done.stdout) if done.stdout else None


def test_cluster_is_detected_and_shown(lab: LiveServer, auth_header: str) -> None:
    detected = sh(lab, DETECT, auth_header)
    assert detected["cluster"]["type"] in ("local_gpu", "slurm", "cpu_only")
    shown = sh(lab, CLUSTER, auth_header)
    assert shown["cluster"]["status"] == "healthy"
    assert shown["cluster"]["gpu_count"] == len(shown["cluster"]["gpus"])
    assert shown["cluster"]["evidence"]
    assert "finished" in shown["run_summary"]


def test_live_documentation_is_served(lab: LiveServer, auth_header: str) -> None:
    sh(lab, DOCS, auth_header)
    sh(lab, OPENAPI, auth_header)


@pytest.mark.parametrize("line", [SWEEP_OF_PLAN_MODE, SWEEP_OF_AGENT_MODE])
def test_curl_line_creates_a_sweep(lab: LiveServer, auth_header: str, line: str) -> None:
    sweep = sh(lab, line, auth_header)
    assert sweep["id"].startswith("sweep-")
    assert sweep["goal"].startswith("what this")
    assert sweep["progress"]["total"] == 0


@pytest.mark.parametrize(("line", "seeds_path"), [(RUN_OF_PLAN_MODE, "/path"), (RUN_OF_AGENT_MODE, "/path/to/workdir")])
def test_curl_lines_create_a_run_in_the_sweep_and_watch_it(
    lab: LiveServer, auth_header: str, line: str, seeds_path: str
) -> None:
    """An existing folder replaces the prompt's example folder; nothing else is changed."""
    folder = lab.project / "work dir"
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(TRAIN)
    (lab.project / "bin").mkdir(exist_ok=True)
    sweep = sh(lab, SWEEP_OF_AGENT_MODE, auth_header)
    line = line.replace(f"cd {seeds_path} ", f"cd {str(folder).replace(' ', chr(92) * 2 + ' ')} ")
    line = line.replace("python train.py", "python3 train.py")
    run = sh(lab, line, auth_header, **{"<sweep_id>": sweep["id"]})
    assert run["sweep_id"] == sweep["id"]
    if lab.get("/cluster")["cluster"]["type"] == "cpu_only":
        assert any("gpuwrap is off" in warning for warning in run["warnings"])
    lab.wait_for_end(run["id"])
    listed = {found["id"]: found for found in sh(lab, RUNS, auth_header)}
    assert listed[run["id"]]["status"] == "finished"
    logs = sh(lab, LOGS, auth_header, **{"{id}": run["id"]})
    assert logs["content"] == "trained with --lr 0.001\n"


def test_unchanged_example_fails_with_the_shells_message(lab: LiveServer, auth_header: str) -> None:
    sweep = sh(lab, SWEEP_OF_AGENT_MODE, auth_header)
    run = sh(lab, RUN_OF_AGENT_MODE, auth_header, **{"<sweep_id>": sweep["id"]})
    assert lab.wait_for_end(run["id"])["status"] == "failed"
    assert "/path/to/workdir" in sh(lab, LOGS, auth_header, **{"{id}": run["id"]})["content"]


def test_missing_sweep_id_is_reported(lab: LiveServer, auth_header: str) -> None:
    """A model that copies the placeholder gets an error that says what to do, and no run."""
    error = sh(lab, RUN_OF_AGENT_MODE, auth_header)["error"]
    assert "sweep_id" in error["message"]


def test_documentation_needs_no_internet(lab: LiveServer, auth_header: str) -> None:
    page = lab.call("GET", "/docs", token=None)
    text = page.body.decode()
    assert "https://" not in text.replace("https://fastapi.tiangolo.com", "")
    for asset in ("assets/swagger-ui-bundle.js", "assets/swagger-ui.css", "assets/favicon.svg"):
        assert asset in text
        assert lab.call("GET", f"/{asset}", token=None).status == 200
