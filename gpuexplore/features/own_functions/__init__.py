"""Own functions: functions, files and operations of users, measured by the rules of ours."""

from gpuexplore.registry import Feature

FEATURE = Feature("own_functions")
