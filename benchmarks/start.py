"""How long commands take from the shell to their end, beside what Python and the libraries take alone, in turns.

    python -m benchmarks.start [--turns N]

Each turn runs every command once, in random order, in one home that an untimed turn has filled. The aims are 0.3 s for
`list`, 1.0 s for one case in NumPy and 2.5 s with torch. It asserts nothing.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from statistics import median

PYTHON = (sys.executable,)
APP = (sys.executable, "-m", "gpuexplore")
RUN = (*APP, "run", "matmul", "--size", "64", "--dtype", "fp32", "--impl")
COMMANDS: Mapping[str, tuple[Sequence[str], float | None]] = {
    "python -c pass": ((*PYTHON, "-c", "pass"), None),
    "import numpy": ((*PYTHON, "-c", "import numpy"), None),
    "import torch": ((*PYTHON, "-c", "import torch"), None),
    "gpuexplore list": ((*APP, "list"), 0.3),
    "gpuexplore run, numpy": ((*RUN, "numpy"), 1.0),
    "gpuexplore run, torch": ((*RUN, "torch"), 2.5),
}
SEED = 3
UNSET = ("OPENBLAS_CORETYPE", "PYTHONDONTWRITEBYTECODE")  # another BLAS; modules compiled at each start


def main() -> None:
    """Print the median and the range of each command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    turns = parser.parse_args().turns
    order, found = random.Random(SEED), {name: list[float]() for name in COMMANDS}
    with tempfile.TemporaryDirectory() as home:
        environment = {key: value for key, value in os.environ.items() if key not in UNSET}
        environment["GPUEXPLORE_HOME"] = home
        for turn in range(turns + 1):
            for name in order.sample(list(COMMANDS), len(COMMANDS)):
                lasted_s = _seconds(COMMANDS[name][0], environment)
                if turn:
                    found[name].append(lasted_s)
    for name, (_, aim_s) in COMMANDS.items():
        times = sorted(found[name])
        aim = f"  aim {aim_s} s" if aim_s else ""
        print(f"{name:24} {median(times):5.2f} s  ({times[0]:.2f} to {times[-1]:.2f}){aim}")


def _seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
