"""Runs CPU kernels of ours once in fp32 and prints what Numba compiled and what it found on disk, as JSON.

Usage: python -m tests.operations.cached.
"""

import gc
import json

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Case, Options
from gpuexplore.hardware.cpu import cpu_device
from gpuexplore.measure.candidates.candidate import build_candidate
from gpuexplore.measure.check.inputs import make_inputs
from gpuexplore.operations import OPERATIONS
from tests.operations.shapes import awkward_shapes


def main():
    device, dtype = cpu_device(), DTYPES["fp32"]
    for operation in OPERATIONS.values():
        for implementation in operation.implementations:
            if implementation.backend == "numba_cpu":
                shape = awkward_shapes(operation)[-1]
                case = Case(operation.name, shape, dtype.name, implementation.name, "cpu", Options())
                inputs = make_inputs(operation, shape, dtype, "normal")
                build_candidate(case, operation, device, inputs=inputs, clock=lambda: 0).run()
    from numba.core.registry import CPUDispatcher

    kept = [
        get_object.stats
        for get_object in gc.get_objects()
        if isinstance(get_object, CPUDispatcher) and get_object.stats.cache_path
    ]
    misses = sum(sum(stats.cache_misses.values()) for stats in kept)
    hits = sum(sum(stats.cache_hits.values()) for stats in kept)
    print(json.dumps({"compiled": misses, "loaded": hits}))  # noqa: T201 the parent reads it


if __name__ == "__main__":
    main()
