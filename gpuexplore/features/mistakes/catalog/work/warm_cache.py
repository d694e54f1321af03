"""A rate from the caches is told as the memory's."""

from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Sign, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs
from gpuexplore.features.mistakes.catalog.subject import Subject, flag_of, open_subject, round_median
from gpuexplore.features.mistakes.catalog.turns import take_turns
from gpuexplore.model import Options, Shape

LENGTHS = {"cpu": 100_000, "cuda": 1_000_000}  # the notebook's on a CPU


def demonstrate(stage: Stage) -> Observation:
    """Time a vector addition with its operands in the caches and in memory."""
    shape = Shape.of(n=LENGTHS[stage.device.kind])
    warm, cold = (open_subject(stage, "vector_add", shape, options=Options(cache=cache)) for cache in ("warm", "cold"))
    return observe(warm, cold, stage)


def observe(warm: Subject, cold: Subject, stage: Stage) -> Observation:
    """Compare the rates of memory that a warm and a cold call seem to reach."""
    pairs = take_turns(round_median(warm, stage), round_median(cold, stage), stage)
    return from_pairs(MISTAKE, pairs.as_rates(cold.byte_count), cold, flag_of(warm, pairs.wrong, "warm"))


MISTAKE = Mistake(
    name="warm-cache",
    title="Was it read from memory, or from a cache?",
    rows=("B3", "B4", "B5"),
    wrong="The same small arrays are read again and again, and the rate is told as the memory's.",
    right="Overwrite the last-level cache before each call, or say that the caches were warm.",
    wrong_code=("for _ in range(1000):\n    call()           # data stay in cache\nrate = bytes_moved / elapsed"),
    right_code=("for _ in range(1000):\n    overwrite(2 * last_level_cache_bytes)\n    elapsed.append(timed(call))"),
    why=(
        "What was read a moment ago is still in a cache, which delivers several times as fast as memory. "
        "A program that comes to the data for the first time waits for memory."
    ),
    quantity="memory rate",
    gives_away=Sign("flag", "warm"),
    live_on=("cpu", "cuda"),
    demonstrate=demonstrate,
)
