"""Lessons on a page: the list, the steps of one, alone or as a room opens them, and the instructor's view."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Literal
from urllib.parse import quote, urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.core import GpuExploreError, InvalidInput, median
from gpuexplore.core.notebooks import titles
from gpuexplore.features.lessons.lesson import Catalog, catalog
from gpuexplore.features.lessons.lesson.blocks import CANNOT_TELL, GuessBlock, InstructorBlock
from gpuexplore.features.lessons.lesson.evidence import names_of, tasks_of
from gpuexplore.features.lessons.lesson.expression import StepNames
from gpuexplore.features.lessons.lesson.format import Lesson, LessonStep
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome, JudgedStep, judged_by
from gpuexplore.features.lessons.lesson.quantities import facts_of
from gpuexplore.features.lessons.ui.cards import STYLE, TAB_STYLE, linked
from gpuexplore.features.lessons.ui.measuring import alike, found_runs
from gpuexplore.features.lessons.ui.step import guessed, settled, show_step
from gpuexplore.rooms import ALL_STEPS, LESSON, Room, RoomTask, spoken
from gpuexplore.store.entries import Answer
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import pages
from gpuexplore.ui.roles import Right, check, may, show_key
from gpuexplore.ui.session import known_devices, note_visit, owner, store
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.shared.later import redrawn
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.ui.url_widgets import segments, show_problem


def _show_lessons(found: Catalog) -> None:
    """Show a card for each lesson, in their order, and each other page of the place, and files that are no lessons."""
    answers = store().answers_of(owner())
    shown = []
    for lesson in found.lessons.values():
        number = f"{lesson.order}. " if lesson.order else ""
        said = _summary(lesson, _of_lesson(lesson, answers))
        footer = f"<b>{said}</b>" if said else f"{lesson.minutes} min, {len(lesson.steps)} steps"
        href = link.href(f"lessons?lesson={quote(lesson.name)}")
        shown.append(linked(lesson.name, f"{number}{lesson.title}", href, about=lesson.question, footer=footer))
    others = [page for page in pages().values() if page.place == "Learn" and page.name != "lessons"]
    shown += [linked(page.name, page.title, link.href(page.name), about=page.about) for page in others]
    st.html(f'{STYLE}<div class="cards">{"".join(shown)}</div>')
    for name, reason in found.unreadable.items():
        st.warning(f"**{plain(name)}** cannot be read. {plain(reason)}", icon=":material/warning:")
    _show_own_answers(answers)


def _exported(answers: Sequence[Answer]) -> str:
    """Return answers as JSON, without the name of the browser they belong to."""
    return json.dumps([asdict(answer) | {"owner": "you"} for answer in answers], indent=2)


def _show_own_answers(answers: Sequence[Answer]) -> None:
    if not answers:
        return
    with st.expander(f"Your answers: {len(answers)}"):
        st.caption("They are stored on this server for this browser until you erase them.")
        with st.container(horizontal=True):
            st.download_button(
                "Export", _exported(answers), "gpuexplore-answers.json", "application/json", on_click="ignore"
            )
            with st.popover("Erase"):
                st.markdown("Erase every answer of this browser? Measurements stay.")
                if st.button("Erase them", type="primary"):
                    store().erase_answers(owner())
                    st.rerun()


# How far a visitor is: the last answer of each step, in the words of its outcome.


def _of_lesson(lesson: Lesson, answers: Sequence[Answer]) -> Mapping[str, Answer]:
    """Return the last answer to each step of this version of a lesson, by letter."""
    return {answer.step: answer for answer in answers if (answer.lesson, answer.digest) == (lesson.name, lesson.digest)}


def _answers_to(lesson: Lesson) -> Mapping[str, Answer]:
    """Return the visitor's last answer to each step, judged where its measurements have ended, by letter."""
    found = _of_lesson(lesson, store().answers_of(owner(), lesson.name))
    return {letter: settled(lesson.step(letter), answer) for letter, answer in found.items()}


def _labelled(letter: str, answer: Answer | None) -> str:
    """Return the letter of a step and, where it was answered, in a word what became of it."""
    if answer is None:
        return letter
    state = "done"
    if answer.outcomes is None:
        state = "measuring"
    elif len(answer.outcomes) == 1:
        state = answer.outcomes[0]
    return f"{letter} · {state}"


