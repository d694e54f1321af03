"""A sum that is kept in a 16-bit format stands still once its terms are smaller than half of its last digit."""

import numpy as np

from gpuexplore.dtypes import dtype_named
from gpuexplore.features.mistakes.catalog.contract import Factor, Mistake, Observation, Reading, Sign, Stage
from gpuexplore.features.mistakes.catalog.subject import incorrect
from gpuexplore.measure.check.correctness import check
from gpuexplore.measure.conditions.environment import describe_environment

COUNT = 5000


def demonstrate(stage: Stage) -> Observation:
    """Add 5,000 ones one after another, the sum kept in bf16 and in fp32."""
    narrow, wide = total("bf16"), total("fp32")
    accuracy = check(
        np.array([narrow]), ((..., np.array([float(COUNT)])),), dtype_named("bf16").unit_roundoff
    )  # of rounding the sum once
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what=f"{COUNT:,} ones added one after another, each sum rounded to bf16",
        how="measured",
        wrong=Reading(narrow),
        right=Reading(wide),
        detection=incorrect(accuracy),
        factor=Factor(narrow / wide),
        note=f"In fp16, which has three binary digits more, the sum stands still at {total('fp16'):,.0f}.",
        environment=describe_environment(stage.device, ["numpy"], stage.device.cores),
    )


def total(dtype_name: str, count: int = COUNT) -> float:
    """Return the sum of `count` ones, added one after another and rounded to the format each time."""
    dtype = dtype_named(dtype_name)
    sums = np.zeros(1)
    for _ in range(count):
        sums = dtype.widen(dtype.round(sums + 1)).astype(np.float64)
    return float(sums[0])


MISTAKE = Mistake(
    name="sum-one-by-one",
    title="Where does a sum in bf16 stand still?",
    rows=("B6", "E7"),
    wrong="A long sum is kept in the 16-bit format of its terms.",
    right="Keep the sum in fp32, and round it once, when it is written.",
    wrong_code=("total = torch.zeros(1, dtype=torch.bfloat16)\nfor _ in range(5000):\n    total += 1  # 256"),
    right_code=("total = torch.zeros(1)  # fp32\nfor _ in range(5000):\n    total += 1  # 5000"),
    why=(
        "bf16 has 8 significant binary digits, so from 256 on its neighbours are 2 apart: 257 is rounded back to 256, "
        "which is even. Matrix units and libraries therefore add in fp32, whatever format the terms come in."
    ),
    quantity="sum",
    gives_away=Sign("status", "incorrect"),
    live_on=("cpu",),
    elsewhere="the format has the same digits on every device.",
    demonstrate=demonstrate,
)
