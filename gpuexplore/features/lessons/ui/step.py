"""One step of a lesson: text, guess, measurement, verdict in the reader's own figures, and the rule to keep."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import streamlit as st

from gpuexplore.analysis.figure import QuantityRow
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.core import Device, GpuExploreError, InvalidInput, Result, format_whole_seconds
from gpuexplore.features.lessons.lesson.blocks import (
    CANNOT_TELL,
    NO_IDEA,
    CheckBlock,
    GuessBlock,
    KeepBlock,
    Prose,
    with_colon,
)
from gpuexplore.features.lessons.lesson.evidence import GPU, StepTask, names_of, tasks_of
from gpuexplore.features.lessons.lesson.expression import StepNames
from gpuexplore.features.lessons.lesson.format import Lesson, LessonStep
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome, JudgedCheck, JudgedStep, judged_by, read_guess
from gpuexplore.features.lessons.lesson.quantities import result_row
from gpuexplore.features.lessons.ui.measuring import AnyRun, StepRuns, alike, found_runs, show_figures, submit
from gpuexplore.store.entries import Answer
from gpuexplore.ui.activity import pending_words
from gpuexplore.ui.glossary import help_on
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.roles import may_cancel
from gpuexplore.ui.run.state import cancel
from gpuexplore.ui.session import known_devices, measured_results, note_visit, owner, store
from gpuexplore.ui.shared.later import redrawn
from gpuexplore.ui.url_widgets import show_problem

Guesses = dict[str, str | None]

ICONS = {
    GuessOutcome.RIGHT: ":material/check_circle:",
    GuessOutcome.CLOSE: ":material/near_me:",
    GuessOutcome.OFF: ":material/explore_off:",
    GuessOutcome.UNCLEAR: ":material/help:",
    GuessOutcome.NOT_MEASURED: ":material/hourglass_disabled:",
    GuessOutcome.NO_GUESS: ":material/visibility:",
}


def show_step(lesson: Lesson, step: LessonStep, answer: Answer | None, *, is_closed: bool = False) -> None:
    """Show a step as far as the reader is with it.

    Args:
        lesson: its lesson.
        step: the step.
        answer: the reader's last one; None for none yet.
        is_closed: whether their room takes no answers to it any more.
    """
    devices = known_devices()
    key = f"{lesson.name}.{step.letter}"
    try:
        tasks = tasks_of(step, devices)
        names = names_of(step, devices, {}, tasks)
    except GpuExploreError as error:
        show_problem(error)
        return
    st.subheader(f"{step.letter}. {plain(step.title)}", anchor=False)
    _show_before(step, names)
    if is_closed:
        st.markdown(":material/lock: This step is closed: new answers do not count in the room.")
    if answer is None:
        _ask(lesson, step, tasks, key)
        return
    for guess in step.of(GuessBlock):
        is_guessed = answer.guesses.get(guess.id) is not None
        said = f"you guessed **{plain(guessed(guess, answer.guesses))}**." if is_guessed else "you made no guess."
        st.markdown(f"{plain(with_colon(guess.ask))} {said}")
    found = found_runs(answer.runs, tasks)
    if found.pending:
        redrawn(_wait, 0.5)(answer.runs, tasks)
        return
    for run in found.failed:
        st.warning(
            f"The measurement ended early: {plain(run.reason or 'it was cancelled')}.", icon=":material/warning:"
        )
    if found.lost:
        st.warning("The measurement of this answer is no longer stored: measure again.", icon=":material/warning:")
    _show_after(step, tasks, answer, found=found, devices=devices)
    _again(lesson, step, tasks, answer=answer, key=key)


def settled(step: LessonStep, answer: Answer) -> Answer:
    """Return an answer with its outcomes, stored once its measurements have ended, whether its step is shown or not."""
    if answer.outcomes is not None:
        return answer
    devices = known_devices()
    try:
        tasks = tasks_of(step, devices)
        found = found_runs(answer.runs, tasks)
        if found.pending:
            return answer
        outcomes = _outcomes(_judged(step, tasks, answer, found=found, devices=devices))
    except GpuExploreError:  # the step itself says so where it is shown
        return answer
    store().set_outcomes(answer.number, outcomes)
    return replace(answer, outcomes=outcomes)


def _judged(
    step: LessonStep, tasks: Sequence[StepTask], answer: Answer, *, found: StepRuns, devices: Sequence[Device]
) -> JudgedStep:
    names = names_of(step, devices, found.measured, tasks)
    return judged_by(step, names, answer.guesses, _own_rows(step, devices, answer.owner))


def _outcomes(judged: JudgedStep) -> tuple[str, ...]:
    return tuple(found.outcome.value for found in judged.checks)


def _show_before(step: LessonStep, names: StepNames) -> None:
    """Show what stands before the first check, with the figures that need no measurement."""
    for _, part in step.parts:
        if isinstance(part, CheckBlock):
            return
        if isinstance(part, Prose):
            _show_text(part.said(names))


def _ask(lesson: Lesson, step: LessonStep, tasks: Sequence[StepTask], key: str) -> None:
    known = alike(tasks)
    committed = ask(step, f"form.{key}.{lesson.digest}", tasks, known)
    if committed is None:
        return
    guesses, reuse = committed
    try:
        runs = submit(tasks, known if reuse else ())
        store().add_answer(owner(), (lesson.name, lesson.digest, step.letter), guesses=guesses, runs=runs)
    except GpuExploreError as error:
        show_problem(error)
        return
    st.rerun()


def _wait(ids: Sequence[str | None], tasks: Sequence[StepTask]) -> None:
    """Show how far the measurement is, and the page again once it has ended."""
    note_visit()
    found = found_runs(ids, tasks)
    if not found.pending:
        st.rerun()
    for run in found.pending:
        others = "" if run.owner == owner() else ", started by another visitor with the same settings"
        st.markdown(f":material/hourglass_top: {pending_words(run)}{others}")
    mine = [run for run in found.pending if may_cancel(run)]
    pressed = mine and st.button("Cancel", icon=":material/stop:", key=f"cancel.{mine[0].id}")
    if pressed and cancel(*(run.id for run in mine)):
        st.rerun()


def _show_after(
    step: LessonStep, tasks: Sequence[StepTask], answer: Answer, *, found: StepRuns, devices: Sequence[Device]
) -> None:
    """Show what was measured, the verdicts, and what stands behind them."""
    try:
        judged = _judged(step, tasks, answer, found=found, devices=devices)
    except InvalidInput as error:
        show_problem(error)
        return
    show_figures(step, tasks, found.measured, devices=devices, key=f"{answer.lesson}.{answer.step}")
    if found.finished_utc and (run := next(iter(found.runs.values()), None)):
        st.caption(f"Measured {format_whole_seconds(_age_s(run))} ago on this machine, run {run.id}.")
    outcomes = _outcomes(judged)
    if answer.outcomes != outcomes:
        store().set_outcomes(answer.number, outcomes)
        st.rerun()  # the progress above counts it
    _show_checked(step, answer, judged)


def _age_s(run: AnyRun) -> float:
    """Return how many seconds ago a run ended."""
    ended = datetime.fromisoformat(run.finished_utc) if run.finished_utc else datetime.now(UTC)
    return max(0.0, (datetime.now(UTC) - ended).total_seconds())


def _show_checked(step: LessonStep, answer: Answer, judged: JudgedStep) -> None:
    checks = {id(found.check): found for found in judged.checks}
    seen = False
    for _, part in step.parts:
        if isinstance(part, CheckBlock):
            seen = True
            _show_verdict(step, answer, checks[id(part)])
        elif isinstance(part, KeepBlock):
            st.success(f"**Keep:** {part.text.said(judged.names)}", icon=":material/bookmark:")
        elif isinstance(part, Prose) and seen:
            _show_text(part.said(judged.names))


def _show_verdict(step: LessonStep, answer: Answer, found: JudgedCheck) -> None:
    outcome = found.outcome
    guess = step.guesses.get(found.check.guess)
    word = {GuessOutcome.RIGHT: "Done", GuessOutcome.OFF: "Not yet"}.get(outcome, "") if found.check.reach else ""
    if word and found.said.startswith(word):  # the lesson says itself whether the task is done
        _show_text(f"{ICONS[outcome]} {found.said}")
        return
    words = [f"{ICONS[outcome]} **{word or outcome.value.capitalize()}.**"]
    if guess is not None and found.answer:
        verb = "measured:" if outcome is GuessOutcome.UNCLEAR else "it is"
        truth = f"{verb} **{plain(found.answer)}**."
        is_guessed = answer.guesses.get(guess.id) is not None
        words.append(f"You said {plain(guessed(guess, answer.guesses))}; {truth}" if is_guessed else _opened(truth))
    if found.why:
        words.append(f"{plain(_opened(found.why))}.")
    st.markdown(" ".join(words))
    if found.said:
        _show_text(found.said)


def _opened(text: str) -> str:
    """Return `text` with its first letter upper; unlike `str.capitalize` it leaves the units behind it as they are."""
    return text[:1].upper() + text[1:]


def _again(lesson: Lesson, step: LessonStep, tasks: Sequence[StepTask], *, answer: Answer, key: str) -> None:
    asked = (lesson.name, lesson.digest, step.letter)
    with st.container(horizontal=True):
        if any(task.work for task in tasks) and st.button(
            "Measure again", icon=":material/refresh:", key=f"{key}.again"
        ):
            try:
                store().add_answer(owner(), asked, guesses=answer.guesses, runs=submit(tasks, join=False))
            except GpuExploreError as error:
                show_problem(error)
                return
            st.rerun()
        if any(check.reach for check in step.of(CheckBlock)) and st.button(
            "Look again", icon=":material/refresh:", key=f"{key}.look"
        ):
            st.rerun()


def _own_rows(step: LessonStep, devices: Sequence[Device], whose: str) -> list[QuantityRow]:
    """Return the results of who answered, where the step has a task that one of them may have done."""
    if not any(check.reach for check in step.of(CheckBlock)):
        return []
    runs = defaultdict[tuple[str, str], list[Result]](list)
    called = dict[str, str]()
    for device in devices:
        for run_id, result in measured_results(device, whose).found:
            runs[run_id, result.case.operation].append(result)
            called[result.case.device] = GPU if device.kind == "cuda" else device.kind
    found = (analyzed for results in runs.values() for analyzed in analyze(results).results)
    return [result_row(analyzed, called[analyzed.case.device]) for analyzed in found]


def _show_text(text: str) -> None:
    """Show text of a lesson, with the glossary's meaning of the terms in it as its tooltip."""
    st.markdown(text, help=help_on(text))


