"""Checks that a call may start, computes correctly, and leaves the state of the process unchanged."""

from gpuexplore.measure.check.correctness import check, describe, tolerance
from gpuexplore.measure.check.elements import judge, widest_tolerance
from gpuexplore.measure.check.group import (
    MIN_CALLS,
    Group,
    array_bytes,
    check_duration,
    check_memory,
    estimate_call_s,
    groups_of,
    host_bytes,
    host_bytes_of_large,
    limit_s,
    needed_bytes,
    open_at_once,
    open_group,
    work,
)
from gpuexplore.measure.check.inputs import AnyReference, Reference, make_inputs

__all__ = [
    "MIN_CALLS",
    "AnyReference",
    "Group",
    "Reference",
    "array_bytes",
    "check",
    "check_duration",
    "check_memory",
    "describe",
    "estimate_call_s",
    "groups_of",
    "host_bytes",
    "host_bytes_of_large",
    "judge",
    "limit_s",
    "make_inputs",
    "needed_bytes",
    "open_at_once",
    "open_group",
    "tolerance",
    "widest_tolerance",
    "work",
]
