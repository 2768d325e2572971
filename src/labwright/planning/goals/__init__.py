"""Read goals in plain English by rules. `reading.py` shows the order of the rules."""

from labwright.planning.goals.facts import Budget, GoalReading, MetricGoal, Question, Variation
from labwright.planning.goals.reading import read_goal

__all__ = ["Budget", "GoalReading", "MetricGoal", "Question", "Variation", "read_goal"]
