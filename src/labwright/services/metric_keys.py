"""Which metrics a question is about: keys one by one, or several with commas between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def meant_keys(asked: Iterable[str], known: Collection[str]) -> set[str]:
    """A key of the run is that key, also with commas in it; anything else is taken apart at its commas."""
    meant: set[str] = set()
    for text in asked:
        meant.update([text] if text in known else (part.strip() for part in text.split(",")))
    return meant - {""}
