"""Labwright: plans, runs and explains ML experiments from a project folder.

Kept empty on purpose: every run's sidecar imports this package, and each import here would slow its start.
"""

from labwright.version import __version__ as __version__
