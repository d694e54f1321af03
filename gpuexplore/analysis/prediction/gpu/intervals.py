"""How sure a time on a GPU is: a standard deviation from what predictions of left-out devices were off by.

It depends on the kind of kernel, on how calls follow one another, on the share of the launch, on how short the call is,
and on what was measured: on the device, on its architecture, at shapes like it. Nobody's device is less sure.
"""

from collections.abc import Mapping

import numpy as np

from gpuexplore.analysis.prediction.gpu.facts import Batch, Numbers
from gpuexplore.analysis.prediction.gpu.terms import Terms

USUAL_S = 1e-4
DECADES = 2.0  # of time, beyond which an interval grows no more
LEAST_DEVIATION = 0.04
MOST_DEVIATION = 1.2


def regime(
    batch: Batch, took: Terms, nearness: Numbers, seen: tuple[frozenset[str], frozenset[str]]
) -> dict[str, Numbers]:
    """Return what decides how sure each call is, by name.

    Args:
        seen: devices and architectures that observations are of.
    """
    devices, architectures = seen
    found = {"constant": np.ones(len(batch))}
    for name in ("family", "calls", "rate"):
        group = batch.group(name)
        for at, member in enumerate(group.names):
            found[f"{name}:{member}"] = (group.places == at).astype(np.float64)
    found["launch"] = np.clip(took.launch / took.total, 0, 1)
    found["decades"] = np.clip(np.log10(took.total / USUAL_S), -DECADES, DECADES)
    found["misaligned"] = batch.numbers("misaligned")
    found["far"] = 1 - nearness
    found["new_device"] = np.array([row.device not in devices for row in batch.rows], dtype=np.float64)
    found["new_architecture"] = np.array([row.architecture not in architectures for row in batch.rows], np.float64)
    return found


def deviation(regimes: Mapping[str, Numbers], known: Mapping[str, float]) -> Numbers:
    """Return the standard deviation of the logarithm of each time."""
    logarithm = sum((known.get(name, 0.0) * values for name, values in regimes.items()), np.zeros(1))
    found: Numbers = np.clip(np.exp(logarithm), LEAST_DEVIATION, MOST_DEVIATION)
    return found
