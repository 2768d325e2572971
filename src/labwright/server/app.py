"""The application: its routes, the checks in front of them, and its background workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio.to_thread
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.types import ASGIApp

from labwright.agent.chats import ProjectChats
from labwright.agent.wild.proposers import ProjectProposers
from labwright.agent.wild.worker import WildWorker
from labwright.agent.worker import SessionWorker
from labwright.compute.engine import RunEngine
from labwright.compute.lab import Lab
from labwright.compute.notify import NotificationWorker, load_channels
from labwright.domain.actor import SYSTEM
from labwright.llm import Model
from labwright.llm.models import Models
from labwright.planning.worker import PlanWorker
from labwright.server import errors
from labwright.server.auth import Door
from labwright.server.express import ExpressLane
from labwright.server.openapi import ERRORS, describe
from labwright.server.routes import (
    alerts,
    cluster,
    dashboard,
    events,
    logs,
    metrics,
    models,
    notifications,
    plans,
    runs,
    server,
    sessions,
    skills,
    sweeps,
    terminal,
    tools,
    wild,
)
from labwright.server.stream import Hub
from labwright.services import alerts as alerts_verbs
from labwright.services.sweeps.worker import SweepWorker
from labwright.version import __version__

_WORKER_THREADS = 16
_EXPRESS_THREADS = 4


def make_app(lab: Lab, *, bound_to: str) -> ASGIApp:
    """Return the application: first the door, then the express lane, then the routes."""
    api = make_api(lab)
    lane = ExpressLane(api, routes=(runs.EXPRESS, metrics.EXPRESS), threads=_EXPRESS_THREADS, must_wait=lab.db.is_held)
    return Door(lane, token=lab.token, allowed_hosts=lab.settings.allowed_hosts.split(","), bound_to=bound_to)


def _planner(language_models: Models, plan_id: str) -> Model:
    """Return the model that plans: the one in the settings, or the offline rules."""
    from labwright.planning.prompts import PROMPTS
    from labwright.planning.rules import offline_model

    return language_models.answers(plan_id, PROMPTS, offline_model())


class BackgroundService(Protocol):
    """A background worker with its own threads."""

    def start(self) -> None: ...

    def close(self) -> None: ...


def make_api(lab: Lab) -> FastAPI:
    # Alert rules respond with the verb that users call.
    lab.answer_alert = lambda alert_id, choice: alerts_verbs.respond(lab, alert_id, choice, SYSTEM)
    hub = Hub(lab)
    language_models = Models(lab.paths, lab.settings)
    lab.local.withhold(language_models.key_variables)
    notifier = NotificationWorker(lab, load_channels(lab.paths))
    app = FastAPI(
        title="Labwright",
        version=__version__,
        description="Runs, sweeps, plans, logs, alerts and events of one project.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(hub, _workers(lab, notifier, language_models)),
        responses=ERRORS,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # nothing leaves the machine
    )
    app.state.lab, app.state.hub, app.state.notifier, app.state.models = lab, hub, notifier, language_models
    _add_routes(app)
    errors.install(app)
    return app


def _workers(lab: Lab, notifier: NotificationWorker, language_models: Models) -> list[BackgroundService]:
    """Return the workers in the order in which they start. The engine is first, since it follows running jobs."""
    return [
        RunEngine(lab),
        lab.gpu_history,
        notifier,
        SweepWorker(lab),
        PlanWorker(lab, partial(_planner, language_models)),
        SessionWorker(lab, ProjectChats(language_models)),
        WildWorker(lab, ProjectProposers(language_models)),
    ]


def _lifespan(hub: Hub, workers: list[BackgroundService]) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        hub.bind(asyncio.get_running_loop())
        anyio.to_thread.current_default_thread_limiter().total_tokens = _WORKER_THREADS
        for worker in workers:
            await anyio.to_thread.run_sync(worker.start)
        yield
        hub.close()
        for worker in reversed(workers):
            await anyio.to_thread.run_sync(worker.close)

    return lifespan


def _add_routes(app: FastAPI) -> None:
    project = (server, dashboard, cluster, metrics, runs, logs, sweeps, alerts, terminal, plans)
    assistant = (skills, models, sessions, wild, tools)
    routers = [module.router for module in (*project, *assistant, notifications, events)]
    for router in routers:
        app.include_router(router)
    app.mount("/assets", StaticFiles(directory=Path(__file__).with_name("assets")), name="assets")
    app.mount("/dashboard", dashboard.DashboardFiles(), name="dashboard")
    describe(app, routers)
