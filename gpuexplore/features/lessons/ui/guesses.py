"""The form in which a reader commits to a guess before anything is measured."""

from collections.abc import Mapping, Sequence

import streamlit as st

from gpuexplore.errors import InvalidInput
from gpuexplore.features.lessons.lesson.blocks import CANNOT_TELL, NO_IDEA, Guess
from gpuexplore.features.lessons.lesson.format import Step
from gpuexplore.features.lessons.lesson.outcome import read_guess
from gpuexplore.features.lessons.lesson.work import Task
from gpuexplore.features.lessons.ui.measuring import AnyRun, age_s
from gpuexplore.ui.url_widgets import show_problem
from gpuexplore.units import format_whole_seconds

Guesses = dict[str, str | None]


def ask(step: Step, key: str, tasks: Sequence[Task], known: Sequence[AnyRun | None]) -> tuple[Guesses, bool] | None:
    """Draw the form; return the guesses, and whether `known` is to be used, once the reader commits to them.

    Args:
        step: of a lesson.
        key: of the form.
        tasks: what the step measures.
        known: what was measured alike; used only where it is there for every task.
    """
    with st.form(key, border=True):
        typed = {name: _field(guess, f"{key}.{name}") for name, guess in step.guesses.items()}
        reused = [run for run in known if run]
        offered = bool(reused) and len(reused) == len([task for task in tasks if task.work])
        with st.container(horizontal=True):
            fresh = st.form_submit_button(_label(tasks), type="primary", icon=":material/play_arrow:")
            reuse = offered and st.form_submit_button(_reuse_label(reused), icon=":material/history:")
    if not (fresh or reuse):
        return None
    try:
        return {name: read_guess(step.guesses[name], text) for name, text in typed.items()}, bool(reuse)
    except InvalidInput as error:
        show_problem(error)
        return None


def guessed(guess: Guess, answers: Mapping[str, str | None]) -> str:
    """Return a guess for a reader, e.g. ``2.5 ms``."""
    answer = answers.get(guess.id)
    if answer is None:
        return NO_IDEA
    return answer if guess.choices else f"{float(answer):,.6g} {guess.unit}".strip()


def _field(guess: Guess, key: str) -> str:
    if guess.choices:
        options = (*guess.choices, CANNOT_TELL, NO_IDEA)
        return st.radio(guess.ask, options, index=None, key=key) or ""
    unit = f" ({guess.unit})" if guess.unit else ""
    return str(st.text_input(f"{guess.ask}{unit}", key=key, placeholder=NO_IDEA, max_chars=60, width=420))


def _label(tasks: Sequence[Task]) -> str:
    seconds = sum(task.seconds for task in tasks if task.work)
    if not seconds:
        return "Check"
    return f"Run, about {format_whole_seconds(seconds)}"


def _reuse_label(runs: Sequence[AnyRun]) -> str:
    oldest_s = max(age_s(run) for run in runs)
    return f"Use the measurement of {format_whole_seconds(oldest_s)} ago"
