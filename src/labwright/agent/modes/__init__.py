"""Modes that need no server."""

from labwright.agent.modes.plan import PlanMode

__all__ = ["PlanMode"]
