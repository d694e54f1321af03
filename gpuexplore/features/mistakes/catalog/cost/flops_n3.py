"""A product's multiplications are counted, and its additions forgotten."""

from math import prod

from gpuexplore.features.mistakes.catalog.contract import Factor, Mistake, Observation, Reading, Stage
from gpuexplore.features.mistakes.catalog.observing import no_sign
from gpuexplore.model import Shape
from gpuexplore.operations import operation_named

NOTEBOOK = Shape.of(m=1000, k=500, n=200)


def demonstrate(_: Stage) -> Observation:
    """Count the FLOPs of the notebook's product without and with its additions."""
    wrong, right = prod(NOTEBOOK), operation_named("matmul").flop_count(NOTEBOOK)
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what="FLOPs of (1000 × 500) @ (500 × 200)",
        how="computed",
        wrong=Reading(wrong),
        right=Reading(right),
        detection=no_sign(MISTAKE),
        factor=Factor(wrong / right),
    )


MISTAKE = Mistake(
    name="flops-n3",
    title="How many FLOPs has a product?",
    rows=("A4", "E5"),
    wrong="The FLOPs of a product are counted as m·n·k, n³ for a square one.",
    right="Count a multiplication and an addition as two: 2·m·n·k, as every datasheet does.",
    wrong_code="flops = m * n * k",
    right_code="flops = 2 * m * n * k",
    why=(
        "A multiplier-adder does both in one instruction, and peaks count two for it. "
        "With half the FLOPs every rate and every MFU is half of what it is, and two benchmarks cannot be compared."
    ),
    quantity="count",
    why_none=(
        "Half the rate is as plausible as the rate itself. Every operation here has an example that was counted by "
        "hand, which its formula is tested with"
    ),
    demonstrate=demonstrate,
)
