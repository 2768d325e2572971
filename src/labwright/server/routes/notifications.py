"""/notifications: channels and deliveries. Addresses are never shown, only their hosts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from labwright.compute.notify import NotificationWorker
from labwright.domain.alert import Severity
from labwright.server.auth import PERSON, READERS, actor_of
from labwright.server.models.fields import In, Text
from labwright.server.requests import StrictJsonRoute, lab_of
from labwright.services import notifications
from labwright.store.deliveries import DeliveryStatus

router = APIRouter(prefix="/notifications", route_class=StrictJsonRoute, tags=["notifications"])


Wish = Literal["alert", "run_failed", "run_finished", "approval"]


class ChannelOut(BaseModel):
    name: str
    kind: str
    target: str
    events: list[str]
    min_severity: Severity
    problem: str
    waiting: int


class DeliveryOut(BaseModel):
    id: int
    channel: str
    kind: str
    title: str
    run_id: str | None
    alert_id: str | None
    status: DeliveryStatus
    attempts: int
    error: str
    created_at: str
    next_try_at: str | None
    ended_at: str | None


class NotificationsOut(BaseModel):
    channels: list[ChannelOut]
    deliveries: list[DeliveryOut]


class ChannelIn(In):
    kind: Literal["slack", "webhook", "desktop"]
    name: Annotated[Text, Field(min_length=1, max_length=40)] | None = Field(None, description="defaults to its kind")
    events: Annotated[list[Wish], Field(min_length=1)] = ["alert"]
    min_severity: Severity = Severity.WARNING
    url: Annotated[Text, Field(max_length=2000)] = Field("", description="stored, and never shown again")


class TestSent(BaseModel):
    deliveries: list[int]


def notifier_of(request: Request) -> NotificationWorker:
    notifier: NotificationWorker = request.app.state.notifier
    return notifier


@router.get("", response_model=NotificationsOut, dependencies=[READERS()])
def get_notifications(request: Request, limit: Annotated[int, Query(ge=0, le=1000)] = 50) -> dict[str, Any]:
    """Return the channels, and the deliveries, newest first."""
    return notifications.overview(lab_of(request), notifier_of(request), limit)


@router.post("/test", status_code=202, response_model=TestSent, dependencies=[PERSON()])
def test_notifications(request: Request) -> dict[str, list[int]]:
    """Send a test message to every channel. The response has the ids of the deliveries."""
    return {"deliveries": notifications.send_test(lab_of(request), notifier_of(request), actor_of(request))}


@router.post("/channels", status_code=201, response_model=NotificationsOut, dependencies=[PERSON()])
def add_channel(body: ChannelIn, request: Request) -> dict[str, Any]:
    """Add a channel to `labwright.toml`. It works immediately. Its address goes into a file that only you can read."""
    lab, notifier = lab_of(request), notifier_of(request)
    table = body.model_dump(mode="json", exclude={"url"}, exclude_none=True)
    notifications.add_channel(lab, notifier, table, body.url, actor_of(request))
    return notifications.overview(lab, notifier, 0)


@router.delete("/channels/{name}", status_code=204, dependencies=[PERSON()])
def remove_channel(name: str, request: Request) -> Response:
    """Remove a channel from `labwright.toml`, and its stored address."""
    notifications.remove_channel(lab_of(request), notifier_of(request), name, actor_of(request))
    return Response(status_code=204)
