"""A saved view of the table of runs: its filter, order, groups and columns, by a name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    name: str
    query: str  # what stands behind the ? of the dashboard's address
