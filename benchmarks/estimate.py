"""How far estimates are from what runs take: ten requests by the command, first in an empty home, then once more.

    python -m benchmarks.estimate [--made]

With `--made` a simulated device takes them, which has units for every dtype and calls of 1 TFLOP/s.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ASKED = (
    ("matmul", "--size", "64", "--dtype", "fp32", "--impl", "numpy"),
    ("matmul",),
    ("matmul", "--size", "128,512", "--dtype", "fp16"),
    ("matmul", "--size", "1500", "--dtype", "fp32"),
    ("vector_add",),
    ("softmax", "--dtype", "fp32,bf16"),
    ("layer_norm", "--dtype", "fp16"),
    ("linear", "--budget", "0.5", "--dtype", "fp32"),
    ("attention", "--dtype", "fp32"),
    ("conv2d", "--dtype", "fp32,bf16"),
)
ESTIMATE = """
import sys
from contextlib import suppress
from gpuexplore.analysis.run.estimate import estimate
from gpuexplore.cli import experiment_arguments, run_command
from gpuexplore.hardware import discover
from gpuexplore.request import resolve
import argparse
parser = argparse.ArgumentParser()
run_command.add_arguments(parser)
arguments, devices = parser.parse_args(sys.argv[1:]), discover()
request = experiment_arguments.request_from(arguments, arguments.operation, devices)
experiment = resolve(request, [device.id for device in devices])
used = [device for device in devices if device.id in experiment.devices]
print(estimate(experiment, used, run_command._earlier(used), cold=True).seconds)
"""
FACTOR = 2


def main() -> int:
    """Print estimate, duration and ratio of each run, and how many are within a factor of two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--made", action="store_true", help="on a simulated device")
    made = parser.parse_args().made
    own = ("--device", "simulated:0" if made else "cpu")
    ratios = []
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"GPUEXPLORE_HOME": home, "GPUEXPLORE_SIMULATED_DEVICES": "1" if made else "0"}
        for again in (False, True):
            ratios += [_ratio((*asked, *own), environment, again=again) for asked in ASKED]
    within = sum(1 / FACTOR <= ratio <= FACTOR for ratio in ratios)
    print(f"{within} of {len(ratios)} within a factor of {FACTOR}")
    return 0 if within >= 0.9 * len(ratios) else 1


def _ratio(asked: tuple[str, ...], environment: dict[str, str], *, again: bool) -> float:
    expected = float(_output([sys.executable, "-c", ESTIMATE, *asked], environment))
    began = time.monotonic()
    report = json.loads(_output([sys.executable, "-m", "gpuexplore", "run", *asked, "--json"], environment))
    lasted_s = time.monotonic() - began
    when = "again" if again else "first"
    cases = len(report["results"])
    print(f"{when}  {expected:6.1f} s  {lasted_s:6.1f} s  {expected / lasted_s:5.2f}  {cases} of {' '.join(asked)}")
    return expected / lasted_s


def _output(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, check=False, env=environment, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
