"""The experiment tried small before anybody approves it: whether every way through it runs, and how long all takes."""

from labwright.planning.rehearsal.on_lab import rehearse_on
from labwright.planning.rehearsal.record import Prediction, Rehearsal, Rehearse, RehearsedRun, rehearsed
from labwright.planning.rehearsal.trials import forget_rehearsal

__all__ = ["Prediction", "Rehearsal", "Rehearse", "RehearsedRun", "forget_rehearsal", "rehearse_on", "rehearsed"]
