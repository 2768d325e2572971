"""The verbs of saved views: list, save, delete."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.errors import Conflict, NotFound
from labwright.store import views
from labwright.store.views import SavedView

MAX_VIEWS = 200  # more would not fit into a menu


def all_views(lab: Lab) -> list[SavedView]:
    return views.all_views(lab.db.reader())


def save(lab: Lab, view: SavedView, actor: Actor) -> None:
    """Save a view. It replaces a view with the same name."""
    with lab.db.transaction() as tx:
        names = {known.name for known in views.all_views(tx.connection)}
        if len(names | {view.name}) > MAX_VIEWS:
            raise Conflict(f"There are already {MAX_VIEWS} saved views.", hint="Delete a view first.")
        views.save(tx, view, str(actor))


def delete(lab: Lab, name: str, actor: Actor) -> None:
    with lab.db.transaction() as tx:
        if name not in {known.name for known in views.all_views(tx.connection)}:
            raise NotFound("There is no saved view with this name.", hint="List views with GET /views.")
        views.delete(tx, name, str(actor))
