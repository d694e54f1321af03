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
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares, minimize

from gpuexplore.analysis.prediction.gpu import CallObservation, Fitted, deviation, made, observations, observe
from gpuexplore.analysis.prediction.gpu.facts import Batch, Indices, Numbers
from gpuexplore.analysis.prediction.gpu.terms import (
    FILE,
    GROUPS,
    SINGLE,
    Coefficients,
    expected,
    exponential,
    names_for,
    terms,
)

TARGET = Path(__file__).parent.parent / "gpuexplore" / "analysis" / "data" / FILE
SCALE = 0.15  # of residuals, beyond which they pull with less than their square
STEPS = 15
MOVED = 1e-6  # a coefficient, to see what its residuals change by
FOLDS = 5
FEW = 10  # observations of a device
DEVIATIONS = 1.645  # on each side of a normal distribution, nine in ten within
HELD = 0.9
STEPS_TO_HOLD = 100
RATE = 0.5  # of a step towards it, as groups overlap
HALF = 0.5  # of a call's duration that is of a group
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Left:
    """Observations that were predicted without what they were left out with.

    Attributes:
        errors: logarithms of predicted over measured times.
        weights: each device counts as the square root of its observations: many of one are no proof for others.
        regimes: what decides how sure each is, by name.
    """

    errors: Numbers
    weights: Numbers
    regimes: dict[str, Numbers]


