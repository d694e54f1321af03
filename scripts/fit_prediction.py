"""Fits the predictor of GPUs to the measurements of others in the repository, and writes what the package reads.

Coefficients by robust least squares around what physics expects, then what observations near a call correct, then how
sure predictions are, from predictions of devices, architectures and shapes that were left out. Nothing is drawn at
random: the same data give the same file.

    python -m scripts.fit_prediction [--check]
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares, minimize

from gpuexplore.analysis.prediction.gpu.coefficients import FILE, Coefficients, expected, names_for
from gpuexplore.analysis.prediction.gpu.estimate import Fitted, made
from gpuexplore.analysis.prediction.gpu.facts import Batch, Numbers
from gpuexplore.analysis.prediction.gpu.intervals import deviation, regime
from gpuexplore.analysis.prediction.gpu.likeness import observe
from gpuexplore.analysis.prediction.gpu.observations import Seen, observations
from gpuexplore.analysis.prediction.gpu.terms import Terms, terms

TARGET = Path(__file__).parent.parent / "gpuexplore" / "analysis" / "data" / FILE
SCALE = 0.15  # of residuals, beyond which they pull with less than their square
STEPS = 15
FOLDS = 5
DEVIATIONS = 1.645  # on each side of a normal distribution, nine in ten within
HELD = 0.9
SLACK = 0.02  # how far an interval's share may be from HELD
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Left:
    """Observations that were predicted without what they were left out with.

    Attributes:
        errors: logarithms of predicted over measured times.
        regimes: what decides how sure each is, by name.
    """

    errors: Numbers
    regimes: dict[str, Numbers]


def main() -> int:
    """Write the file, or say whether it is what the data give."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="fit coefficients only, and compare with the file")
    arguments = parser.parse_args()
    began, seen = time.monotonic(), observations()
    if arguments.check:
        return _check(seen)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        left = [each for way in (without_devices, without_devices_and_shapes, without_architectures, without_shapes)
                for each in pool.map(left_out, *zip(*way(seen)))]
    intervals = fit_intervals(left)
    found = fit(seen, intervals)
    TARGET.write_text(json.dumps(as_data(found), indent=1) + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(seen)} observations, {time.monotonic() - began:.0f} s")
    return 0


def _check(seen: Sequence[Seen]) -> int:
    written = json.loads(TARGET.read_text(encoding="utf-8"))["coefficients"]
    found = dict(coefficients_of(seen))
    apart = {name for name in written.keys() | found.keys() if abs(written.get(name, 9) - found.get(name, 9)) > 0.02}
    print(f"{len(apart)} of {len(found)} coefficients differ" + "".join(f"\n  {name}" for name in sorted(apart)))
    return bool(apart)


def as_data(found: Fitted) -> dict[str, Any]:
    """Return what is written of a predictor."""
    weights = np.zeros(len(found.seen))
    for observed in found.observed.values():
        weights[list(observed.numbers)] = observed.weights
    rounded = partial(round, ndigits=DIGITS)
    return {
        "about": "written by scripts/fit_prediction.py from the measurements of others in this package",
        "coefficients": {name: rounded(value) for name, value in found.coefficients},
        "intervals": {name: rounded(value) for name, value in found.intervals.items()},
        "weights": [rounded(float(value)) for value in weights],
    }


def fit(seen: Sequence[Seen], intervals: dict[str, float] | None = None) -> Fitted:
    """Return the predictor fitted to observations; intervals are as given, or those that ship."""
    coefficients = coefficients_of(seen)
    batch = Batch([each.facts for each in seen])
    noise = np.array([each.noise for each in seen])
    observed = observe(batch, -errors(batch, seen, coefficients), noise)
    return made(coefficients, observed, intervals or {}, seen)


def coefficients_of(seen: Sequence[Seen]) -> Coefficients:
    """Return the coefficients that make the terms nearest to what was measured."""
    batch = Batch([each.facts for each in seen])
    names = names_for(batch)
    means = np.array([expected(name).mean for name in names])
    deviations = np.array([expected(name).deviation for name in names])
    weight = 1 / np.hypot(SCALE, np.array([each.noise for each in seen]))

    def residuals(values: Numbers) -> Numbers:
        known = Coefficients(dict(zip(names, values.tolist(), strict=True)))
        return np.concatenate([errors(batch, seen, known) * weight, (values - means) / deviations])

    found = least_squares(residuals, means, loss="soft_l1", max_nfev=STEPS)
    return Coefficients(dict(zip(names, found.x.tolist(), strict=True)))


