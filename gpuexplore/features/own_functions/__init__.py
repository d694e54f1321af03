"""Own functions: functions, files and operations of users, measured by the rules of ours."""

from gpuexplore.registry import Feature

FEATURE = Feature(
    "own_functions",
    functions={
        "measure": "gpuexplore.features.own_functions.functions",
        "operation": "gpuexplore.features.own_functions.declared",
    },
    implementations="gpuexplore.features.own_functions.sources",
)
