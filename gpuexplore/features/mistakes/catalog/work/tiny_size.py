"""The time of a large size is extrapolated from a tiny one."""

from dataclasses import replace

from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Sign, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs
from gpuexplore.features.mistakes.catalog.subject import Subject, flag_of, open_subject, round_median
from gpuexplore.features.mistakes.catalog.turns import take_turns
from gpuexplore.measure.sample.contrast import call_overhead_s
from gpuexplore.model import Shape

TINY = 8
SIZES = {"cpu": 512, "cuda": 4096}


def demonstrate(stage: Stage) -> Observation:
    """Extrapolate a product by its FLOPs from one of 8 × 8, and measure it."""
    size = SIZES[stage.device.kind]
    tiny = open_subject(stage, "matmul", Shape.of(m=TINY, k=TINY, n=TINY))
    overhead_s = call_overhead_s(tiny.case, tiny.group)
    return observe(tiny, open_subject(stage, "matmul", Shape.of(m=size, k=size, n=size)), stage, overhead_s)


def observe(tiny: Subject, large: Subject, stage: Stage, overhead_s: float | None) -> Observation:
    """Compare the extrapolated time of `large` with its own; `overhead_s` is that of a call on one element."""
    times = large.flop_count / tiny.flop_count
    time_tiny = round_median(tiny, stage)
    pairs = take_turns(lambda: time_tiny() * times, round_median(large, stage), stage)
    detection = flag_of(tiny, tuple(time_s / times for time_s in pairs.wrong), "launch_bound", overhead_s=overhead_s)
    note = f"The time of {tiny.what} times {times:,.0f}, which is how many times as many FLOPs the large one has."
    return replace(from_pairs(MISTAKE, pairs, large, detection), note=note)


MISTAKE = Mistake(
    name="tiny-size",
    title="What does a tiny size say of a large one?",
    rows=("B3", "E5"),
    wrong="A tiny size is timed, and the time is scaled with the FLOPs.",
    right="Measure the size that is meant, or scale from a size whose calls last long against their overhead.",
    wrong_code=("t_8 = timed(8)\nt_512 = t_8 * (512 / 8) ** 3"),
    right_code="t_512 = timed(512)",
    why=(
        "A call costs about a microsecond before anything is computed, a launch on a GPU several. "
        "At tiny sizes that is all there is to time, and it does not grow with the work."
    ),
    quantity="time",
    gives_away=Sign("flag", "launch_bound"),
    live_on=("cpu", "cuda"),
    demonstrate=demonstrate,
)
