"""No request causes a server error, whether the API schema allows or forbids it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.live_server import LiveServer

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ENDLESS = "/events/stream"
NOT_EVEN_HTTP = b"Invalid HTTP request received."  # the HTTP layer refuses an address of 64 KB before our code sees it


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("schema") / "project"
    project.mkdir()
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="1").start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def known(lab: LiveServer) -> dict[str, str]:
    """Ids that exist, so that requests pass the first check."""
    run = lab.wait_for_end(lab.submit("echo hello")["id"])["id"]
    alert = lab.post(f"/runs/{run}/alerts", {"message": "m", "choices": ["ignore"]})["id"]
    sweep = lab.post("/sweeps/wild", {"name": "s"})["id"]
    plan = lab.post("/plans", {"title": "t", "goal": "g", "raw_markdown": "x"})["id"]
    return {"run_id": run, "alert_id": alert, "sweep_id": sweep, "plan_id": plan}


@pytest.mark.parametrize("examples", [2, pytest.param(40, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_valid_or_invalid_request_causes_a_server_error(
    lab: LiveServer, known: dict[str, str], mode: GenerationMode, examples: int
) -> None:
    schema = schemathesis.openapi.from_dict(lab.call("GET", "/openapi.json", token=None).json)
    session = requests.Session()
    session.trust_env = False
    tried = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path == ENDLESS:
            continue
        tried += try_operation(lab, session, operation, settings(max_examples=examples), mode, known)
    assert tried > 150


def try_operation(
    lab: LiveServer,
    session: requests.Session,
    operation: Any,
    amount: settings,
    mode: GenerationMode,
    known: dict[str, str],
) -> int:
    count = 0

    @settings(
        amount,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
    def attempt(case: Any, real: bool) -> None:
        nonlocal count
        count += 1
        if real and operation.method.upper() != "DELETE":
            for name in set(case.path_parameters) & set(known):
                case.path_parameters[name] = known[name]
        if isinstance(case.body, dict) and "auto_start" in case.body:
            case.body["auto_start"] = False  # generated commands must not be run
        # One connection each: the server may close an open one while a slow machine generates the next case.
        headers = {"X-Auth-Token": lab.token, "Host": lab.url.removeprefix("http://"), "Connection": "close"}
        response = case.call(base_url=lab.url, session=session, headers=headers, timeout=60)
        if response.content != NOT_EVEN_HTTP:
            case.validate_response(response, checks=CHECKS)

    with contextlib.suppress(Unsatisfiable):  # a route without input cannot get wrong input
        attempt()
    return count
