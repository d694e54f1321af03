"""All ones: every sum is a whole number, and rounding has nothing to do."""

from gpuexplore.features.mistakes.catalog.contract import Detection, Mistake, Observation, Reading, Sign, Stage
from gpuexplore.features.mistakes.catalog.subject import accuracy_of, open_subject, with_data
from gpuexplore.measure.check.inputs import Reference
from gpuexplore.model import Accuracy, Shape

SIZE = 256
DTYPE = "bf16"


def demonstrate(stage: Stage) -> Observation:
    """Compute a product in bf16 from ones and from random numbers, and take the error of both."""
    subject = open_subject(stage, "matmul", Shape.of(m=SIZE, k=SIZE, n=SIZE), dtype=DTYPE, implementation="torch")
    group = subject.group
    ones = Reference(group.operation, group.dtype, group.inputs(subject.case.shape, "ones"))
    on_ones = accuracy_of(with_data(subject, ones), ones)
    on_normal = accuracy_of(subject, group.checked_reference)
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what=subject.what,
        how="measured",
        wrong=Reading(on_ones.relative_error),
        right=Reading(on_normal.relative_error),
        detection=detection(on_ones, group.dtype.unit_roundoff),
        environment=subject.environment,
    )


def detection(accuracy: Accuracy, unit_roundoff: float) -> Detection:
    """Return whether an error is exactly zero although every output was rounded."""
    evidence = f"error {accuracy.relative_error:g}; rounding one number to {DTYPE} costs up to {unit_roundoff:.2g}"
    return Detection(accuracy.relative_error == 0, evidence)


MISTAKE = Mistake(
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
    demonstrate=demonstrate,
)
