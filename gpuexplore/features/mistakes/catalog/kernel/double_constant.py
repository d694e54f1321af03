"""A constant `0.` makes a kernel sum in float64."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass

from gpuexplore.errors import Unsupported
from gpuexplore.features.mistakes.catalog.contract import Detection, Mistake, Observation, Reading, Sign, Stage

COMPUTE_CAPABILITY = "7.5"  # of the notebook's card
LIMIT_S = 60.0
PROCESS = "gpuexplore.features.mistakes.catalog.kernel.double_constant_ptx"
FORMATS = ("f64", "f32")
_ARITHMETIC = re.compile(r"^[ \t]*(?:\{[ \t]*)?((?:add|sub|mul|fma|mad|cvt)[\w.]*)", re.M)


@dataclass(frozen=True, slots=True)
class Counted:
    """Arithmetic and conversions in a kernel's PTX by the format they compute in."""

    f64: int
    f32: int


def demonstrate(_: Stage) -> Observation:
    """Compile the notebook's kernel with and without the constant, without a GPU, and count instructions."""
    wrong, right = (counted(ptx) for ptx in compiled())
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what=f"float64 instructions in the PTX of matvec in fp32 for compute capability {COMPUTE_CAPABILITY}",
        how="computed",
        wrong=Reading(wrong.f64),
        right=Reading(right.f64),
        detection=detection(wrong),
        note="Compiled by numba-cuda, which needs no GPU for it; nothing was run.",
    )


def counted(ptx: str) -> Counted:
    """Return how many instructions of a PTX compute in float64, or convert to or from it, and how many in float32."""
    instructions = _ARITHMETIC.findall(ptx)
    f64 = sum(".f64" in instruction for instruction in instructions)
    return Counted(f64, sum(".f32" in instruction and ".f64" not in instruction for instruction in instructions))


def detection(found: Counted) -> Detection:
    """Return whether a kernel of fp32 arrays computes in float64."""
    return Detection(found.f64 > 0, f"{found.f64} instructions with .f64, {found.f32} with .f32 alone")


def compiled() -> tuple[str, str]:
    """Return the PTX of the kernel with the constant, and of the repaired one.

    A process of its own compiles them, outside the simulator of Numba that this one may run in.

    Raises:
        Unsupported: there is no compiler here, and what it said.
    """
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_ENABLE_CUDASIM"}
    command = [sys.executable, "-m", PROCESS, COMPUTE_CAPABILITY]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S, env=environment)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unsupported(f"the CUDA compiler failed: {last}; it takes pip install 'gpuexplore[cuda13]'")
    wrong, right = json.loads(done.stdout)
    return wrong, right


MISTAKE = Mistake(
    name="double-constant",
    title="Which format does a kernel of fp32 arrays compute in?",
    rows=("B4", "B6"),
    wrong="The sum of a kernel starts at the constant 0., which is a float64 in Python.",
    right="Start it at a zero of the arrays' own type.",
    wrong_code=("tmp = 0.             # float64\nfor j in range(n):\n    tmp += a[row, j] * x[j]"),
    right_code=("tmp = float32(0)\nfor j in range(n):\n    tmp += a[row, j] * x[j]"),
    why=(
        "A sum of a float64 and a float32 is a float64, so every addition is one, and every product is converted. "
        "Gaming cards have a thirty-second of the units for it, or fewer: the kernel waits for them, not for memory."
    ),
    quantity="count",
    gives_away=Sign("check", ".f64 in the PTX of a kernel whose arrays are fp32"),
    demonstrate=demonstrate,
)
