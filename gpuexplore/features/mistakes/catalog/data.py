"""Mistakes in the data, and in how the answer is checked."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.core.dtypes import DTYPES, dtype_named
from gpuexplore.core.model import Accuracy, Shape
from gpuexplore.core.units import format_percent
from gpuexplore.features.mistakes.catalog.contract import (
    Detection,
    Factor,
    Mistake,
    MistakeObservation,
    Sign,
    Stage,
    WayReading,
)
from gpuexplore.features.mistakes.catalog.subject import (
    Subject,
    accuracy_of,
    factor_of,
    from_pairs,
    incorrect,
    interleave,
    no_sign,
    open_subject,
    round_median,
    with_data,
)
from gpuexplore.hardware import accelerator_named
from gpuexplore.measure.check.correctness import check
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.group import Group
from gpuexplore.measure.check.inputs import Reference
from gpuexplore.measure.conditions.environment import describe_environment

# Zeros as data: a GPU draws less power, and raises its clock.
ZEROS_SIZE = 8192
PUBLISHED_ROW = "h200-sxm-141gb"  # its notes: measured 788-798 bf16 on random data, 894 on zeros
ON_ZEROS = 894e12  # FLOP/s
ON_RANDOM = (788e12, 798e12)


def _demonstrate_zeros(stage: Stage) -> MistakeObservation:
    """Time a bf16 product on zeros and on random numbers."""
    subject = open_subject(stage, "matmul", Shape.of(m=ZEROS_SIZE, k=ZEROS_SIZE, n=ZEROS_SIZE), dtype="bf16")
    group = subject.group
    inputs = group.inputs(subject.case.shape, "zeros")
    return observe_zeros(with_data(subject, Reference(group.operation, group.dtype, inputs)), subject, stage)


def observe_zeros(zeros: Subject, normal: Subject, stage: Stage) -> MistakeObservation:
    """Compare the rates on zeros and on random numbers."""
    pairs = interleave(round_median(zeros, stage), round_median(normal, stage), stage)
    return from_pairs(ZEROS, pairs.as_rates(normal.flop_count), normal, no_sign(ZEROS))


def _published_zeros(_: Stage) -> MistakeObservation:
    """Return what was published of one GPU."""
    row = accelerator_named(PUBLISHED_ROW)
    middle = sum(ON_RANDOM) / 2
    return MistakeObservation(
        mistake=ZEROS.name,
        quantity=ZEROS.quantity,
        what="large products in bf16 on an H200",
        how="published",
        wrong=WayReading(ON_ZEROS),
        right=WayReading(middle, ON_RANDOM),
        detection=no_sign(ZEROS),
        factor=Factor(ON_ZEROS / middle, (ON_ZEROS / ON_RANDOM[1], ON_ZEROS / ON_RANDOM[0])),
        note="What was published: two rates on random numbers, whose range stands for the interval, and one on zeros.",
        source=f"{row.name}: {row.notes}" if row else None,
    )


ZEROS = Mistake(
    name="zeros",
    title="Does it matter what the numbers are?",
    rows=("E7",),
    wrong="The matrices are filled with zeros, because only the time is asked for.",
    right="Fill them with random numbers of the kind that will be computed on.",
    wrong_code="a = torch.zeros(n, n, device=device)",
    right_code="a = torch.randn(n, n, device=device)",
    why=(
        "A multiplier whose inputs do not change hardly switches, and draws less power. "
        "A GPU at its power limit then raises its clock, so zeros are computed faster than anything else."
    ),
    quantity="compute rate",
    why_none=(
        "The rate stays below the peak, and a higher clock is what every GPU strives for. Only the options of a "
        "result tell what the data were"
    ),
    live_on=("cuda",),
    elsewhere="a CPU's clock does not follow the values it multiplies by as much as can be measured.",
    instead=_published_zeros,
    demonstrate=_demonstrate_zeros,
)


# All ones: every sum is a whole number, and rounding has nothing to do.
ONES_SIZE = 256
ONES_DTYPE = "bf16"


def _demonstrate_all_ones(stage: Stage) -> MistakeObservation:
    """Compute a product in bf16 from ones and from random numbers, and take the error of both."""
    shape = Shape.of(m=ONES_SIZE, k=ONES_SIZE, n=ONES_SIZE)
    subject = open_subject(stage, "matmul", shape, dtype=ONES_DTYPE, implementation="torch")
    group = subject.group
    ones = Reference(group.operation, group.dtype, group.inputs(shape, "ones"))
    on_ones = accuracy_of(with_data(subject, ones), ones)
    return MistakeObservation(
        mistake=ALL_ONES.name,
        quantity=ALL_ONES.quantity,
        what=subject.what,
        how="measured",
        wrong=WayReading(on_ones.relative_error),
        right=WayReading(accuracy_of(subject, group.checked_reference).relative_error),
        detection=exact_error(on_ones, group.dtype.unit_roundoff),
        environment=subject.environment,
    )


def exact_error(accuracy: Accuracy, unit_roundoff: float) -> Detection:
    """Return whether an error is exactly zero although every output was rounded."""
    evidence = f"error {accuracy.relative_error:g}; rounding one number to {ONES_DTYPE} costs up to {unit_roundoff:.2g}"
    return Detection(accuracy.relative_error == 0, evidence)


ALL_ONES = Mistake(
    name="all-ones",
    title="How large is the error of a product of ones?",
    rows=("E3", "E7"),
    wrong="The matrices are filled with ones, and the result agrees to the last digit.",
    right="Check on random numbers, against a reference in float64 from the same rounded inputs.",
    wrong_code=("x, w = torch.ones(m, k), torch.ones(k, n)\nassert (x @ w == k).all()"),
    right_code=("x, w = torch.randn(m, k), torch.randn(k, n)\nerror = norm(out - exact) / norm(exact)"),
    why=(
        "Ones and their sums up to 256 are whole numbers, which bf16 holds exactly, so nothing is ever rounded. "
        "Random numbers use all digits of the format, and show what it drops."
    ),
    quantity="error",
    gives_away=Sign("check", "an error of exactly 0 in a format that rounds"),
    live_on=("cpu", "cuda"),
    demonstrate=_demonstrate_all_ones,
)


# TF32 computes what was asked for in fp32.
TF32_SIZE = 512
NO_TF32 = "A CPU has no TF32: its rounding of the inputs to 11 significant bits is emulated, the product is in fp32."


def _demonstrate_tf32_on(stage: Stage) -> MistakeObservation:
    """Compute a product in TF32 and in fp32, and take the error of both."""
    subject = open_subject(stage, "matmul", Shape.of(m=TF32_SIZE, k=TF32_SIZE, n=TF32_SIZE))
    group = subject.group
    is_emulated = stage.device.kind == "cpu"
    wrong = _emulated_tf32(group) if is_emulated else _on_tensor_cores(subject)
    right = accuracy_of(subject, group.checked_reference)
    return MistakeObservation(
        mistake=TF32_ON.name,
        quantity=TF32_ON.quantity,
        what=subject.what,
        how="emulated" if is_emulated else "measured",
        wrong=WayReading(wrong.relative_error),
        right=WayReading(right.relative_error),
        detection=incorrect(wrong),
        factor=factor_of(wrong, right),
        note=NO_TF32 if is_emulated else None,
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


TF32_ON = Mistake(
    name="tf32-on",
    title="Was fp32 computed in fp32?",
    rows=("B6", "E6"),
    wrong="TF32 is allowed, and the rate is told as that of fp32.",
    right="Treat TF32 as a dtype of its own, with its own peak and its own error.",
    wrong_code=('set_float32_matmul_precision("high")\nc = a @ b            # told as fp32'),
    right_code=('set_float32_matmul_precision("highest")\nc = a @ b            # tf32 is another case'),
    why=(
        "Tensor cores take fp32 as 19 bits: the range of fp32 with 11 significant bits, of 24. "
        "They are several times as fast, and their products are off by a thousand times as much."
    ),
    quantity="error",
    gives_away=Sign("status", "incorrect"),
    live_on=("cpu", "cuda"),
    demonstrate=_demonstrate_tf32_on,
)


# A sum in fp16 passes 65,504 and is infinite from there on.
MULTIPLIED_COUNT = 65_536


def _demonstrate_fp16_overflow(stage: Stage) -> MistakeObservation:
    """Take the dot product of 65,536 ones with as many, in fp16 and in fp32."""
    narrow = dot(np.float16)
    wide = dot(np.float32)
    roundoff = 2.0**-11  # of rounding the sum to fp16
    accuracy = check(np.array([narrow]), ((..., np.array([float(MULTIPLIED_COUNT)])),), roundoff)
    return MistakeObservation(
        mistake=FP16_OVERFLOW.name,
        quantity=FP16_OVERFLOW.quantity,
        what=f"dot product of {MULTIPLIED_COUNT:,} ones, numpy",
        how="measured",
        wrong=WayReading(narrow) if np.isfinite(narrow) else WayReading(None, text=str(narrow)),
        right=WayReading(wide),
        detection=incorrect(accuracy),
        note="fp16 ends at 65,504; half as many ones, 32,768, still fit.",
        environment=describe_environment(stage.device, ["numpy"], stage.device.cores),
    )


def dot(dtype: type[np.floating], count: int = MULTIPLIED_COUNT) -> float:
    """Return the dot product of `count` ones with as many, its result in `dtype`."""
    ones = np.ones(count, dtype)
    with np.errstate(over="ignore"):
        return float(np.dot(ones, ones))


FP16_OVERFLOW = Mistake(
    name="fp16-overflow",
    title="How far does fp16 count?",
    rows=("D2", "E7"),
    wrong="A long sum is written in fp16, and the time is told without a look at the result.",
    right="Check the output for what is not finite; keep long sums in fp32, or use bf16.",
    wrong_code=("x = np.ones(65_536, np.float16)\nnp.dot(x, x)         # inf"),
    right_code=("x = np.ones(65_536, np.float32)\nnp.dot(x, x)         # 65536.0"),
    why=(
        "fp16 has 5 bits of exponent, so nothing above 65,504 exists in it. "
        "The sum may be kept in fp32: when it is written as fp16 it becomes infinite, and so does all that follows."
    ),
    quantity="sum",
    gives_away=Sign("status", "incorrect"),
    live_on=("cpu",),
    elsewhere="the format ends at the same number on every device.",
    demonstrate=_demonstrate_fp16_overflow,
)


# `allclose` with its default tolerances calls a correct product wrong.
PRODUCT_SIZE = 1000

Product = npt.NDArray[np.float64]


def _demonstrate_default_allclose(stage: Stage) -> MistakeObservation:
    """Compare two correct products of 1000 × 1000 element by element and by their norms."""
    shape = Shape.of(m=PRODUCT_SIZE, k=PRODUCT_SIZE, n=PRODUCT_SIZE)
    subject = open_subject(stage, "matmul", shape, implementation="torch")
    group = subject.group
    accuracy = accuracy_of(subject, group.checked_reference)
    share = float(
        np.mean(~np.isclose(subject.candidate.output(), np.matmul(*group.checked_reference.inputs).astype(np.float64)))
    )
    return MistakeObservation(
        mistake=DEFAULT_ALLCLOSE.name,
        quantity=DEFAULT_ALLCLOSE.quantity,
        what=f"matmul at {PRODUCT_SIZE:,} × {PRODUCT_SIZE:,} × {PRODUCT_SIZE:,} in fp32, torch and numpy",
        how="measured",
        wrong=WayReading(share),
        right=WayReading(0.0 if accuracy.within else 1.0),
        detection=disagreement(share, accuracy),
        note="The share of the elements that each check calls wrong; both products are correct.",
        environment=subject.environment,
    )


def disagreement(share: float, accuracy: Accuracy) -> Detection:
    """Return whether the two checks disagree, with both figures."""
    if accuracy.relative_error is None:
        return Detection(None, "the product holds what is not finite")
    return Detection(
        share > 0 and accuracy.within,
        f"allclose is {share == 0}: {format_percent(share)} of the elements differ by more than 1e-5 of themselves; "
        f"the relative error is {accuracy.relative_error:.2g}, rounding explains up to {accuracy.tolerance:.2g}",
    )


DEFAULT_ALLCLOSE = Mistake(
    name="default-allclose",
    title="Are two correct products equal?",
    rows=("A1", "B6"),
    wrong="Two fp32 products are compared by allclose with its default tolerances.",
    right="Compare with a float64 reference by norm, with a tolerance that grows with the length of the sums.",
    wrong_code="torch.allclose(c_cpu, c_gpu)  # False",
    right_code=("error = norm(c_gpu - exact) / norm(exact)\nerror <= (4 * sqrt(k) + 2) * 2**-24"),
    why=(
        "Two libraries add the same thousand terms in another order, and each order rounds in its own way. "
        "Elements near zero, where large terms cancel, then differ by more than a hundred-thousandth of themselves."
    ),
    quantity="share",
    gives_away=Sign("check", "allclose fails while the error by norm is what rounding explains"),
    live_on=("cpu", "cuda"),
    demonstrate=_demonstrate_default_allclose,
)


# A sum that is kept in a 16-bit format stands still once its terms are smaller than half of its last digit.
ADDED_COUNT = 5000


def _demonstrate_sum_one_by_one(stage: Stage) -> MistakeObservation:
    """Add 5,000 ones one after another, the sum kept in bf16 and in fp32."""
    narrow = total("bf16")
    wide = total("fp32")
    accuracy = check(
        np.array([narrow]), ((..., np.array([float(ADDED_COUNT)])),), dtype_named("bf16").unit_roundoff
    )  # of rounding the sum once
    return MistakeObservation(
        mistake=SUM_ONE_BY_ONE.name,
        quantity=SUM_ONE_BY_ONE.quantity,
        what=f"{ADDED_COUNT:,} ones added one after another, each sum rounded to bf16",
        how="measured",
        wrong=WayReading(narrow),
        right=WayReading(wide),
        detection=incorrect(accuracy),
        factor=Factor(narrow / wide),
        note=f"In fp16, which has three binary digits more, the sum stands still at {total('fp16'):,.0f}.",
        environment=describe_environment(stage.device, ["numpy"], stage.device.cores),
    )


def total(dtype_name: str, count: int = ADDED_COUNT) -> float:
    """Return the sum of `count` ones, added one after another and rounded to the format each time."""
    dtype = dtype_named(dtype_name)
    sums = np.zeros(1)
    for _ in range(count):
        sums = dtype.widen(dtype.round(sums + 1)).astype(np.float64)
    return float(sums[0])


SUM_ONE_BY_ONE = Mistake(
    name="sum-one-by-one",
    title="Where does a sum in bf16 stand still?",
    rows=("B6", "E7"),
    wrong="A long sum is kept in the 16-bit format of its terms.",
    right="Keep the sum in fp32, and round it once, when it is written.",
    wrong_code=("total = torch.zeros(1, dtype=torch.bfloat16)\nfor _ in range(5000):\n    total += 1  # 256"),
    right_code=("total = torch.zeros(1)  # fp32\nfor _ in range(5000):\n    total += 1  # 5000"),
    why=(
        "bf16 has 8 significant binary digits, so from 256 on its neighbours are 2 apart: 257 is rounded back to 256, "
        "which is even. Matrix units and libraries therefore add in fp32, whatever format the terms come in."
    ),
    quantity="sum",
    gives_away=Sign("status", "incorrect"),
    live_on=("cpu",),
    elsewhere="the format has the same digits on every device.",
    demonstrate=_demonstrate_sum_one_by_one,
)


MISTAKES = (ZEROS, ALL_ONES, TF32_ON, FP16_OVERFLOW, DEFAULT_ALLCLOSE, SUM_ONE_BY_ONE)
