"""Launches one kernel of ours at awkward shapes, for a tool that watches it: OPERATION IMPLEMENTATION DTYPE."""

import sys
from time import perf_counter_ns

from gpuexplore.core.dtypes import dtype_named
from gpuexplore.core.model import Case
from gpuexplore.hardware import device_named, discover
from gpuexplore.measure import prepare_process
from gpuexplore.measure.candidates.candidate import build_candidate
from gpuexplore.measure.check.inputs import make_inputs
from gpuexplore.operations import operation_named
from gpuexplore.operations.contract import awkward_shapes


def main(operation, implementation, dtype):
    prepare_process()
    known, kind, clock = operation_named(operation), dtype_named(dtype), perf_counter_ns
    device = device_named("cuda:0", discover())
    for shape in awkward_shapes(known):
        case = Case(operation, shape, dtype, implementation, device.id)
        inputs = make_inputs(known, shape, kind, "normal")
        build_candidate(case, known, device, inputs=inputs, clock=clock).first_call_s(clock)


if __name__ == "__main__":
    main(*sys.argv[1:])
