"""A shell that can read and edit, and in which training does not work. Read `view.py` first."""

from labwright.agent.shell.command import ShellResult, execute, why_not

__all__ = ["ShellResult", "execute", "why_not"]
