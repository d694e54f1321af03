"""`allclose` with its default tolerances calls a correct product wrong."""

import numpy as np
import numpy.typing as npt

from gpuexplore.features.mistakes.catalog.contract import Detection, Mistake, Observation, Reading, Sign, Stage
from gpuexplore.features.mistakes.catalog.subject import accuracy_of, open_subject
from gpuexplore.model import Accuracy, Shape
from gpuexplore.units import format_percent

SIZE = 1000

Product = npt.NDArray[np.float64]


def demonstrate(stage: Stage) -> Observation:
    """Compare two correct products of 1000 × 1000 element by element and by their norms."""
    subject = open_subject(stage, "matmul", Shape.of(m=SIZE, k=SIZE, n=SIZE), implementation="torch")
    group = subject.group
    accuracy = accuracy_of(subject, group.checked_reference)
    other = np.matmul(*group.checked_reference.inputs).astype(np.float64)
    share = unequal_share(subject.candidate.output(), other)
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what=f"matmul at {SIZE:,} × {SIZE:,} × {SIZE:,} in fp32, torch and numpy",
        how="measured",
        wrong=Reading(share),
        right=Reading(0.0 if accuracy.within else 1.0),
        detection=detection(share, accuracy),
        note="The share of the elements that each check calls wrong; both products are correct.",
        environment=subject.environment,
    )


def unequal_share(out: Product, other: Product) -> float:
    """Return the share of elements that NumPy's default tolerances call unequal."""
    return float(np.mean(~np.isclose(out, other)))


def detection(share: float, accuracy: Accuracy) -> Detection:
    """Return whether the two checks disagree, with both figures."""
    if accuracy.relative_error is None:
        return Detection(None, "the product holds what is not finite")
    return Detection(
        share > 0 and accuracy.within,
        f"allclose is {share == 0}: {format_percent(share)} of the elements differ by more than 1e-5 of themselves; "
        f"the relative error is {accuracy.relative_error:.2g}, rounding explains up to {accuracy.tolerance:.2g}",
    )


MISTAKE = Mistake(
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
    demonstrate=demonstrate,
)
