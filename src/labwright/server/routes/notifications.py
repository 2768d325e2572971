"""/notifications: channels and what became of what they were sent. Addresses are never shown, only their host."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from labwright.compute.notify import Couriers
from labwright.domain.alert import Severity
from labwright.server.auth import PERSON, READERS, actor_of
from labwright.server.context import lab_of
from labwright.services import notifications
from labwright.store.deliveries import DeliveryStatus

router = APIRouter(prefix="/notifications", tags=["notifications"])


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


class TestSent(BaseModel):
    deliveries: list[int]


def couriers_of(request: Request) -> Couriers:
    couriers: Couriers = request.app.state.couriers
    return couriers


@router.get("", response_model=NotificationsOut, dependencies=[READERS()])
def get_notifications(request: Request, limit: Annotated[int, Query(ge=0, le=1000)] = 50) -> dict[str, Any]:
    """Where news goes, and the newest deliveries first."""
    return notifications.overview(lab_of(request), couriers_of(request), limit)


@router.post("/test", status_code=202, response_model=TestSent, dependencies=[PERSON()])
def test_notifications(request: Request) -> dict[str, list[int]]:
    """Send a message to every channel; look for these ids in `GET /notifications`."""
    return {"deliveries": notifications.send_test(lab_of(request), couriers_of(request), actor_of(request))}