def _summary(lesson: Lesson, answers: Mapping[str, Answer]) -> str:
    """Return how far a lesson is, e.g. ``3 of 6 steps: 2 right, 1 off``; empty where it was not begun."""
    if not answers:
        return ""
    done = [answer for answer in answers.values() if answer.outcomes is not None]
    outcomes = [outcome for answer in done for outcome in answer.outcomes or ()]
    counts = [f"{outcomes.count(outcome)} {outcome}" for outcome in GuessOutcome if outcome in outcomes]
    return f"{len(done)} of {len(lesson.steps)} steps" + (f": {', '.join(counts)}" if counts else "")


LOOKS = 3  # a second: a step that is opened is there in two
FOLLOWED: Shared[tuple[tuple[Room, RoomTask], ...]] = Shared(2000)
VIEWS = ("learner", "instructor")


@dataclass(frozen=True, slots=True)
class _Followed:
    """Progress of a room in a lesson.

    Attributes:
        room: the newest open one of the visitor that follows it.
        letters: of the steps that are open, in the lesson's order.
        closed: of those whose answers do not count any more.
        newest: what the room is at, in words, with its address.
    """

    room: Room
    letters: tuple[str, ...]
    closed: frozenset[str]
    newest: tuple[str, str]


def _followed(lesson: Lesson) -> _Followed | None:
    """Return how far the visitor's room is with a lesson; None where none follows it, or it let go."""
    name = owner()
    found = FOLLOWED.get((name, moment(LOOKS)), lambda: store().tasks_followed(name))
    mine = [(room, task) for room, task in found if task.kind == LESSON and task.settings.get("lesson") == lesson.name]
    if not mine:
        return None
    room = mine[-1][0]
    tasks = {str(task.settings.get("step")): task for where, task in mine if where.number == room.number}
    if ALL_STEPS in tasks:
        return None
    letters = tuple(step.letter for step in lesson.steps if step.letter in tasks)
    closed = frozenset(letter for letter in letters if not tasks[letter].takes_answers)
    return _Followed(room, letters, closed, _newest(lesson, [task for where, task in found if where == room][-1], room))


def _newest(lesson: Lesson, task: RoomTask, room: Room) -> tuple[str, str]:
    name = task.settings.get("lesson")
    letter = task.settings.get("step")
    if task.kind != LESSON:
        return "another task", f"rooms?room={room.code}"
    words = f"step {letter}" if name == lesson.name else "another lesson"
    return words, f"lessons?{urlencode({'lesson': name} | ({} if letter == ALL_STEPS else {'step': letter}))}"


def show(head: DeltaGenerator, help: str | None) -> bool:
    """Show the lesson that the link names, with its title and `help` in `head`, or all; return whether it was one."""
    _take_key()
    found = catalog()
    name = link.parameters().get("lesson")
    if name is not None:
        try:
            lesson = found.lesson(name)
        except InvalidInput as error:
            show_problem(error)
        else:
            _show_lesson(lesson, head, help)
            return True
    _show_lessons(found)
    return False


def _open(name: str | None, step: str | None = None) -> None:
    link.write("lesson", name)
    link.write("step", step)
    link.write("view", None)
    st.rerun()


