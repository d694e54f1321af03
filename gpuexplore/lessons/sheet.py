"""A lesson on paper: one HTML file with nothing beside it, blank to be filled in, or with this machine's answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from gpuexplore.lessons.blocks import (
    CANNOT_TELL,
    NO_IDEA,
    Check,
    Claim,
    Guess,
    Instructor,
    Keep,
    Mistake,
    Run,
    Train,
    with_colon,
)
from gpuexplore.lessons.format import Lesson, Step
from gpuexplore.lessons.judged_step import JudgedStep
from gpuexplore.lessons.prose import Prose
from gpuexplore.mistakes import mistake_named

MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
STYLE = Path(__file__).with_name("sheet.css")
GAP = '<span class="line">&nbsp;</span>'


def sheet(lesson: Lesson, answered: Sequence[JudgedStep] = (), where: str = "") -> str:
    """Return the sheet of a lesson as HTML.

    Args:
        answered: its steps as measured on this machine; none: the sheet is blank.
        where: the machine, the day and the versions of the answers.
    """
    done = {judged.step.letter: judged for judged in answered}
    body = "\n".join(_section(step, done.get(step.letter)) for step in lesson.steps)
    title, question = escape(lesson.title), escape(lesson.question)
    fields = ("Name",) if answered and where else ("Name", "Machine", "Date")
    who = "".join(f'<span class="field">{field} {GAP}</span>' for field in fields)
    kind = f"<p>With the answers of {escape(where or 'one machine')}.</p>" if answered else ""
    style = STYLE.read_text(encoding="utf-8")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>\n'
        f"<style>{style}</style></head>"
        f"<body><header><h1>{title}</h1><p>{question} About {lesson.minutes} minutes.</p><p>{who}</p>{kind}</header>\n"
        f"{body}\n</body></html>\n"
    )


def _section(step: Step, done: JudgedStep | None) -> str:
    return f"<section><h2>{step.letter}. {escape(step.title)}</h2>\n{''.join(_parts(step, done))}</section>"


def _parts(step: Step, done: JudgedStep | None) -> Iterator[str]:
    for _, part in step.parts:
        if isinstance(part, Prose):
            yield _markdown(part.said(done.names) if done else part.blank)
        elif type(part) in WRITERS:  # a `say` has none: its check says it
            yield WRITERS[type(part)](part, step, done)


def _guess(guess: Guess, _step: Step, _done: JudgedStep | None) -> str:
    if guess.choices:
        boxes = (*guess.choices, CANNOT_TELL, NO_IDEA)
        options = " ".join(f'<span class="box">&#9744; {escape(option)}</span>' for option in boxes)
        return f"<p><b>{escape(with_colon(guess.ask))}</b><br>{options}</p>"
    return f"<p><b>{escape(with_colon(guess.ask))}</b> I guess {GAP} {escape(guess.unit)}</p>"


def _run(run: Run, _step: Step, _done: JudgedStep | None) -> str:
    what = f"{run.operation}, {run.size or run.shape or 'default sizes'}, {run.dtype}, {run.impl or 'all'}"
    return f'<p class="do">Measure: {escape(what)} on {escape(run.device)}</p>'


def _mistake(mistake: Mistake, _step: Step, _done: JudgedStep | None) -> str:
    return f'<p class="do">Measure the wrong and the right way: {escape(mistake_named(mistake.mistake).title)}</p>'


def _train(train: Train, _step: Step, _done: JudgedStep | None) -> str:
    how = f"{train.model}, batch {train.batch}, {train.steps} steps, {', '.join(train.modes)}, data {train.data}"
    beside = f", {train.processes} processes" if train.processes > 1 else ""
    return f'<p class="do">Train: {escape(how + beside)}</p>'


def _claim(claim: Claim, _step: Step, _done: JudgedStep | None) -> str:
    return f'<p class="do">Look up claim {escape(claim.row)} in the fact check</p>'


def _check(check: Check, _step: Step, done: JudgedStep | None) -> str:
    if done is None:
        return f"<p>It came out as {GAP}&emsp; so my guess was {GAP}</p>" if check.guess else f"<p>Done: {GAP}</p>"
    judged = next(found for found in done.checks if found.check is check)
    said = _markdown(judged.said) if judged.said else ""
    answer = judged.judged.answer or judged.judged.why or str(judged.judged.outcome)
    return f'<div class="answer"><p>{escape(answer)}</p>{said}</div>'


def _keep(keep: Keep, _step: Step, done: JudgedStep | None) -> str:
    return f'<div class="keep">{_markdown(keep.text.said(done.names) if done else keep.text.blank)}</div>'


def _instructor(notes: Instructor, _step: Step, done: JudgedStep | None) -> str:
    return f'<p class="do"><i>Notes.</i></p>{_markdown(notes.text.said(done.names))}' if done else ""


def _markdown(text: str) -> str:
    return str(MARKDOWN.render(text.replace("____", "\\_\\_\\_\\_\\_\\_\\_\\_")))


WRITERS: Mapping[type, Callable[[Any, Step, JudgedStep | None], str]] = {
    Guess: _guess,
    Run: _run,
    Mistake: _mistake,
    Train: _train,
    Claim: _claim,
    Check: _check,
    Keep: _keep,
    Instructor: _instructor,
}
