"""Similarity of calls on GPUs beyond the terms: a correction learned on published measurements near a call.

A Gaussian process over what measured times are longer than the terms say, in natural logarithms, for each family of
kernels in each kind of units.
Calls are alike when their shapes are, more so on one device, on one architecture, or under as many watts per FLOP/s.
How calls follow one another makes no difference, so that a launch never makes one faster.
"""

from collections.abc import Sequence

import numpy as np

from gpuexplore.analysis.prediction.gpu.facts import Batch, Numbers

NOISE = 0.07  # from one call to the next, and from one team to the other

# Standard deviations that calls share twice: fading slowly with the distance of their shapes, and fast.
SHAPE = 0.12
ARCHITECTURE = 0.1  # of one architecture
HARDWARE = 0.05  # of like hardware
DEVICE = 0.08  # on one device: fading slowly, and at any shape
TEAM = 0.08  # measured by one team: fading slowly, and at any shape
VARIANCE = 2 * (SHAPE**2 + ARCHITECTURE**2 + HARDWARE**2 + DEVICE**2 + TEAM**2)  # of one call


def shared(rows: Batch, columns: Batch) -> Numbers:
    """Return what each call of `rows` has in common with each of `columns`: a covariance, (rows, columns)."""
    apart = _squares(rows.positions, columns.positions)
    slow = np.exp(apart / (-2 * 4.0**2))  # a length scale of a shape's logarithms to base 2
    fast = np.exp(apart / (-2 * 1.2**2))
    named = [(row.watts_per_teraflop, row.multiprocessors, row.architecture, row.device, row.team) for row in rows.rows]
    places = {name: at for at, name in enumerate(dict.fromkeys(named))}
    few = rows.part([named.index(name) for name in places])  # many calls, few devices
    # a length scale of watts per TFLOP/s and of multiprocessors, both to base 2
    hardware = np.exp(_squares(few.hardware, columns.hardware) / (-2 * 0.7**2))
    architecture, device = (few.codes(name)[:, None] == columns.codes(name) for name in ("architecture", "device"))
    team = few.codes("team")[:, None] == np.where(columns.codes("team") == hash(""), -1, columns.codes("team"))
    alike = SHAPE**2 + ARCHITECTURE**2 * architecture + HARDWARE**2 * hardware
    same = DEVICE**2 * device + TEAM**2 * team
    kind = [places[name] for name in named]
    return np.asarray(alike[kind] * (slow + fast) + same[kind] * (slow + 1), dtype=np.float64)


def _weights(calls: Batch, residuals: Numbers, noise: Numbers) -> Numbers:
    """Return what each observation weighs in the correction of others; far outliers count for less.

    Args:
        residuals: how much longer each took than the terms say, natural logarithms.
        noise: of each, a standard deviation.
    """
    covariance = shared(calls, calls)
    variance = noise**2
    found: Numbers = np.zeros(len(residuals))
    for _ in range(3):
        found = np.linalg.solve(covariance + np.diag(variance), residuals).astype(np.float64)
        variance = noise**2 * np.maximum(1, np.abs(variance * found) / (2 * noise))
    return found


def _squares(rows: Numbers, columns: Numbers) -> Numbers:
    """Return squared distances, (rows, columns)."""
    found: Numbers = (rows**2).sum(axis=1)[:, None] + (columns**2).sum(axis=1) - 2 * (rows @ columns.T)
    return np.maximum(found, 0.0)


def of_families(batch: Batch) -> dict[str, list[int]]:
    """Return which calls of a batch belong to each family of kernels in each kind of units."""
    found: dict[str, list[int]] = {}
    for at, row in enumerate(batch.rows):
        found.setdefault(f"{row.family}/{row.rate}", []).append(at)
    return found


def observe(batch: Batch, residuals: Sequence[float] | Numbers, noise: Numbers) -> Numbers:
    """Return what each observation weighs among those of its family."""
    values = np.asarray(residuals, dtype=np.float64)
    found = np.zeros(len(batch))
    for chosen in of_families(batch).values():
        found[chosen] = _weights(batch.part(chosen), values[chosen], noise[chosen])
    return found
