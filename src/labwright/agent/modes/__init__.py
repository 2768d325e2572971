"""What a session can be asked to do."""

from labwright.agent.modes.plan import PlanMode

__all__ = ["PlanMode"]