def _show_lesson(lesson: Lesson, head: DeltaGenerator, help: str | None) -> None:
    head.title(plain(lesson.title), anchor=False)
    head.caption(
        f"{plain(lesson.question)} Guess, measure, and keep a rule from each of {len(lesson.steps)} steps: about "
        f"{lesson.minutes} minutes.",
        help=help,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("All lessons", icon=":material/arrow_back:"):
            _open(None)
        view = _view()
    if lesson.rows:
        st.caption(f"In the notebooks: {plain(titles(lesson.rows))}.")
    if view == "instructor":
        redrawn(_draw, 3.0)(lesson)
        return
    answers = _answers_to(lesson)
    said = _summary(lesson, answers)
    done = sum(answer.outcomes is not None for answer in answers.values())
    st.progress(min(1.0, done / len(lesson.steps)), text=said or f"{len(lesson.steps)} steps")
    together = _followed(lesson)
    letters = [step.letter for step in lesson.steps if together is None or step.letter in together.letters]
    if together is not None or done < len(answers):
        redrawn(_watch, 2.0)(lesson, together, answers)
    if letters:
        _show_steps(lesson, letters, answers, together)


def _show_steps(
    lesson: Lesson, letters: Sequence[str], answers: Mapping[str, Answer], together: _Followed | None
) -> None:
    """Show the choice of a step among those that are open, the chosen one, and the ways to the others."""
    letter = segments("Step", "step", letters, shown=lambda letter: _labelled(letter, answers.get(letter)))
    if together is not None and together.newest[0] != f"step {letter}":
        words, place = together.newest
        label = f"The leader went on to {words}"
        st.html(f'{TAB_STYLE}<a class="lesson" href="{escape(link.href(place))}" target="_self">{label}</a>')
    show_step(
        lesson, lesson.step(letter), answers.get(letter), is_closed=together is not None and letter in together.closed
    )
    is_answered = letter in answers
    index = letters.index(letter)
    with st.container(horizontal=True):
        if index and st.button("Back", icon=":material/arrow_back:", key="lesson.back"):
            _open(lesson.name, letters[index - 1])
        if index + 1 < len(letters):
            kind: Literal["primary", "secondary"] = "primary" if is_answered else "secondary"
            label = "Next step" if is_answered else "Skip this step"
            if st.button(label, icon=":material/arrow_forward:", type=kind, key="lesson.next"):
                _open(lesson.name, letters[index + 1])
        elif (
            is_answered
            and len(letters) == len(lesson.steps)
            and st.button("All lessons", icon=":material/check:", type="primary", key="lesson.end")
        ):
            _open(None)


def _watch(lesson: Lesson, known: _Followed | None, answers: Mapping[str, Answer]) -> None:
    """Show the page again once the leader opens or closes a step, or a measurement of another step has ended."""
    note_visit()
    if _followed(lesson) != known or _answers_to(lesson) != answers:
        st.rerun()
    if known is not None:
        code = spoken(known.room.code)
        st.markdown(f":material/groups: Followed together in room **{code}**: the leader opens the steps one by one.")


def _take_key() -> None:
    """Make a leader of a visitor by the leader's link, whose key leaves the address at once."""
    key = link.parameters().get("key")
    if key is None:
        return
    link.write("key", None)
    try:
        show_key(key)
    except InvalidInput as error:
        show_problem(error)


def _view() -> str:
    """Return the view that is shown; says so where the link asks for the instructor's, which is not allowed."""
    if may(Right.INSTRUCT):
        return segments("View", "view", VIEWS, shown=str.capitalize)
    if link.parameters().get("view") == "instructor":
        try:
            check(Right.INSTRUCT)
        except InvalidInput as error:
            show_problem(error)
    return VIEWS[0]


SINCE = timedelta(hours=6)
ANSWERS: Shared[tuple[Answer, ...]] = Shared(50)


def _draw(lesson: Lesson) -> None:
    given = ANSWERS.get((lesson.name, lesson.digest, moment(7)), lambda: _since(lesson))
    # of each learner the last answer to each step: the newest come first
    answers = {(answer.owner, answer.step): answer for answer in reversed(given)}.values()
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


def _show_step(step: LessonStep, answers: Sequence[Answer]) -> None:
    with st.container(border=True):
        st.markdown(f"### {step.letter}. {plain(step.title)}")
        judged = of_this_machine(step)
        for guess in step.of(GuessBlock):
            made = [answer.guesses.get(guess.id) for answer in answers]
            st.markdown(f"#### {plain(guess.ask)}")
            guesses, truth = st.columns(2)
            kind = "most often" if guess.choices else "median"
            guesses.metric(f"All learners: {kind} of {sum(given is not None for given in made)}", _middle(guess, made))
            checks = judged.checks if judged else ()
            answer = next((found.answer for found in checks if found.check.guess == guess.id), "")
            truth.metric("This machine, undisturbed, last hour", answer or "not measured")
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
        return "no guesses yet"
    if guess.choices:
        counts = Counter(given)
        most = max(counts.values())
        return ", ".join(choice for choice in (*guess.choices, CANNOT_TELL) if counts[choice] == most)
    return f"{median([float(answer) for answer in given]):,.3g} {guess.unit}".strip()


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
