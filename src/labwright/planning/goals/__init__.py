"""Reading goals in plain English by rules. `reading.py` has the order in which the rules are asked."""

from labwright.planning.goals.facts import Budget, Goal, GoalReading, Question, Variation
from labwright.planning.goals.reading import read_goal

__all__ = ["Budget", "Goal", "GoalReading", "Question", "Variation", "read_goal"]
