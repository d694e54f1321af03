"""What the sentences about a run rest on: its largest measured shape and who was fastest there."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuexplore.analysis.run.speedup import Speedup, about_as_fast, default_baseline, speedups
from gpuexplore.analysis.utilization.peak_choice import Against, knowing
from gpuexplore.analysis.utilization.rates import shapes_by_work
from gpuexplore.model import Case, Measurement, Peak, Result, Shape


@dataclass(frozen=True, slots=True)
class Evidence:
    """The results of a run as its sentences see them; at least one is measured.

    Attributes:
        results: all of them.
        shape: the largest shape with a measurement.
        here: the measured results at that shape, fastest first.
        alike: those of `here` that cannot be told from the fastest, itself first.
        baseline: what speedups are against.
        speedups: of every measured case that has a baseline.
        against: what the results are held against.
    """

    results: tuple[Result, ...]
    shape: Shape
    here: tuple[Result, ...]
    alike: tuple[Result, ...]
    baseline: str
    speedups: dict[Case, Speedup]
    against: Against

    @property
    def own_peaks(self) -> tuple[Peak, ...]:
        """The peaks a user entered."""
        return self.against.own_peaks

    @property
    def fastest(self) -> Result:
        """The result with the smallest median at the largest shape."""
        return self.here[0]


def gather(results: Sequence[Result], baseline: str | None, against: Against) -> Evidence | None:
    """Return the evidence in `results`, or None when nothing is measured."""
    measured = [result for result in results if result.measurement is not None]
    name = baseline or default_baseline(results)
    if not measured or name is None:
        return None
    shape = shapes_by_work(measured)[-1]
    here = sorted(
        (result for result in measured if result.case.shape == shape), key=lambda result: measurement(result).median_s
    )
    alike = [one for one in here if one is here[0] or about_as_fast(one, here[0])]
    known = knowing(against, measured)
    return Evidence(tuple(results), shape, tuple(here), tuple(alike), name, speedups(results, name), known)


def measurement(result: Result) -> Measurement:
    """Return the measurement of a measured result.

    Raises:
        ValueError: it has none.
    """
    if result.measurement is None:
        raise ValueError(f"{result.case} has no measurement")
    return result.measurement


def headline_result(results: Sequence[Result]) -> Result | None:
    """Return the fastest result at the largest measured shape, else the first there is; None without results."""
    measured = [result for result in results if result.measurement is not None]
    if not measured:
        return next(iter(results), None)
    largest = shapes_by_work(measured)[-1]
    return min(
        (result for result in measured if result.case.shape == largest), key=lambda result: measurement(result).median_s
    )


def name_of(result: Result, results: Sequence[Result]) -> str:
    """Return how a sentence names a result: ``torch in bf16``, with its device where there are several."""
    several = len({one.case.device for one in results}) > 1
    name = f"{result.case.implementation} in {result.case.dtype}"
    return f"{name} on {result.case.device}" if several else name