# The form in which a reader commits to a guess before anything is measured.


def ask(
    step: LessonStep, key: str, tasks: Sequence[StepTask], known: Sequence[AnyRun | None]
) -> tuple[Guesses, bool] | None:
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
            seconds = sum(task.seconds for task in tasks if task.work)
            label = f"Run, about {format_whole_seconds(seconds)}" if seconds else "Check"
            fresh = st.form_submit_button(label, type="primary", icon=":material/play_arrow:")
            age = format_whole_seconds(max(map(_age_s, reused), default=0.0))
            reuse = offered and st.form_submit_button(f"Use the measurement of {age} ago", icon=":material/history:")
    if not (fresh or reuse):
        return None
    try:
        return {name: read_guess(step.guesses[name], text) for name, text in typed.items()}, bool(reuse)
    except InvalidInput as error:
        show_problem(error)
        return None


def guessed(guess: GuessBlock, answers: Mapping[str, str | None]) -> str:
    """Return a guess for a reader, e.g. ``2.5 ms``."""
    answer = answers.get(guess.id)
    if answer is None:
        return NO_IDEA
    return answer if guess.choices else f"{float(answer):,.6g} {guess.unit}".strip()


def _field(guess: GuessBlock, key: str) -> str:
    if guess.choices:
        return st.radio(guess.ask, (*guess.choices, CANNOT_TELL, NO_IDEA), index=None, key=key) or ""
    unit = f" ({guess.unit})" if guess.unit else ""
    return str(st.text_input(f"{guess.ask}{unit}", key=key, placeholder=NO_IDEA, max_chars=60, width=420))
