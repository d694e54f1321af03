"""Fit what steps of whole models take beyond their operations, and write it to the package: `make models`.

Deviations are of configurations left out of the fit, and of chips left out where a chip is new.
"""

import json
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from gpuexplore.analysis.prediction import calibrate
from gpuexplore.features.model.analysis.rows import published_steps
from gpuexplore.features.model.analysis.step_time import INTERVAL_DEVIATIONS, PRIORS, STACKED, Fit, seconds_of, terms_of

WRITTEN = Path(__file__).resolve().parents[1] / "gpuexplore" / "analysis" / "data" / "models.json"
LEAST = 0.06  # deviation: rows of one team agree more than those of two
UNLIKE_MEMORY = 0.15  # added where no row is of a card without stacked memory
OUTLIER = 0.12  # of a logarithm: errors beyond it count less


def names_of(rows):
    """Return the coefficients: those with priors, and one of each chip and card."""
    known = [f"{kind}:{getattr(terms, kind)}" for terms, _ in rows for kind in ("chip", "device")]
    return [*(name for name in PRIORS if name not in ("chip", "device")), *dict.fromkeys(known)]


def fit_to(rows):
    """Return the coefficients for terms with measured seconds."""
    names = names_of(rows)
    known = [PRIORS[name if name in PRIORS else name.partition(":")[0]] for name in names]
    expected = np.array([value for value, _ in known])
    deviation = np.array([value for _, value in known])

    def residuals(values):
        fit = Fit(dict(zip(names, values, strict=True)), {})
        errors = np.array([error_of(fit, terms, step_s) for terms, step_s in rows])
        return np.concatenate([np.arctan(errors / OUTLIER), (values - expected) / deviation])

    found = least_squares(residuals, expected).x
    return Fit(dict(zip(names, np.round(found, 4).tolist(), strict=True)), {})


def error_of(fit, terms, step_s):
    """Return the logarithm of the measured seconds over the predicted."""
    return np.log(step_s / sum(seconds_of(terms, fit).values()))


def left_out(rows, steps, key):
    """Return the errors of each row where all rows with its `key` are left out."""
    keys = [key(step) for step in steps]
    errors = np.zeros(len(rows))
    for value in dict.fromkeys(keys):
        fit = fit_to([row for row, each in zip(rows, keys, strict=True) if each != value])
        for at, each in enumerate(keys):
            if each == value:
                errors[at] = error_of(fit, *rows[at])
    return errors


def main():
    """Fit, say how far left-out rows are, and write the coefficients."""
    calibration = calibrate()
    steps = published_steps()
    rows = [
        (terms_of(step.model, step.plan, step.device, calibration, context=step.context), step.step_s) for step in steps
    ]
    fit = fit_to(rows)
    kinds = {
        "configuration": lambda step: step.name,
        "model": lambda step: (step.model.name, step.task == "train"),
        "chip": lambda step: (step.device.name, step.task == "train"),
    }
    deviations = {}
    for name, key in kinds.items():
        errors = left_out(rows, steps, key)
        for task in ("train", "prefill", "decode"):
            own = np.array([error for error, step in zip(errors, steps, strict=True) if step.task == task])
            off = np.abs(np.expm1(-own))
            print(
                f"{name:14} {task:8} {len(own):3} median {np.median(off):.1%} nine in ten {np.quantile(off, 0.9):.1%} bias {np.median(own):+.1%}"
            )
            stacked = np.array(
                [terms.chip in STACKED for (terms, _), step in zip(rows, steps, strict=True) if step.task == task]
            )
            for kind, chosen in (("stacked", own[stacked]), ("gddr", own[~stacked])):
                found = (
                    float(np.quantile(np.abs(chosen), 0.92) / INTERVAL_DEVIATIONS)
                    if len(chosen)
                    else deviations[f"{name}:{task}:stacked"] + UNLIKE_MEMORY
                )
                deviations[f"{name}:{task}:{kind}"] = round(max(found, LEAST), 4)
            if name == "configuration":
                for error, step in sorted(zip(errors, steps, strict=True), key=lambda each: -abs(each[0]))[:8]:
                    if task == "train":
                        print(f"   {error:+.2f} {step.name}")
    print(fit.coefficients, deviations)
    WRITTEN.write_text(
        json.dumps({"coefficients": fit.coefficients, "deviation": deviations}, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
