"""/metrics/prometheus: the server's own figures, in the text format that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from labwright.server.auth import READERS
from labwright.server.requests import lab_of
from labwright.services.figures import Figure, figures

router = APIRouter(tags=["server"])
_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/metrics/prometheus", response_class=PlainTextResponse, dependencies=[READERS()])
def prometheus(request: Request) -> PlainTextResponse:
    """Runs by status, alerts, GPUs, disk and the server's own process; a viewer's token is enough."""
    lines = (line for figure in figures(lab_of(request)) for line in _lines(figure))
    return PlainTextResponse("".join(f"{line}\n" for line in lines), media_type=_FORMAT)


def _lines(figure: Figure) -> Iterator[str]:
    yield f"# HELP {figure.name} {figure.says}"
    yield f"# TYPE {figure.name} {'counter' if figure.only_grows else 'gauge'}"
    for labels, value in figure.values.items():
        named = ",".join(f'{name}="{text}"' for name, text in labels)
        yield f"{figure.name}{{{named}}} {value:.15g}" if named else f"{figure.name} {value:.15g}"
