"""Every lesson with its question, its minutes and how far the visitor is; files that are none, with their reasons."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Literal

import streamlit as st

from gpuexplore.features.lessons.lesson.catalog import Catalog
from gpuexplore.features.lessons.lesson.format import Lesson
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome
from gpuexplore.store.answers import Answer
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import owner, store

DONE = "done"

Open = Callable[[str], None]
COLUMNS = 2
Kind = Literal["primary", "secondary"]


def show_lessons(found: Catalog, open_lesson: Open) -> None:
    """Show the lessons in their order.

    Args:
        found: what there is.
        open_lesson: called with the name of the one that is chosen.
    """
    first, *others = found.lessons.values()
    _show_lesson(first, open_lesson, is_first=True)
    for start in range(0, len(others), COLUMNS):
        for column, lesson in zip(st.columns(COLUMNS), others[start : start + COLUMNS], strict=False):
            with column:
                _show_lesson(lesson, open_lesson)
    for name, reason in found.unreadable.items():
        st.warning(f"**{plain(name)}** cannot be read. {plain(reason)}", icon=":material/warning:")
    _show_own_answers()


def exported(answers: Sequence[Answer]) -> str:
    """Return answers as JSON, without the name of the browser they belong to."""
    return json.dumps([asdict(answer) | {"owner": "you"} for answer in answers], indent=2)


def _show_lesson(lesson: Lesson, open_lesson: Open, *, is_first: bool = False) -> None:
    answers = answers_to(lesson)
    said = summary(lesson, answers)
    with st.container(border=True, height="stretch"):
        words, button = st.columns([7, 2], vertical_alignment="center")
        number = "" if lesson.order is None else f"{lesson.order}. " if lesson.order else ""
        rows = f" · notebooks {', '.join(lesson.rows)}" if lesson.rows else ""
        words.markdown(
            f"**{number}{plain(lesson.title)}** · {lesson.minutes} min\n\n{plain(lesson.question)}"
            f"\n\n:small[{plain(said) if said else f'{len(lesson.steps)} steps'}{plain(rows)}]"
        )
        label = "Go on" if said else "Begin"
        kind: Kind = "primary" if is_first and not said else "secondary"
        if button.button(label, key=f"open.{lesson.name}", type=kind, width="stretch", help=lesson.title):
            open_lesson(lesson.name)


def _show_own_answers() -> None:
    answers = store().answers_of(owner())
    if not answers:
        return
    with st.expander(f"Your answers: {len(answers)}"):
        st.caption("They are kept on this server under this browser's name until you erase them.")
        with st.container(horizontal=True):
            st.download_button(
                "Export", exported(answers), "gpuexplore-answers.json", "application/json", on_click="ignore"
            )
            with st.popover("Erase"):
                st.markdown("Erase every answer of this browser? Measurements stay.")
                if st.button("Erase them", type="primary"):
                    store().erase_answers(owner())
                    st.rerun()


# How far a visitor is: the last answer of each step, in the words of its outcome.


def answers_to(lesson: Lesson) -> Mapping[str, Answer]:
    """Return the visitor's last answer to each step of this version of a lesson, by letter."""
    found = store().answers_of(owner(), lesson.name)
    return {answer.step: answer for answer in found if answer.digest == lesson.digest}


def state_of(answer: Answer | None) -> str:
    """Return what became of a step, in a word; empty for a step without an answer."""
    if answer is None:
        return ""
    if answer.outcomes is None:
        return "measuring"
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
    counts = [f"{outcomes.count(outcome)} {outcome}" for outcome in GuessOutcome if outcome in outcomes]
    return f"{len(done)} of {len(lesson.steps)} steps" + (f": {', '.join(counts)}" if counts else "")
