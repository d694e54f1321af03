"""An MFU relative to a peak that was rounded from memory."""

from gpuexplore.devices import accelerator_named, peaks_of
from gpuexplore.features.mistakes.catalog.contract import Factor, Mistake, Observation, Reading, Stage
from gpuexplore.features.mistakes.catalog.observing import no_sign
from gpuexplore.model import Shape
from gpuexplore.operations import operation_named
from gpuexplore.units import format_flop_per_s

CARD = "Tesla T4"
SHAPE = Shape.of(b=16384, d=32768, k=8192)
PRINTED_S = 1.73267
ROUNDED = 8e12


def demonstrate(_: Stage) -> Observation:
    """Divide the notebook's rate by its own peak and by the datasheet's."""
    row = accelerator_named(CARD)
    peak = next(peak for peak in (peaks_of(row) if row else ()) if (peak.dtype, peak.unit) == ("fp32", "matrix"))
    flop_per_s = operation_named("linear").flop_count(SHAPE) / PRINTED_S
    peaks = f"over {format_flop_per_s(ROUNDED)} and over {format_flop_per_s(peak.flop_per_s)}"
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what=f"the notebook's {format_flop_per_s(flop_per_s)} in fp32 on a T4, {peaks}",
        how="computed",
        wrong=Reading(flop_per_s / ROUNDED),
        right=Reading(flop_per_s / peak.flop_per_s),
        detection=no_sign(MISTAKE),
        factor=Factor(peak.flop_per_s / ROUNDED),
        source=peak.source,
    )


MISTAKE = Mistake(
    name="rounded-peak",
    title="Where does the peak come from?",
    rows=("E6",),
    wrong="The peak is written from memory, rounded.",
    right="Take it from the datasheet, with all its digits, and name the source.",
    wrong_code="mfu = rate / 8e12",
    right_code="mfu = rate / 8.1e12  # T4 datasheet",
    why=(
        "A rounded peak moves every MFU by as much as it was rounded, here 1.2 %. "
        "That is more than the interval of a careful measurement, and it hits every result in the same direction."
    ),
    quantity="share",
    why_none="The error is smaller than anything that a rule could object to. Every peak here names its source",
    demonstrate=demonstrate,
)
