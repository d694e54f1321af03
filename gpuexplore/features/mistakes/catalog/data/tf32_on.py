"""TF32 computes what was asked for in fp32."""

from dataclasses import replace
from typing import Any

import numpy as np

from gpuexplore.dtypes import DTYPES
from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Reading, Sign, Stage
from gpuexplore.features.mistakes.catalog.subject import Subject, accuracy_of, factor_of, incorrect, open_subject
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.group import Group
from gpuexplore.model import Accuracy, Shape

SIZE = 512
EMULATED = "A CPU has no TF32: its rounding of the inputs to 11 significant bits is emulated, the product is in fp32."


def demonstrate(stage: Stage) -> Observation:
    """Compute a product in TF32 and in fp32, and take the error of both."""
    subject = open_subject(stage, "matmul", Shape.of(m=SIZE, k=SIZE, n=SIZE))
    group, is_emulated = subject.group, stage.device.kind == "cpu"
    wrong = emulated(group) if is_emulated else _on_tensor_cores(subject)
    right = accuracy_of(subject, group.checked_reference)
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what=subject.what,
        how="emulated" if is_emulated else "measured",
        wrong=Reading(wrong.relative_error),
        right=Reading(right.relative_error),
        detection=incorrect(wrong),
        factor=factor_of(wrong, right),
        note=EMULATED if is_emulated else None,
        environment=subject.environment,
    )


def emulated(group: Group) -> Accuracy:
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


MISTAKE = Mistake(
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
    demonstrate=demonstrate,
)
