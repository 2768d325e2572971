"""Saved views of the run table, stored by the server for every browser."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from labwright.domain.actor import Scope
from labwright.tokens import mint
from tests.support.live_server import LiveServer


def test_view_survives_a_kill_and_is_replaced_by_name(server: LiveServer) -> None:
    assert server.get("/views") == []
    for query in ("q=old", "q=new&sort=m:loss"):
        assert server.call("PUT", "/views", {"name": "mine", "query": query}).status == 200
    server.restart()
    assert server.get("/views") == [{"name": "mine", "query": "q=new&sort=m:loss"}]
    assert [event["type"] for event in server.get("/events?types=view.saved")] == ["view.saved", "view.saved"]
    assert server.call("DELETE", "/views?name=mine").status == 204
    assert server.call("DELETE", "/views?name=mine").status == 404
    assert server.get("/views") == []


@pytest.mark.parametrize("name", ["..", "a/b", "<script>", "größer", "%2e%2e"])
def test_any_name_can_be_deleted(lab: LiveServer, name: str) -> None:
    assert lab.call("PUT", "/views", {"name": name, "query": ""}).status == 200
    assert name in [view["name"] for view in lab.get("/views")]
    assert lab.call("DELETE", f"/views?name={quote(name, safe='')}").status == 204


@pytest.mark.parametrize(
    "body",
    [{"name": "", "query": ""}, {"name": "x" * 61, "query": ""}, {"name": "x", "query": "y" * 4001}, {"name": "x"}],
)
def test_invalid_view_is_refused(lab: LiveServer, body: dict[str, str]) -> None:
    assert lab.call("PUT", "/views", body).status == 422


def test_viewer_reads_views_and_changes_none(lab: LiveServer) -> None:
    viewer = mint(lab.token, Scope.VIEWER, "guest", 600.0)
    assert lab.call("GET", "/views", token=viewer).status == 200
    assert lab.call("PUT", "/views", {"name": "x", "query": ""}, token=viewer).status == 403


def test_number_of_views_is_limited(server: LiveServer) -> None:
    for number in range(200):
        assert server.call("PUT", "/views", {"name": f"view {number}", "query": ""}).status == 200
    assert server.call("PUT", "/views", {"name": "one more", "query": ""}).status == 409
    assert server.call("PUT", "/views", {"name": "view 7", "query": "q=x"}).status == 200
