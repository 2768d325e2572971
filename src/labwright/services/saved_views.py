"""The verbs of saved views: list, save, delete."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.errors import Conflict, NotFound
from labwright.store import views
from labwright.store.views import SavedView

AT_MOST = 200  # a menu that anybody can still read


def all_views(lab: Lab) -> list[SavedView]:
    return views.all_views(lab.db.reader())


def save(lab: Lab, view: SavedView, actor: Actor) -> None:
    """In the place of one with the same name."""
    with lab.db.transaction() as tx:
        names = {known.name for known in views.all_views(tx.connection)}
        if len(names | {view.name}) > AT_MOST:
            raise Conflict(f"There are {AT_MOST} saved views already.", hint="Delete one that nobody needs.")
        views.save(tx, view, str(actor))


def delete(lab: Lab, name: str, actor: Actor) -> None:
    with lab.db.transaction() as tx:
        if name not in {known.name for known in views.all_views(tx.connection)}:
            raise NotFound("There is no saved view of this name.", hint="List them with GET /views.")
        views.delete(tx, name, str(actor))
