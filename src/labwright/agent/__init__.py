"""Sessions and modes: the Python surface of planning, which needs no server."""

from labwright.agent.session import AgentSession

__all__ = ["AgentSession"]