def main() -> int:
    """Write the file, or say whether it is what the data give."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="fit coefficients only, and compare with the file")
    arguments = parser.parse_args()
    began, seen = time.monotonic(), observations()
    if arguments.check:
        return _check(seen)
    splits = [
        *without_devices(seen),
        *(split for name in ("architecture", "team") for split in without(seen, name)),
        *(split for split in without(seen, "vendor") if len(split[0]) > len(split[1])),
        *without_shapes(seen),
    ]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        left = [one for some in pool.map(left_out, *zip(*splits, strict=True)) for one in some]
    intervals = fit_intervals(left)
    found = fit(seen, intervals)
    TARGET.write_text(json.dumps(as_data(found), indent=1) + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(seen)} observations, {time.monotonic() - began:.0f} s")
    return 0


def _check(seen: Sequence[CallObservation]) -> int:
    written = json.loads(TARGET.read_text(encoding="utf-8"))["coefficients"]
    found = dict(coefficients_of(seen))
    apart = {name for name in written.keys() | found.keys() if abs(written.get(name, 9) - found.get(name, 9)) > 0.02}
    print(f"{len(apart)} of {len(found)} coefficients differ" + "".join(f"\n  {name}" for name in sorted(apart)))
    return bool(apart)


def as_data(found: Fitted) -> dict[str, Any]:
    """Return what is written of a predictor."""
    rounded = partial(round, ndigits=DIGITS)
    return {
        "about": "written by scripts/fit_prediction.py from the measurements of others in this package",
        "coefficients": {name: rounded(value) for name, value in found.coefficients.items()},
        "intervals": {name: rounded(value) for name, value in found.intervals.items()},
        "weights": [rounded(float(value)) for value in found.weights],
    }


def fit(seen: Sequence[CallObservation], intervals: Mapping[str, float] | None = None) -> Fitted:
    """Return the predictor fitted to observations, with intervals as they are given."""
    return corrected(seen, coefficients_of(seen), intervals)


def corrected(
    seen: Sequence[CallObservation], coefficients: Coefficients, intervals: Mapping[str, float] | None = None
) -> Fitted:
    """Return the predictor of coefficients and of observations near a call."""
    batch = Batch([each.facts for each in seen])
    weights = observe(batch, -errors(batch, seen, coefficients), np.array([each.noise for each in seen]))
    return made(coefficients, weights, intervals or {}, seen)


def coefficients_of(seen: Sequence[CallObservation]) -> Coefficients:
    """Return the coefficients that make the terms nearest to what was measured."""
    batch = Batch([each.facts for each in seen])
    names = names_for(batch)
    means = np.array([expected(name).mean for name in names])
    deviations = np.array([expected(name).stdev for name in names])
    weight = 1 / np.hypot(SCALE, np.array([each.noise for each in seen]))

    def weighed(values: Numbers) -> Numbers:
        known = dict(zip(names, values.tolist(), strict=True))
        found: Numbers = errors(batch, seen, known) * weight
        return found

    def residuals(values: Numbers) -> Numbers:
        return np.concatenate([weighed(values), (values - means) / deviations])

    def slopes(values: Numbers) -> Numbers:
        """Return what residuals change by: a call depends on one member of a group, so all are moved at once."""
        now, found = weighed(values), np.zeros((len(seen), len(names)))
        for columns in columns_of_calls(batch, names):
            moved = values.copy()
            moved[columns] += MOVED
            found[np.arange(len(seen)), columns] = (weighed(moved) - now) / MOVED
        return np.concatenate([found, np.diag(1 / deviations)])

    found = least_squares(residuals, means, jac=slopes, loss="soft_l1", max_nfev=STEPS)
    return dict(zip(names, found.x.tolist(), strict=True))


def columns_of_calls(batch: Batch, names: Sequence[str]) -> list[Indices]:
    """Return for each coefficient, and for each group of them, which of `names` each call depends on."""
    place = {name: at for at, name in enumerate(names)}
    alone = [np.full(len(batch), place[name]) for name in SINGLE]
    of_groups = (
        np.array([place[f"{name}:{member}"] for member in batch.members(*by)])[batch.member_of(*by)]
        for name, (by, _) in GROUPS.items()
    )
    return [*alone, *of_groups]


def errors(batch: Batch, seen: Sequence[CallObservation], known: Coefficients) -> Numbers:
    """Return logarithms of what the terms say over what was measured."""
    searched = np.array([each.searched for each in seen])
    measured = np.log([each.time_s for each in seen])
    saved = np.where(searched, np.log1p(-exponential(known, "searched")), 0.0)
    found: Numbers = np.log(terms(batch, known).total) + saved - measured
    return found


Split = tuple[tuple[CallObservation, ...], tuple[CallObservation, ...]]


def without_devices(seen: Sequence[CallObservation]) -> list[Split]:
    """Return for each device the observations of all others, and its own; those that few measured are left out as one.

    What the few show of a device is one product or two: to leave each out alone would take most of the time.
    """
    counts = Counter(each.facts.device for each in seen)
    return _by(seen, lambda each: each.facts.device if counts[each.facts.device] >= FEW else "")


def without(seen: Sequence[CallObservation], field: str) -> list[Split]:
    """Return for each architecture, team or vendor the observations of all others, and its own."""
    return _by(seen, lambda each: getattr(each.facts, field))


def without_shapes(seen: Sequence[CallObservation]) -> list[Split]:
    """Return for each fifth of the shapes the observations of all other shapes, and its own."""
    shapes = {shape: at for at, shape in enumerate(dict.fromkeys(str(each.case.shape) for each in seen))}
    return _by(seen, lambda each: shapes[str(each.case.shape)] % FOLDS)


def _by(seen: Sequence[CallObservation], key: Callable[[CallObservation], object]) -> list[Split]:
    keys = dict.fromkeys(map(key, seen))
    return [
        (tuple(each for each in seen if key(each) != one), tuple(each for each in seen if key(each) == one))
        for one in keys
    ]


def left_out(others: Sequence[CallObservation], own: Sequence[CallObservation]) -> tuple[Left, Left]:
    """Return what was left out, predicted from the others, and from those of them at other shapes alone."""
    coefficients = coefficients_of(others)
    shapes = {(each.case.operation, each.case.shape) for each in own}
    elsewhere = [each for each in others if (each.case.operation, each.case.shape) not in shapes]
    return _predicted(own, corrected(others, coefficients)), _predicted(own, corrected(elsewhere, coefficients))


def _predicted(own: Sequence[CallObservation], found: Fitted) -> Left:
    judged = found.judged([each.facts for each in own])
    gain = np.where([each.searched for each in own], found.searched_gain(), 0.0)
    wrong = np.log(judged.times_s) + gain - np.log([each.time_s for each in own])
    counts = Counter(each.facts.device for each in own)
    weights = np.array([counts[each.facts.device] ** -0.5 for each in own])
    return Left(wrong, weights, dict(judged.regimes))


def fit_intervals(left: Sequence[Left]) -> dict[str, float]:
    """Return what decides how sure a prediction is: likeliest, then so that HELD of each group hold.

    Conformal prediction: groups are kinds of kernels and durations on devices or by teams that were left out.
    """
    names = sorted({name for each in left for name in each.regimes})
    wrong, weights = (np.concatenate([getattr(each, name) for each in left]) for name in ("errors", "weights"))
    weights = weights / weights.mean()
    values = np.stack(
        [np.concatenate([each.regimes.get(name, np.zeros(len(each.errors))) for each in left]) for name in names]
    )
    cost = partial(_unlikely, wrong=np.abs(wrong), weights=weights, values=values, constant=names.index("constant"))
    found = dict(zip(names, minimize(cost, np.zeros(len(names)), method="L-BFGS-B").x.tolist(), strict=True))
    regimes = dict(zip(names, values, strict=True))
    is_new = np.maximum(regimes["new_device"], regimes["new_team"]) > 0
    groups = {name: is_new & (regimes[name] > HALF) for name in names if name.startswith(("family:", "lasts:"))}
    groups |= {name: regimes[name] > 0 for name in ("new_device", "new_team")}
    groups |= {name: ~is_new & (regimes[name] > 0) for name in names if name.startswith("team:")}
    groups = {name: chosen for name, chosen in groups.items() if chosen.any()}
    for _ in range(STEPS_TO_HOLD):
        for name, chosen in groups.items():
            held = np.abs(wrong[chosen]) <= DEVIATIONS * deviation(
                {key: of[chosen] for key, of in regimes.items()}, found
            )
            found[name] += RATE * (HELD - float(np.average(held, weights=weights[chosen])))
    return found


def _unlikely(known: Numbers, *, wrong: Numbers, weights: Numbers, values: Numbers, constant: int) -> float:
    """Return how unlikely errors are of a Laplace distribution, whose tails are those of what was left out."""
    logarithm = known @ values
    usual = np.delete(known, constant)
    return float((weights * (logarithm + np.sqrt(2) * wrong * np.exp(-logarithm))).sum() + 20 * (usual**2).sum())


if __name__ == "__main__":
    sys.exit(main())
