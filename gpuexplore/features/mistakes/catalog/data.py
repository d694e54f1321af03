"""Mistakes in the data, and in how the answer is checked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpuexplore.core import Accuracy, Shape, format_percent
from gpuexplore.core.dtypes import DTYPES, dtype_named
from gpuexplore.features.mistakes.catalog import (
    Demonstrate,
    Detection,
    Factor,
    MistakeObservation,
    Stage,
    WayReading,
    no_sign,
    observed,
)
from gpuexplore.features.mistakes.catalog.subject import (
    Subject,
    accuracy_of,
    factor_of,
    from_pairs,
    incorrect,
    interleave,
    open_subject,
    round_median,
)
from gpuexplore.hardware import accelerator_named
from gpuexplore.measure.check import AnyReference, Group, Reference, check, judge
from gpuexplore.measure.conditions.environment import describe_environment

# Zeros as data: a GPU draws less power, and raises its clock.
PUBLISHED_ROW = "h200-sxm-141gb"  # its notes: measured 788-798 bf16 on random data, 894 on zeros


def _demonstrate_zeros(stage: Stage) -> MistakeObservation:
    """Time a bf16 product on zeros and on random numbers."""
    subject = open_subject(stage, "matmul", Shape.of(m=8192, k=8192, n=8192), dtype="bf16")
    group = subject.group
    inputs = group.inputs(subject.case.shape, "zeros")
    return _observe_zeros(_with_data(subject, Reference(group.operation, group.dtype, inputs)), subject, stage)


def _with_data(subject: Subject, reference: AnyReference) -> Subject:
    """Return the subject computing on other inputs."""
    return replace(subject, candidate=subject.group.build(subject.case, subject.case.shape, reference.inputs))


def _observe_zeros(zeros: Subject, normal: Subject, stage: Stage) -> MistakeObservation:
    """Compare the rates on zeros and on random numbers."""
    pairs = interleave(round_median(zeros, stage), round_median(normal, stage), stage)
    return from_pairs("zeros", pairs.as_rates(normal.flop_count), normal, no_sign("zeros"))


def _published_zeros(_: Stage) -> MistakeObservation:
    """Return what was published of one GPU."""
    row = accelerator_named(PUBLISHED_ROW)
    on_zeros = 894e12  # FLOP/s
    on_random = (788e12, 798e12)
    middle = sum(on_random) / 2
    return observed(
        "zeros",
        what="large products in bf16 on an H200",
        how="published",
        wrong=WayReading(on_zeros),
        right=WayReading(middle, on_random),
        detection=no_sign("zeros"),
        factor=Factor(on_zeros / middle, (on_zeros / on_random[1], on_zeros / on_random[0])),
        note="Published results: two rates on random numbers, whose range is taken as the interval, and one on zeros.",
        source=f"{row.name}: {row.notes}" if row else None,
    )


# All ones: every sum is a whole number, and rounding has nothing to do.


def _demonstrate_all_ones(stage: Stage) -> MistakeObservation:
    """Compute a product in bf16 from ones and from random numbers, and take the error of both."""
    shape = Shape.of(m=256, k=256, n=256)
    subject = open_subject(stage, "matmul", shape, dtype="bf16", implementation="torch")
    group = subject.group
    ones = Reference(group.operation, group.dtype, group.inputs(shape, "ones"))
    on_ones = accuracy_of(_with_data(subject, ones), ones)
    return observed(
        "all-ones",
        what=subject.what,
        how="measured",
        wrong=WayReading(on_ones.relative_error),
        right=WayReading(accuracy_of(subject, group.checked_reference).relative_error),
        detection=_exact_error(on_ones, group.dtype.unit_roundoff),
        environment=subject.environment,
    )


def _exact_error(accuracy: Accuracy, unit_roundoff: float) -> Detection:
    """Return whether an error is exactly zero although every output was rounded."""
    evidence = f"error {accuracy.relative_error:g}; rounding one number to bf16 costs up to {unit_roundoff:.2g}"
    return Detection(accuracy.relative_error == 0, evidence)


# TF32 computes what was asked for in fp32.


def _demonstrate_tf32_on(stage: Stage) -> MistakeObservation:
    """Compute a product in TF32 and in fp32, and take the error of both."""
    subject = open_subject(stage, "matmul", Shape.of(m=512, k=512, n=512))
    group = subject.group
    no_tf32 = (
        "A CPU has no TF32: its rounding of the inputs to 11 significant bits is emulated, the product is in fp32."
    )
    is_emulated = stage.device.kind == "cpu"
    wrong = _emulated_tf32(group) if is_emulated else _on_tensor_cores(subject)
    right = accuracy_of(subject, group.checked_reference)
    return observed(
        "tf32-on",
        what=subject.what,
        how="emulated" if is_emulated else "measured",
        wrong=WayReading(wrong.relative_error),
        right=WayReading(right.relative_error),
        detection=incorrect(wrong),
        factor=factor_of(wrong, right),
        note=no_tf32 if is_emulated else None,
        environment=subject.environment,
    )


def _emulated_tf32(group: Group) -> Accuracy:
    """Return the accuracy, as one of fp32, of a product whose inputs were rounded to TF32."""
    a, b = (DTYPES["tf32"].round(array) for array in group.checked_reference.inputs)
    out: Any = np.matmul(a, b).astype(np.float64)
    return judge(out, group.checked_reference, group.shape)


def _on_tensor_cores(subject: Subject) -> Accuracy:
    """Return the accuracy, as one of fp32, of what tensor cores make of inputs in fp32."""
    group = subject.group
    case = replace(subject.case, dtype="tf32")
    candidate = group.build(case, case.shape, group.checked_reference.inputs)
    return accuracy_of(replace(subject, candidate=candidate), group.checked_reference)


# A sum in fp16 passes 65,504 and is infinite from there on.


def _demonstrate_fp16_overflow(stage: Stage) -> MistakeObservation:
    """Take the dot product of 65,536 ones with as many, in fp16 and in fp32."""
    count = 65_536
    narrow = _dot(np.float16, count)
    wide = _dot(np.float32, count)
    accuracy = check(np.array([narrow]), ((..., np.array([float(count)])),), 2.0**-11)
    return observed(
        "fp16-overflow",
        what=f"dot product of {count:,} ones, numpy",
        how="measured",
        wrong=WayReading(narrow) if np.isfinite(narrow) else WayReading(None, text=str(narrow)),
        right=WayReading(wide),
        detection=incorrect(accuracy),
        note="The largest fp16 number is 65,504; the sum of half as many ones, 32,768, still fits.",
        environment=describe_environment(stage.device, ["numpy"], stage.device.cores),
    )


def _dot(dtype: type[np.floating], count: int) -> float:
    """Return the dot product of `count` ones with as many, its result in `dtype`."""
    ones = np.ones(count, dtype)
    with np.errstate(over="ignore"):
        return float(np.dot(ones, ones))


# `allclose` with its default tolerances calls a correct product wrong.


def _demonstrate_default_allclose(stage: Stage) -> MistakeObservation:
    """Compare two correct products of 1000 × 1000 element by element and by their norms."""
    subject = open_subject(stage, "matmul", Shape.of(m=1000, k=1000, n=1000), implementation="torch")
    group = subject.group
    accuracy = accuracy_of(subject, group.checked_reference)
    share = float(
        np.mean(~np.isclose(subject.candidate.output(), np.matmul(*group.checked_reference.inputs).astype(np.float64)))
    )
    return observed(
        "default-allclose",
        what="matmul at 1,000 × 1,000 × 1,000 in fp32, torch and numpy",
        how="measured",
        wrong=WayReading(share),
        right=WayReading(0.0 if accuracy.within else 1.0),
        detection=_disagreement(share, accuracy),
        note="Share of the elements that each check reports as wrong; both products are correct.",
        environment=subject.environment,
    )


def _disagreement(share: float, accuracy: Accuracy) -> Detection:
    """Return whether the two checks disagree, with both figures."""
    if accuracy.relative_error is None:
        return Detection(None, "the product contains non-finite values")
    return Detection(
        share > 0 and accuracy.within,
        f"allclose is {share == 0}: {format_percent(share)} of the elements differ by more than 1e-5 of themselves; "
        f"the relative error is {accuracy.relative_error:.2g}, rounding explains up to {accuracy.tolerance:.2g}",
    )


# A sum that is kept in a 16-bit format stands still once its terms are smaller than half of its last digit.


def _demonstrate_sum_one_by_one(stage: Stage) -> MistakeObservation:
    """Add 5,000 ones one after another, the sum kept in bf16 and in fp32."""
    count = 5000
    narrow = _total("bf16", count)
    wide = _total("fp32", count)
    accuracy = check(
        np.array([narrow]), ((..., np.array([float(count)])),), dtype_named("bf16").unit_roundoff
    )  # of rounding the sum once
    return observed(
        "sum-one-by-one",
        what=f"{count:,} ones added one after another, each sum rounded to bf16",
        how="measured",
        wrong=WayReading(narrow),
        right=WayReading(wide),
        detection=incorrect(accuracy),
        factor=Factor(narrow / wide),
        note=f"In fp16, with three more significand bits, the sum stops growing at {_total('fp16', count):,.0f}.",
        environment=describe_environment(stage.device, ["numpy"], stage.device.cores),
    )


def _total(dtype_name: str, count: int) -> float:
    """Return the sum of `count` ones, added one after another and rounded to the format each time."""
    dtype = dtype_named(dtype_name)
    sums = np.zeros(1)
    for _ in range(count):
        sums = dtype.widen(dtype.round(sums + 1)).astype(np.float64)
    return float(sums[0])


DEMONSTRATIONS: Mapping[str, Demonstrate] = {
    "zeros": _demonstrate_zeros,
    "published-zeros": _published_zeros,
    "all-ones": _demonstrate_all_ones,
    "tf32-on": _demonstrate_tf32_on,
    "fp16-overflow": _demonstrate_fp16_overflow,
    "default-allclose": _demonstrate_default_allclose,
    "sum-one-by-one": _demonstrate_sum_one_by_one,
}
