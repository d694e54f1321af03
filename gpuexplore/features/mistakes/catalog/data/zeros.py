"""Zeros as data: a GPU draws less power, and raises its clock."""

from gpuexplore.devices import accelerator_named
from gpuexplore.features.mistakes.catalog.contract import Factor, Mistake, Observation, Reading, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs, no_sign
from gpuexplore.features.mistakes.catalog.subject import Subject, open_subject, round_median, with_data
from gpuexplore.features.mistakes.catalog.turns import take_turns
from gpuexplore.measure.check.inputs import Reference
from gpuexplore.model import Shape

SIZE = 8192
PUBLISHED_ROW = "h200-sxm-141gb"  # its notes: measured 788-798 bf16 on random data, 894 on zeros
ON_ZEROS, ON_RANDOM = 894e12, (788e12, 798e12)  # FLOP/s


def demonstrate(stage: Stage) -> Observation:
    """Time a bf16 product on zeros and on random numbers."""
    subject = open_subject(stage, "matmul", Shape.of(m=SIZE, k=SIZE, n=SIZE), dtype="bf16")
    group = subject.group
    inputs = group.inputs(subject.case.shape, "zeros")
    return observe(with_data(subject, Reference(group.operation, group.dtype, inputs)), subject, stage)


def observe(zeros: Subject, normal: Subject, stage: Stage) -> Observation:
    """Compare the rates on zeros and on random numbers."""
    pairs = take_turns(round_median(zeros, stage), round_median(normal, stage), stage)
    return from_pairs(MISTAKE, pairs.as_rates(normal.flop_count), normal, no_sign(MISTAKE))


def published(_: Stage) -> Observation:
    """Return what was published of one GPU."""
    row, middle = accelerator_named(PUBLISHED_ROW), sum(ON_RANDOM) / 2
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what="large products in bf16 on an H200",
        how="published",
        wrong=Reading(ON_ZEROS),
        right=Reading(middle, ON_RANDOM),
        detection=no_sign(MISTAKE),
        factor=Factor(ON_ZEROS / middle, (ON_ZEROS / ON_RANDOM[1], ON_ZEROS / ON_RANDOM[0])),
        note="What was published: two rates on random numbers, whose range stands for the interval, and one on zeros.",
        source=f"{row.name}: {row.notes}" if row else None,
    )


MISTAKE = Mistake(
    name="zeros",
    title="Does it matter what the numbers are?",
    rows=("E7",),
    wrong="The matrices are filled with zeros, because only the time is asked for.",
    right="Fill them with random numbers of the kind that will be computed on.",
    wrong_code="a = torch.zeros(n, n, device=device)",
    right_code="a = torch.randn(n, n, device=device)",
    why=(
        "A multiplier whose inputs do not change hardly switches, and draws less power. "
        "A GPU at its power limit then raises its clock, so zeros are computed faster than anything else."
    ),
    quantity="compute rate",
    why_none=(
        "The rate stays below the peak, and a higher clock is what every GPU strives for. Only the options of a "
        "result tell what the data were"
    ),
    live_on=("cuda",),
    elsewhere="a CPU's clock does not follow the values it multiplies by as much as can be measured.",
    instead=published,
    demonstrate=demonstrate,
)
