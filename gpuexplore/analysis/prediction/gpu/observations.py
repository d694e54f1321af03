"""What the predictor of GPUs is fitted on: published measurements, the best published products, and noted rates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import hypot, log
from typing import Literal

from gpuexplore.analysis.prediction.arithmetic import arithmetic
from gpuexplore.analysis.prediction.calls import conditions_of
from gpuexplore.analysis.prediction.claims import (
    NOTED_NOISE,
    noted_case,
    noted_time_s,
    published_case,
)
from gpuexplore.analysis.prediction.gpu.facts import Facts, facts_of, is_of_library, published_call
from gpuexplore.analysis.prediction.gpu.likeness import NOISE
from gpuexplore.analysis.utilization.published import NOTED, PUBLISHED, NotedResult, PublishedResult
from gpuexplore.devices import ACCELERATORS, table_device
from gpuexplore.model import Case, Device
from gpuexplore.once import once
from gpuexplore.recorded.published import PublishedMeasurement, published_measurements

SeenOrigin = Literal["measured", "published", "noted"]


@dataclass(frozen=True, slots=True)
class Seen:
    """One measurement of others.

    Attributes:
        origin: a published measurement, the best published product of a device, or a rate in the notes of the table.
        time_s: what it took, seconds.
        noise: standard deviation of the logarithm of that.
        searched: whether its shape is the best of a search.
        url: where it was published.
    """

    origin: SeenOrigin
    case: Case
    device: Device
    facts: Facts
    time_s: float
    noise: float
    searched: bool
    url: str


@once
def observations() -> tuple[Seen, ...]:
    """Return everything of others that ships."""
    return (*of_measurements(published_measurements()), *of_published(PUBLISHED), *of_noted(NOTED))


def of_measurements(rows: Iterable[PublishedMeasurement]) -> tuple[Seen, ...]:
    """Return published measurements as observations."""
    return tuple(seen for row in rows if (seen := _measured(row)) is not None)


def of_published(rows: Sequence[PublishedResult]) -> tuple[Seen, ...]:
    """Return the best published products as observations: queued, at the best shape of a search."""
    found = (_claim("published", published_case(row), row.time_s, noise=NOISE, url=row.source) for row in rows)
    return tuple(seen for seen in found if seen is not None)


def of_noted(rows: Sequence[NotedResult]) -> tuple[Seen, ...]:
    """Return the rates that the notes of the table mention."""
    found = (
        _claim("noted", noted_case(row), noted_time_s(row), noise=_noise(row), url=_row_url(row.spec_key))
        for row in rows
    )
    return tuple(seen for seen in found if seen is not None)


def _noise(row: NotedResult) -> float:
    return hypot(NOISE, max(NOTED_NOISE, log(row.high_flop_per_s / row.low_flop_per_s) / 2))


def _row_url(spec_key: str) -> str:
    return next(row.source_url for row in ACCELERATORS if row.key == spec_key)


def _measured(row: PublishedMeasurement) -> Seen | None:
    case, device = published_call(row)
    units = arithmetic(case, device)
    if not is_of_library(case, device, units):
        return None
    facts = facts_of(case, device, units, conditions_of(row))
    return Seen("measured", case, device, facts, row.time_s, NOISE, searched=False, url=row.url)


def _claim(origin: SeenOrigin, case: Case, time_s: float, *, noise: float, url: str) -> Seen | None:
    device = table_device(case.device)
    units = arithmetic(case, device)
    if not is_of_library(case, device, units):
        return None
    return Seen(origin, case, device, facts_of(case, device, units), time_s, noise, origin == "published", url)
