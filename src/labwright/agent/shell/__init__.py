"""A shell that can look and edit, and in which training does not work: read `view.py` first."""

from labwright.agent.shell.command import Told, execute, why_not

__all__ = ["Told", "execute", "why_not"]
