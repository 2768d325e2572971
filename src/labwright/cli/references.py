"""From what somebody typed, an id, the beginning of one or `last`, to the id."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from labwright.client.lab import LabClient
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.ids import SESSION, WILD, is_id


def wild_id_of(client: LabClient, reference: str) -> str:
    def newest_first() -> list[str]:
        return [str(wild["id"]) for wild in client.wilds()]

    return _id_of(reference, WILD, newest_first, "wild loop", "labwright wild list")


def session_id_of(client: LabClient, reference: str) -> str:
    """The last is the one that something was said in last."""

    def newest_first() -> list[str]:
        found = sorted(client.sessions(), key=lambda session: str(session["updated_at"]), reverse=True)
        return [str(session["id"]) for session in found]

    return _id_of(reference, SESSION, newest_first, "conversation", "labwright sessions")


def _id_of(reference: str, kind: str, newest_first: Callable[[], Sequence[str]], noun: str, lists: str) -> str:
    if is_id(reference, kind):
        return reference
    found = newest_first()
    prefix = reference if reference.startswith(f"{kind}-") else f"{kind}-{reference}"
    begins = found[:1] if reference == "last" else [one for one in found if one.startswith(prefix)]
    if not begins:
        raise NotFound(f"There is no {noun} {reference}.", hint=f"List them with: {lists}")
    if len(begins) > 1:
        raise Invalid(f"{reference!r} is the beginning of more than one {noun}'s id.", hint="Type more of it.")
    return begins[0]
