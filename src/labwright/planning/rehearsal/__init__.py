"""The experiment tried small before anybody approves it: whether every way through it runs, and how long all takes."""

from labwright.planning.rehearsal.on_lab import rehearse_on
from labwright.planning.rehearsal.record import Prediction, Rehearsal, Rehearse, RehearsedRun, rehearsed

__all__ = ["Prediction", "Rehearsal", "Rehearse", "RehearsedRun", "rehearse_on", "rehearsed"]
