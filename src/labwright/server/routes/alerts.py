"""/alerts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from labwright.domain.alert import Alert, AlertStatus
from labwright.server.auth import READERS, WRITERS, actor_of
from labwright.server.models.fields import In, Tag
from labwright.server.requests import StrictJsonRoute, lab_of
from labwright.services import alerts, ownership

router = APIRouter(prefix="/alerts", route_class=StrictJsonRoute, tags=["alerts"])


class AlertAnswer(In):
    choice: Tag


@router.get("", response_model=list[Alert], dependencies=[READERS()])
def list_alerts(
    request: Request,
    response: Response,
    status: AlertStatus | None = None,
    run_id: str | None = None,
    sweep_id: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> list[dict[str, Any]]:
    """List alerts, newest first."""
    found, following = alerts.page(lab_of(request), status, run_id, sweep_id, limit, cursor)
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)
    return [alert.to_dict() for alert in found]


@router.get("/{alert_id}", response_model=Alert, dependencies=[READERS()])
def get_alert(alert_id: str, request: Request) -> dict[str, Any]:
    """Return one alert."""
    return alerts.get(lab_of(request), alert_id).to_dict()


@router.post("/{alert_id}/respond", response_model=Alert, dependencies=[WRITERS()])
def respond_to_alert(alert_id: str, body: AlertAnswer, request: Request) -> dict[str, Any]:
    """Answer an alert. `stop` and `rerun` act on the run. An agent may end only what it started."""
    ownership.check_answer(lab_of(request), alert_id, body.choice, actor_of(request))
    return alerts.respond(lab_of(request), alert_id, body.choice, actor_of(request)).to_dict()
