"""/views: the table of runs as somebody wants to see it again, from any browser."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from labwright.server.auth import PERSON, READERS, actor_of
from labwright.server.models.meta import ViewIn, ViewOut
from labwright.server.requests import StrictJsonRoute, lab_of
from labwright.services import saved_views as views
from labwright.store.views import SavedView

router = APIRouter(prefix="/views", route_class=StrictJsonRoute, tags=["runs"])


@router.get("", response_model=list[ViewOut], dependencies=[READERS()])
def list_views(request: Request) -> list[dict[str, Any]]:
    """By name, all of them: there are 200 at most."""
    return [{"name": view.name, "query": view.query} for view in views.all_views(lab_of(request))]


@router.put("", response_model=ViewOut, dependencies=[PERSON()])
def save_view(body: ViewIn, request: Request) -> dict[str, Any]:
    """A view of the same name is replaced."""
    views.save(lab_of(request), SavedView(name=body.name, query=body.query), actor_of(request))
    return {"name": body.name, "query": body.query}


@router.delete("", status_code=204, dependencies=[PERSON()])
def delete_view(name: Annotated[str, Query(max_length=60)], request: Request) -> Response:
    """By its name as a parameter: a path would not bear every name."""
    views.delete(lab_of(request), name, actor_of(request))
    return Response(status_code=204)
