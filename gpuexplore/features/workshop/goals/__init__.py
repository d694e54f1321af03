"""Goals: what a class is asked to reach, in one sentence, and whether a run reached it, judged by the run alone."""

from gpuexplore.features.workshop.goals.judge import Judged, judge
from gpuexplore.features.workshop.goals.kinds import KINDS, Goal, goal_of, read_guess

__all__ = ["KINDS", "Goal", "Judged", "goal_of", "judge", "read_guess"]