def errors(batch: Batch, seen: Sequence[Seen], known: Coefficients) -> Numbers:
    """Return logarithms of what the terms say over what was measured."""
    searched = np.array([each.searched for each in seen])
    measured = np.log([each.time_s for each in seen])
    saved = np.where(searched, np.log1p(-known.exp("searched")), 0.0)
    found: Numbers = np.log(terms(batch, known).total) + saved - measured
    return found


Split = tuple[tuple[Seen, ...], tuple[Seen, ...]]


def without_devices(seen: Sequence[Seen]) -> list[Split]:
    """Return for each device the observations of all others, and its own."""
    return _by(seen, lambda each: each.facts.device)


def without_devices_and_shapes(seen: Sequence[Seen]) -> list[Split]:
    """Return the same without the shapes that were measured on the device: nothing is at the same place."""
    splits = []
    for others, own in without_devices(seen):
        shapes = {(each.case.operation, each.case.shape) for each in own}
        splits.append((tuple(one for one in others if (one.case.operation, one.case.shape) not in shapes), own))
    return splits


def without_architectures(seen: Sequence[Seen]) -> list[Split]:
    """Return for each architecture the observations of all others, and its own."""
    return _by(seen, lambda each: each.facts.architecture)


def without_shapes(seen: Sequence[Seen]) -> list[Split]:
    """Return for each fifth of the shapes the observations of all other shapes, and its own."""
    shapes = {shape: at for at, shape in enumerate(dict.fromkeys(str(each.case.shape) for each in seen))}
    return _by(seen, lambda each: shapes[str(each.case.shape)] % FOLDS)


def _by(seen: Sequence[Seen], key: Callable[[Seen], object]) -> list[Split]:
    keys = dict.fromkeys(map(key, seen))
    return [
        (tuple(each for each in seen if key(each) != one), tuple(each for each in seen if key(each) == one))
        for one in keys
    ]


def left_out(others: Sequence[Seen], own: Sequence[Seen]) -> Left:
    """Return the observations of what was left out, predicted from the others."""
    found, batch = fit(others), Batch([each.facts for each in own])
    middle, _, took, nearness = found.estimates(batch)
    searched = np.array([each.searched for each in own])
    saved = np.where(searched, np.log1p(-found.coefficients.exp("searched")), 0.0)
    wrong = middle + saved - np.log([each.time_s for each in own])
    return Left(wrong, regime(batch, took, nearness, (found.devices, found.architectures)))


def fit_intervals(left: Sequence[Left]) -> dict[str, float]:
    """Return what decides how sure a prediction is: likeliest for what was left out, then widened to hold HELD."""
    names = sorted({name for each in left for name in each.regimes})
    wrong = np.concatenate([each.errors for each in left])
    values = np.stack(
        [np.concatenate([each.regimes.get(name, np.zeros(len(each.errors))) for each in left]) for name in names]
    )
    cost = partial(_unlikely, wrong=np.abs(wrong), values=values, constant=names.index("constant"))
    found = dict(zip(names, minimize(cost, np.zeros(len(names)), method="L-BFGS-B").x.tolist(), strict=True))
    regimes = dict(zip(names, values, strict=True))
    for _ in range(50):
        held = float(np.mean(np.abs(wrong) <= DEVIATIONS * deviation(regimes, found)))
        found["constant"] += HELD - held
    return found


def _unlikely(known: Numbers, wrong: Numbers, values: Numbers, constant: int) -> float:
    """Return how unlikely errors are of a Laplace distribution, whose tails are those of what was left out."""
    logarithm = known @ values
    usual = np.delete(known, constant)
    return float((logarithm + np.sqrt(2) * wrong * np.exp(-logarithm)).sum() + 20 * (usual**2).sum())


if __name__ == "__main__":
    sys.exit(main())
