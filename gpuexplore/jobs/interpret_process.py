"""Runs the kernel that is asked for on standard input in the interpreter, and writes what it told; both pickled.

A process of its own, for it takes seconds of one core, which the web process needs for everybody else.
"""

import os
import pickle
import sys

from gpuexplore.errors import GpuExploreError
from gpuexplore.measure.check.interpreted import interpreted

NICENESS = 10  # nobody who measures or serves pages shall wait for a picture


def main() -> None:
    """Answer a `KernelLaunch` with a `BlockRun`, or with the error that says why there is none."""
    os.nice(NICENESS)
    request = pickle.load(sys.stdin.buffer)
    try:
        answer: object = interpreted(request)
    except GpuExploreError as error:
        answer = error
    pickle.dump(answer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
