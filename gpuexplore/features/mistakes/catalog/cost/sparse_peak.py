"""An MFU relative to a peak that counts FLOPs nobody does."""

from gpuexplore.devices import accelerator_named, peaks_of
from gpuexplore.features.mistakes.catalog.contract import Factor, Mistake, Observation, Reading, Stage
from gpuexplore.features.mistakes.catalog.observing import no_sign
from gpuexplore.units import format_flop_per_s

KEY = "h200-sxm-141gb"
REACHED = 788e12  # FLOP/s, of its row's notes: bf16 on random data
SPARSE_TIMES = 2  # two of four weights are zero and skipped, and counted all the same


def demonstrate(_: Stage) -> Observation:
    """Divide a published rate by the sparse peak and by the dense one."""
    row = accelerator_named(KEY)
    dense = next(peak for peak in (peaks_of(row) if row else ()) if (peak.dtype, peak.unit) == ("bf16", "matrix"))
    sparse_flop_per_s = SPARSE_TIMES * dense.flop_per_s
    rates = format_flop_per_s(sparse_flop_per_s), format_flop_per_s(dense.flop_per_s)
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what=f"{format_flop_per_s(REACHED)} of dense bf16 products on an H200, over {rates[0]} and over {rates[1]}",
        how="computed",
        wrong=Reading(REACHED / sparse_flop_per_s),
        right=Reading(REACHED / dense.flop_per_s),
        detection=no_sign(MISTAKE),
        factor=Factor(dense.flop_per_s / sparse_flop_per_s),
        source=dense.source,
    )


MISTAKE = Mistake(
    name="sparse-peak",
    title="Is the printed peak one for dense matrices?",
    rows=("E6", "E7"),
    wrong="A dense product is compared with the peak that the datasheet prints in large, which is for sparse matrices.",
    right="Compare it with the dense peak of the units and of the sums that computed it.",
    wrong_code="mfu = rate / 1979e12  # with sparsity",
    right_code="mfu = rate / 989e12  # dense",
    why=(
        "With structured sparsity two of four weights are zero: tensor cores skip them, and datasheets count them. "
        "A dense product can reach half of that figure at most, so its MFU is halved."
    ),
    quantity="share",
    why_none="Every MFU between 0 and 1 is plausible. Peaks here are dense, and each says so with its source",
    demonstrate=demonstrate,
)
