"""StepFit what steps of whole models take beyond their operations, and write it to the package: `make models`.

Deviations are of configurations left out of the fit, and of GPUs left out, for those it has not seen.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from gpuexplore.analysis.prediction import calibrate
from gpuexplore.features.model.analysis.rows import MeasuredStep, published_steps
from gpuexplore.features.model.analysis.step_time import (
    INTERVAL_DEVIATIONS,
    PRIORS,
    STACKED,
    StepFit,
    StepTerms,
    seconds_of,
)

Row = tuple[StepTerms, float]
Errors = npt.NDArray[np.float64]
WRITTEN = Path(__file__).resolve().parents[1] / "gpuexplore" / "analysis" / "data" / "models.json"
LEAST = 0.06  # deviation: rows of one team agree more than those of two
UNLIKE_MEMORY = 0.15  # added where no row is of a card without stacked memory
OUTLIER = 0.12  # of a logarithm: errors beyond it count less
TASKS = ("train", "prefill", "decode")
LEVELS: dict[str, Callable[[MeasuredStep], object]] = {
    "configuration": lambda step: step.name,
    "model": lambda step: (step.model.name, step.plan.is_trained),
    "chip": lambda step: (step.device.name, step.plan.is_trained),
}


def names_of(rows: Sequence[Row]) -> list[str]:
    """Return the coefficients: those with priors, and one of each chip and card."""
    known = [f"{kind}:{getattr(terms, kind)}" for terms, _ in rows for kind in ("chip", "device")]
    return [*(name for name in PRIORS if name not in ("chip", "device")), *dict.fromkeys(known)]


def fit_to(rows: Sequence[Row]) -> StepFit:
    """Return the coefficients for terms with measured seconds."""
    names = names_of(rows)
    known = [PRIORS[name if name in PRIORS else name.partition(":")[0]] for name in names]
    expected = np.array([value for value, _ in known])
    deviation = np.array([value for _, value in known])

    def residuals(values: Errors) -> Errors:
        fit = StepFit(dict(zip(names, values.tolist(), strict=True)), {})
        errors = np.array([error_of(fit, row) for row in rows])
        return np.concatenate([np.arctan(errors / OUTLIER), (values - expected) / deviation])

    found = least_squares(residuals, expected).x
    return StepFit(dict(zip(names, np.round(found, 4).tolist(), strict=True)), {})


def error_of(fit: StepFit, row: Row) -> float:
    """Return the logarithm of the measured seconds over the predicted."""
    terms, step_s = row
    return float(np.log(step_s / sum(seconds_of(terms, fit).values())))


def left_out(rows: Sequence[Row], keys: Sequence[object]) -> Errors:
    """Return the error of each row where all rows with its key are left out of the fit."""
    errors = np.zeros(len(rows))
    for key in dict.fromkeys(keys):
        fit = fit_to([row for row, each in zip(rows, keys, strict=True) if each != key])
        for at, each in enumerate(keys):
            if each == key:
                errors[at] = error_of(fit, rows[at])
    return errors


def rows_with_terms(steps: Sequence[MeasuredStep]) -> list[Row]:
    """Return the terms of each step and the seconds that were measured."""
    calibration = calibrate()
    return [(step.terms(calibration), step.step_s) for step in steps]


def deviations(rows: Sequence[Row], steps: Sequence[MeasuredStep]) -> dict[str, float]:
    """Return the deviation of each level, task and kind of memory, and print the errors it is of."""
    found: dict[str, float] = {}
    tasks = np.array([step.task for step in steps])
    stacked = np.array([terms.chip in STACKED for terms, _ in rows])
    for level, key in LEVELS.items():
        errors = left_out(rows, [key(step) for step in steps])
        for task in TASKS:
            off = np.abs(np.expm1(-errors[tasks == task]))
            print(f"{level:14} {task:8} {len(off):3}: median {np.median(off):.1%}, p90 {np.quantile(off, 0.9):.1%}")
            for memory, of_kind in (("stacked", stacked), ("gddr", ~stacked)):
                own = np.abs(errors[(tasks == task) & of_kind])
                usual = found.get(f"{level}:{task}:stacked", 0.0) + UNLIKE_MEMORY
                deviation = float(np.quantile(own, 0.92)) / INTERVAL_DEVIATIONS if len(own) else usual
                found[f"{level}:{task}:{memory}"] = round(max(deviation, LEAST), 4)
    return found


def main() -> None:
    """StepFit, print how far left-out rows are, and write the coefficients."""
    steps = published_steps()
    rows = rows_with_terms(steps)
    written = {"coefficients": fit_to(rows).coefficients, "deviation": deviations(rows, steps)}
    WRITTEN.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
