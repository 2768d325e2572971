"""How work on a plan is left for the next start of the server."""

from __future__ import annotations


class Stopping(BaseException):
    """The server ends: what is under way is left as it is, and goes on at the next start."""
