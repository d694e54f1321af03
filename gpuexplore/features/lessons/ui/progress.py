"""How far a visitor is: the last answer of each step, in the words of its outcome."""

from collections.abc import Mapping

from gpuexplore.features.lessons.lesson.format import Lesson
from gpuexplore.features.lessons.lesson.outcome import Outcome
from gpuexplore.store.answers import Answer
from gpuexplore.ui.session import owner, store

DONE = "done"
STARTED = "measuring"


def answers_to(lesson: Lesson) -> Mapping[str, Answer]:
    """Return the visitor's last answer to each step of this version of a lesson, by letter."""
    found = store().answers_of(owner(), lesson.name)
    return {answer.step: answer for answer in found if answer.digest == lesson.digest}


def state_of(answer: Answer | None) -> str:
    """Return what became of a step, in a word; empty for a step without an answer."""
    if answer is None:
        return ""
    if answer.outcomes is None:
        return STARTED
    return answer.outcomes[0] if len(answer.outcomes) == 1 else DONE


def is_done(answer: Answer | None) -> bool:
    """Return whether a step was answered and judged."""
    return answer is not None and answer.outcomes is not None


def summary(lesson: Lesson, answers: Mapping[str, Answer]) -> str:
    """Return how far a lesson is, e.g. ``3 of 6 steps: 2 right, 1 off``; empty where it was not begun."""
    done = [answer for answer in answers.values() if is_done(answer)]
    if not done:
        return ""
    outcomes = [outcome for answer in done for outcome in answer.outcomes or ()]
    counts = [f"{outcomes.count(outcome)} {outcome}" for outcome in Outcome if outcome in outcomes]
    return f"{len(done)} of {len(lesson.steps)} steps" + (f": {', '.join(counts)}" if counts else "")
