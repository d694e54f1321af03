"""The CPU that is beaten uses one of its cores."""

from gpuexplore.features.mistakes.catalog.contract import Detection, Factor, Mistake, Observation, Sign, Stage
from gpuexplore.features.mistakes.catalog.observing import from_pairs
from gpuexplore.features.mistakes.catalog.subject import Subject, open_subject, round_median
from gpuexplore.features.mistakes.catalog.turns import Procedure, take_turns
from gpuexplore.model import Options, Shape

SIZE = 512


def demonstrate(stage: Stage) -> Observation:
    """Time NumPy's product on one core and on all of them."""
    shape = Shape.of(m=SIZE, k=SIZE, n=SIZE)
    one_core, all_cores = (
        open_subject(stage, "matmul", shape, options=Options(threads=threads)) for threads in (1, stage.device.cores)
    )
    return observe(one_core, all_cores, stage)


def observe(one_core: Subject, all_cores: Subject, stage: Stage) -> Observation:
    """Compare the times of a product on one core and on all of them."""
    pairs = take_turns(_pinned(one_core, stage), _pinned(all_cores, stage), stage)
    return from_pairs(MISTAKE, pairs, all_cores, _unless_others_had_the_cores(pairs.factor, _detection(one_core)))


def _unless_others_had_the_cores(factor: Factor, found: Detection) -> Detection:
    """Return that nothing was shown where one thread was the faster way: other work had the other cores."""
    if factor.ci95 is None or factor.ci95[1] >= 1:
        return found
    return Detection(
        None, f"one thread was faster than all: other work had the cores, measure again ({found.evidence})"
    )


def _pinned(subject: Subject, stage: Stage) -> Procedure:
    """Return the right way to time `subject`, on its own number of threads."""
    take = round_median(subject, stage)

    def take_on_its_threads() -> float:
        subject.candidate.backend.set_threads(subject.environment.threads or 1)
        return take()

    return take_on_its_threads


def _detection(subject: Subject) -> Detection:
    """Return whether cores had no work, from the same two figures as the diagnosis."""
    threads, cores = subject.environment.threads, subject.group.device.cores
    if threads is None or cores is None:
        return Detection(None, "the number of threads or of cores is unknown")
    return Detection(threads < cores, f"threads: {threads}, physical cores: {cores}")


MISTAKE = Mistake(
    name="one-thread-baseline",
    title="How many cores did the CPU use that was beaten?",
    rows=("A2", "B4", "B5"),
    wrong="The baseline runs on one core, and the speedup over it is told as that over the CPU.",
    right="Give every library as many threads as there are cores, and tell the number.",
    wrong_code=("# OPENBLAS_NUM_THREADS=1\nspeedup = t_numpy / t_gpu"),
    right_code=("set_threads(physical_cores)\nspeedup = t_numpy / t_gpu"),
    why=(
        "A CPU has as many arithmetic units as it has cores, and a loop in Python, or a library that was pinned, "
        "uses one. A speedup over it grows with the number of cores that had no work."
    ),
    quantity="time",
    gives_away=Sign("diagnosis", "too_few_threads"),
    live_on=("cpu",),
    elsewhere="it is the CPU of a comparison that has too few threads.",
    demonstrate=demonstrate,
)
