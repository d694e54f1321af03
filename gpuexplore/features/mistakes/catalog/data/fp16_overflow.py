"""A sum in fp16 passes 65,504 and is infinite from there on."""

import numpy as np

from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Reading, Sign, Stage
from gpuexplore.features.mistakes.catalog.subject import incorrect
from gpuexplore.measure.check.correctness import check
from gpuexplore.measure.conditions.environment import describe_environment

COUNT = 65_536
ALLOWED = 2.0**-11  # of rounding the sum to fp16


def demonstrate(stage: Stage) -> Observation:
    """Take the dot product of 65,536 ones with as many, in fp16 and in fp32."""
    narrow, wide = dot(np.float16), dot(np.float32)
    accuracy = check(np.array([narrow]), ((..., np.array([float(COUNT)])),), ALLOWED)
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what=f"dot product of {COUNT:,} ones, numpy",
        how="measured",
        wrong=Reading(narrow) if np.isfinite(narrow) else Reading(None, text=str(narrow)),
        right=Reading(wide),
        detection=incorrect(accuracy),
        note="fp16 ends at 65,504; half as many ones, 32,768, still fit.",
        environment=describe_environment(stage.device, ["numpy"], stage.device.cores),
    )


def dot(dtype: type[np.floating], count: int = COUNT) -> float:
    """Return the dot product of `count` ones with as many, its result in `dtype`."""
    ones = np.ones(count, dtype)
    with np.errstate(over="ignore"):
        return float(np.dot(ones, ones))


MISTAKE = Mistake(
    name="fp16-overflow",
    title="How far does fp16 count?",
    rows=("D2", "E7"),
    wrong="A long sum is written in fp16, and the time is told without a look at the result.",
    right="Check the output for what is not finite; keep long sums in fp32, or use bf16.",
    wrong_code=("x = np.ones(65_536, np.float16)\nnp.dot(x, x)         # inf"),
    right_code=("x = np.ones(65_536, np.float32)\nnp.dot(x, x)         # 65536.0"),
    why=(
        "fp16 has 5 bits of exponent, so nothing above 65,504 exists in it. "
        "The sum may be kept in fp32: when it is written as fp16 it becomes infinite, and so does all that follows."
    ),
    quantity="sum",
    gives_away=Sign("status", "incorrect"),
    live_on=("cpu",),
    elsewhere="the format ends at the same number on every device.",
    demonstrate=demonstrate,
)
