"""What makes a workspace not fit to run. The rules are ours, never a model's. `registry.py` has the order."""

from labwright.planning.checks.registry import check_workspace

__all__ = ["check_workspace"]
