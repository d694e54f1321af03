"""The instructor's view: notes, and of each step all guesses of the last hours, in type for a projector."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import streamlit as st

from gpuexplore.core.errors import GpuExploreError
from gpuexplore.core.statistics import median
from gpuexplore.features.lessons.lesson.blocks import CANNOT_TELL, GuessBlock, InstructorBlock
from gpuexplore.features.lessons.lesson.evidence import names_of, tasks_of
from gpuexplore.features.lessons.lesson.expression import StepNames
from gpuexplore.features.lessons.lesson.format import Lesson, LessonStep
from gpuexplore.features.lessons.lesson.outcome import JudgedStep, judged_by
from gpuexplore.features.lessons.lesson.quantities import facts_of
from gpuexplore.features.lessons.ui.measuring import alike, found_runs
from gpuexplore.features.lessons.ui.step import guessed
from gpuexplore.store.answers import Answer
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices, store
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.ui.url_widgets import show_problem

SINCE = timedelta(hours=6)
ANSWERS: Shared[tuple[Answer, ...]] = Shared(50)


def show_teacher(lesson: Lesson) -> None:
    """Show every step with notes, this machine's answers and all guesses; it redraws itself."""
    st.fragment(_draw, run_every=3.0)(lesson)


def _draw(lesson: Lesson) -> None:
    answers = _latest(ANSWERS.get((lesson.name, lesson.digest, moment(7)), lambda: _since(lesson)))
    people = len({answer.owner for answer in answers})
    hours = round(SINCE.total_seconds() / 3600)
    st.markdown(f"## {people} {'learner' if people == 1 else 'learners'} in the last {hours} hours")
    for step in lesson.steps:
        try:
            _show_step(step, [answer for answer in answers if answer.step == step.letter])
        except GpuExploreError as error:  # a step of one's own lesson asks for what there is not: the others go on
            show_problem(error)


def _since(lesson: Lesson) -> tuple[Answer, ...]:
    since_utc = (datetime.now(UTC) - SINCE).isoformat(timespec="microseconds")
    return store().answers_since(lesson.name, lesson.digest, since_utc)


def _latest(answers: Sequence[Answer]) -> list[Answer]:
    """Return of each learner the last answer to each step; `answers` has the newest first."""
    found: dict[tuple[str, str], Answer] = {}
    for answer in answers:
        found.setdefault((answer.owner, answer.step), answer)
    return list(found.values())


def _show_step(step: LessonStep, answers: Sequence[Answer]) -> None:
    with st.container(border=True):
        st.markdown(f"### {step.letter}. {plain(step.title)}")
        judged = of_this_machine(step)
        for guess in step.of(GuessBlock):
            made = [answer.guesses.get(guess.id) for answer in answers]
            st.markdown(f"#### {plain(guess.ask)}")
            guesses, truth = st.columns(2)
            guesses.metric(f"Everybody: {_count(guess, made)}", _middle(guess, made))
            truth.metric("This machine, undisturbed, last hour", _truth(judged, guess) or "not measured")
            _show_spread(guess, made)
        outcomes = Counter(outcome for answer in answers for outcome in answer.outcomes or ())
        if outcomes:
            st.markdown(" · ".join(f"{outcome} **{count}**" for outcome, count in outcomes.most_common()))
        names = judged.names if judged else StepNames((), facts_of(known_devices()))
        for notes in step.of(InstructorBlock):
            st.info(notes.text.said(names), icon=":material/school:")


def _middle(guess: GuessBlock, made: Sequence[str | None]) -> str:
    """Return the median of numbers, or the choice most often made; all of them where several are."""
    given = [answer for answer in made if answer is not None]
    if not given:
        return "nobody guessed yet"
    if guess.choices:
        counts = Counter(given)
        most = max(counts.values())
        return ", ".join(choice for choice in (*guess.choices, CANNOT_TELL) if counts[choice] == most)
    return f"{median([float(answer) for answer in given]):,.3g} {guess.unit}".strip()


def _count(guess: GuessBlock, made: Sequence[str | None]) -> str:
    return f"{'median' if not guess.choices else 'most often'} of {sum(answer is not None for answer in made)}"


def _show_spread(guess: GuessBlock, made: Sequence[str | None]) -> None:
    if len(made) < 2:
        return
    counts: Mapping[str | None, int] = Counter(made)
    rows = [
        {"Guess": guessed(guess, {guess.id: answer}), "Learners": counts[answer]}
        for answer in sorted(
            counts, key=lambda answer: (answer is None, 0.0 if guess.choices else float(answer or 0), answer or "")
        )
    ]
    table_of(rows, {"Learners": "count"}).show(alt=f"Table of the guesses of {len(made)} learners")


def of_this_machine(step: LessonStep) -> JudgedStep | None:
    """Return the step as this machine measured it undisturbed within the hour; None where it did not."""
    devices = known_devices()
    tasks = tasks_of(step, devices)
    known = alike(tasks)
    if any(task.work is not None and run is None for task, run in zip(tasks, known, strict=True)):
        return None
    found = found_runs([run.id if run else None for run in known], tasks)
    return judged_by(step, names_of(step, devices, found.measured, tasks), {})


def _truth(judged: JudgedStep | None, guess: GuessBlock) -> str:
    if judged is None:
        return ""
    return next((found.answer for found in judged.checks if found.check.guess == guess.id), "")
