"""Run what was approved: a handoff goes in, sweeps and runs on the server come of it, and a report at the end."""

from labwright.planning.run_mode.again import experiments_with_failed_runs, note_failed
from labwright.planning.run_mode.approved import check_approved
from labwright.planning.run_mode.run import PlanOutcome, run_plan

__all__ = ["PlanOutcome", "check_approved", "experiments_with_failed_runs", "note_failed", "run_plan"]
