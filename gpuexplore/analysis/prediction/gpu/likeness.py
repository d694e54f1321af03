"""What calls on GPUs have in common beyond the terms: a correction learned on published measurements near a call.

A Gaussian process over what measured times are longer than the terms say, in natural logarithms, for each family of
kernels in each kind of units.
Calls are alike when their shapes are, more so on one device, on one architecture, or under as many watts per FLOP/s.
How calls follow one another makes no difference, so that a launch never makes one faster.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpuexplore.analysis.prediction.gpu.facts import Batch, Numbers

Codes = npt.NDArray[np.int64]  # of texts: equal where these are

NEAR, FAR = 1.2, 4.0  # length scales of a shape's logarithms to base 2
LIKE_HARDWARE = 0.7  # length scale of watts per TFLOP/s and of multiprocessors, both to base 2
NOISE = 0.07  # from one call to the next, and from one team to the other

# Standard deviations that calls share when ...
SHAPE_FAR, SHAPE_NEAR = 0.12, 0.12  # ... their shapes are alike
ARCHITECTURE_FAR, ARCHITECTURE_NEAR = 0.1, 0.1  # ... and their architectures are the same
HARDWARE_FAR, HARDWARE_NEAR = 0.05, 0.05  # ... or their hardware is alike
DEVICE, DEVICE_SHAPE = 0.08, 0.08  # ... they ran on one device, at such a shape
OWN = (
    *(SHAPE_FAR, SHAPE_NEAR, ARCHITECTURE_FAR, ARCHITECTURE_NEAR, HARDWARE_FAR, HARDWARE_NEAR),
    *(DEVICE, DEVICE_SHAPE),
)
VARIANCE = sum(each**2 for each in OWN)  # of one call
WATTS_PER_TERAFLOP = 8.0  # of a device whose power nobody states


@dataclass(frozen=True, slots=True)
class Places:
    """Where calls of one family stand: what decides how much they have in common."""

    shape: Numbers
    hardware: Numbers
    architecture: Codes
    device: Codes

    @classmethod
    def of(cls, batch: Batch) -> "Places":
        """Return the places of calls."""
        watts = np.nan_to_num(batch.numbers("watts_per_teraflop"), nan=WATTS_PER_TERAFLOP)
        hardware = np.log2(np.stack([np.maximum(watts, 1e-3), batch.numbers("multiprocessors")], axis=1))
        names = ("architecture", "device")
        codes = (np.array([hash(getattr(row, name)) for row in batch.rows], dtype=np.int64) for name in names)
        architecture, device = codes
        shape = np.array([row.place for row in batch.rows], dtype=np.float64).reshape(-1, 4)
        return cls(shape, hardware, architecture, device)


def shared(rows: Places, columns: Places) -> Numbers:
    """Return what each call of `rows` has in common with each of `columns`: a covariance, (rows, columns)."""
    apart = _squares(rows.shape, columns.shape)
    near, far = np.exp(apart / (-2 * NEAR**2)), np.exp(apart / (-2 * FAR**2))
    kinds, kind = np.unique(rows.hardware, axis=0, return_inverse=True)  # many calls, few devices
    hardware = np.exp(_squares(kinds, columns.hardware) / (-2 * LIKE_HARDWARE**2))[kind]
    architecture, device = rows.architecture[:, None] == columns.architecture, rows.device[:, None] == columns.device
    alike_far = (
        SHAPE_FAR**2 + ARCHITECTURE_FAR**2 * architecture + HARDWARE_FAR**2 * hardware + DEVICE_SHAPE**2 * device
    )
    alike_near = SHAPE_NEAR**2 + ARCHITECTURE_NEAR**2 * architecture + HARDWARE_NEAR**2 * hardware
    found: Numbers = alike_far * far + alike_near * near + DEVICE**2 * device
    return found


def weights(places: Places, residuals: Numbers, noise: Numbers) -> Numbers:
    """Return what each observation weighs in the correction of others; far outliers count for less.

    Args:
        residuals: how much longer each took than the terms say, natural logarithms.
        noise: of each, a standard deviation.
    """
    covariance, variance = shared(places, places), noise**2
    found: Numbers = np.zeros(len(residuals))
    for _ in range(3):
        found = np.linalg.solve(covariance + np.diag(variance), residuals).astype(np.float64)
        variance = noise**2 * np.maximum(1, np.abs(variance * found) / (2 * noise))
    return found


def _squares(rows: Numbers, columns: Numbers) -> Numbers:
    """Return squared distances, (rows, columns)."""
    products = rows @ columns.T
    found: Numbers = (rows**2).sum(axis=1)[:, None] + (columns**2).sum(axis=1) - 2 * products
    return np.maximum(found, 0.0)


@dataclass(frozen=True, slots=True)
class Observed:
    """Observations of one family with their weights.

    Attributes:
        numbers: which of all observations these are.
    """

    places: Places
    weights: Numbers
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Correction:
    """What observations near a call say of it.

    Attributes:
        value: how much longer it takes than the terms say, a natural logarithm.
        nearness: what the nearest observation has in common with it, 0 to 1.
        common: the same of every observation.
    """

    value: Numbers
    nearness: Numbers
    common: Numbers


def correction(observed: Observed, asked: Places) -> Correction:
    """Return what observations say of calls."""
    common = shared(asked, observed.places)
    return Correction(common @ observed.weights, common.max(axis=1, initial=0.0) / VARIANCE, common / VARIANCE)


def of_families(batch: Batch) -> dict[str, list[int]]:
    """Return which calls of a batch belong to each family of kernels in each kind of units."""
    found: dict[str, list[int]] = {}
    for at, row in enumerate(batch.rows):
        found.setdefault(f"{row.family}/{row.rate}", []).append(at)
    return found


def observe(batch: Batch, residuals: Sequence[float] | Numbers, noise: Numbers) -> dict[str, Observed]:
    """Return the observations of each family, weighed."""
    values, found = np.asarray(residuals, dtype=np.float64), {}
    for family, chosen in of_families(batch).items():
        places = Places.of(batch.part(chosen))
        found[family] = Observed(places, weights(places, values[chosen], noise[chosen]), tuple(chosen))
    return found
