"""Answers of learners: one row per try, of which the last of a step counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, delete, func, insert, select, update

from gpuexplore.core.errors import InvalidInput
from gpuexplore.store.database import Database
from gpuexplore.store.tables import ANSWERS

MOST_ANSWERS = 5000  # of one look at a lesson: a hundred learners with fifty tries each
MOST_TRIES = 200  # of one learner at one step


@dataclass(frozen=True, slots=True)
class Answer:
    """One learner's try at one step.

    Attributes:
        number: grows with every answer.
        digest: of the lesson's text.
        guesses: by the guess's id; None for no idea.
        runs: ids of what was measured for it, in the order of the step's work; None where nothing had to be.
        outcomes: of the step's checks, in order; None until they are judged.
    """

    number: int
    owner: str
    lesson: str
    digest: str
    step: str
    guesses: Mapping[str, str | None]
    runs: tuple[str | None, ...]
    outcomes: tuple[str, ...] | None
    created_utc: str


class Answers(Database):
    """Answers of learners."""

    def add_answer(
        self,
        owner: str,
        step_key: tuple[str, str, str],
        *,
        guesses: Mapping[str, str | None],
        runs: Sequence[str | None],
    ) -> int:
        """Store a try; return its number. It is on the disk when this returns.

        Args:
            owner: whose it is.
            step_key: lesson, digest of its text, and letter of the step.
            guesses: by the guess's id.
            runs: ids of what is measured for it.

        Raises:
            InvalidInput: that was one try too many.
        """
        lesson, digest, step = step_key
        row = {"owner": owner, "lesson": lesson, "digest": digest, "step": step, "created_utc": self.now()}
        mine = ANSWERS.c.owner == owner, ANSWERS.c.lesson == lesson, ANSWERS.c.step == step
        with self.writing(durable=True) as connection:
            if (connection.scalar(select(func.count()).select_from(ANSWERS).where(*mine)) or 0) >= MOST_TRIES:
                raise InvalidInput(f"at most {MOST_TRIES} tries are allowed per step")
            made = connection.execute(insert(ANSWERS).values(**row, guesses=dict(guesses), runs=list(runs)))
            return int(made.inserted_primary_key[0]) if made.inserted_primary_key else 0

    def set_outcomes(self, number: int, outcomes: Sequence[str]) -> None:
        """Note what became of a try."""
        with self.writing() as connection:
            connection.execute(update(ANSWERS).where(ANSWERS.c.number == number).values(outcomes=list(outcomes)))

    def answers_of(self, owner: str, lesson: str | None = None) -> tuple[Answer, ...]:
        """Return what an owner answered, of one lesson or of all, the oldest first."""
        wanted = select(ANSWERS).where(ANSWERS.c.owner == owner).order_by(ANSWERS.c.number)
        if lesson is not None:
            wanted = wanted.where(ANSWERS.c.lesson == lesson)
        with self.reading() as connection:
            return tuple(answer_from(row) for row in connection.execute(wanted.limit(MOST_ANSWERS)))

    def answers_since(self, lesson: str, digest: str, since_utc: str) -> tuple[Answer, ...]:
        """Return all answers to one version of a lesson since then, the newest first."""
        wanted = select(ANSWERS).where(ANSWERS.c.lesson == lesson, ANSWERS.c.digest == digest)
        wanted = wanted.where(ANSWERS.c.created_utc >= since_utc).order_by(ANSWERS.c.number.desc()).limit(MOST_ANSWERS)
        with self.reading() as connection:
            return tuple(answer_from(row) for row in connection.execute(wanted))

    def erase_answers(self, owner: str) -> int:
        """Delete everything an owner answered; return how many rows that were."""
        with self.writing(durable=True) as connection:
            return connection.execute(delete(ANSWERS).where(ANSWERS.c.owner == owner)).rowcount


def answer_from(row: Row[Any]) -> Answer:
    """Return the answer of a row."""
    return Answer(
        number=row.number,
        owner=row.owner,
        lesson=row.lesson,
        digest=row.digest,
        step=row.step,
        guesses=row.guesses,
        runs=tuple(row.runs),
        outcomes=None if row.outcomes is None else tuple(row.outcomes),
        created_utc=row.created_utc,
    )
