"""The kernel adds to its output in place of writing it, so each timed call changes the answer."""

from dataclasses import replace

from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Reading, Sign, Stage
from gpuexplore.features.mistakes.catalog.subject import Subject, accuracy_of, factor_of, incorrect, open_subject
from gpuexplore.measure.check.elements import judge
from gpuexplore.model import Accuracy, Shape

LENGTH = 100_000
CALLS = 10


def demonstrate(stage: Stage) -> Observation:
    """Add two vectors ten times, into the output and onto it."""
    subject = open_subject(stage, "vector_add", Shape.of(n=LENGTH))
    a, b = subject.group.checked_reference.inputs
    out = subject.candidate.out

    def accumulate() -> None:
        out[...] += a + b

    adding = replace(subject, candidate=replace(subject.candidate, run=accumulate))
    wrong, right = after_calls(adding), after_calls(subject)
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what=f"{subject.what}; the error after {CALLS} calls",
        how="measured",
        wrong=Reading(wrong.relative_error),
        right=Reading(right.relative_error),
        detection=incorrect(accuracy_of(adding, subject.group.checked_reference)),
        factor=factor_of(wrong, right),
        note=(
            "Before an output is checked it is filled with NaN, and what adds to it stays NaN. "
            "The kernel also reads its output: 16 bytes per element, where an addition that writes moves 12."
        ),
        environment=subject.environment,
    )


def after_calls(subject: Subject) -> Accuracy:
    """Return the accuracy after ten calls on an output that held zeros."""
    subject.candidate.out[...] = 0
    for _ in range(CALLS):
        subject.candidate.run()
    return judge(subject.candidate.output(), subject.group.checked_reference, subject.case.shape)


MISTAKE = Mistake(
    name="accumulating-output",
    title="Is the answer still right after the tenth call?",
    rows=("B3",),
    wrong="The kernel adds to its output, and the timing calls it a thousand times.",
    right="A timed call writes its output, and gives the same answer however often it is called.",
    wrong_code="u[i] += a[i] + b[i]",
    right_code="u[i] = a[i] + b[i]",
    why=(
        "After a thousand calls the output holds a thousand times the sum, and a comparison with NumPy would fail. "
        "It also reads what it overwrites, 16 bytes per element in place of 12, so another amount of work is timed."
    ),
    quantity="error",
    gives_away=Sign("status", "incorrect"),
    live_on=("cpu",),
    elsewhere="the arithmetic is the same on every device.",
    demonstrate=demonstrate,
)
