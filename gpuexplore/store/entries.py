"""Entries of users: peaks and memory bandwidths of devices, by owner and device, and answers of learners.

Earlier versions knew a device by its name alone. What was entered then applies to every device of that name for which
nothing else was entered since, and its source says so. Of the answers, one row per try, the last of a step counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Row, Table, and_, delete, func, insert, select, update

from gpuexplore.core import Bandwidth, Device, InvalidInput, Peak, PeakKind, Unit, check_text, decode, encode, require
from gpuexplore.hardware.identity import device_key
from gpuexplore.store.database import Database
from gpuexplore.store.tables import ANSWERS, OWN_BANDWIDTHS, OWN_PEAKS
from gpuexplore.store.tolerant_decode import DECODE_ERRORS, warn

P = TypeVar("P", Peak, Bandwidth)
BY_NAME = "entered for any processor of this name, by an earlier version"
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


class Entries(Database):
    """Peaks and bandwidths of owners, and answers of learners."""

    def own_peaks(self, owner: str, device: Device) -> tuple[Peak, ...]:
        """Return the peaks `owner` entered for a device, by dtype and unit."""
        found = {(peak.dtype, peak.unit): peak for peak in self._entered(OWN_PEAKS, owner, device, kind=Peak)}
        return tuple(found[key] for key in sorted(found))

    def set_own_peak(self, owner: str, device: Device, *, peak: Peak) -> None:
        """Keep `peak` for this owner and device, in place of one for the same dtype and unit.

        Raises:
            InvalidInput: the peak's kind is not `own`, its rate is no positive number, or its source no usable text.
        """
        check_text("source", peak.source)
        _check(peak.kind, "peak", peak.flop_per_s, "FLOP/s")
        key = {"owner": owner, "dtype": peak.dtype, "unit": peak.unit}
        self._replace(OWN_PEAKS, device, key=key, entered=peak)

    def delete_own_peak(self, owner: str, device: Device, *, dtype: str, unit: Unit) -> None:
        """Forget a peak; nothing happens when there is none."""
        self._delete(OWN_PEAKS, device, {"owner": owner, "dtype": dtype, "unit": unit})

    def own_bandwidth(self, owner: str, device: Device) -> Bandwidth | None:
        """Return the memory bandwidth `owner` entered for a device, or None."""
        return (None, *self._entered(OWN_BANDWIDTHS, owner, device, kind=Bandwidth))[-1]

    def set_own_bandwidth(self, owner: str, device: Device, *, bandwidth: Bandwidth) -> None:
        """Keep `bandwidth` for this owner and device, in place of an earlier one.

        Raises:
            InvalidInput: its kind is not `own`, its rate is no positive number, or its source no usable text.
        """
        check_text("source", bandwidth.source)
        _check(bandwidth.kind, "bandwidth", bandwidth.bytes_per_s, "bytes/s")
        self._replace(OWN_BANDWIDTHS, device, key={"owner": owner}, entered=bandwidth)

    def delete_own_bandwidth(self, owner: str, device: Device) -> None:
        """Forget a bandwidth; nothing happens when there is none."""
        self._delete(OWN_BANDWIDTHS, device, {"owner": owner})

    def _entered(self, table: Table, owner: str, device: Device, *, kind: type[P]) -> Iterator[P]:
        """Yield what `owner` entered for the device's name, then for the device itself, which counts."""
        with self.reading() as connection:
            rows = connection.execute(select(table).where(_is(table, {"owner": owner}), _is_of(table, device))).all()
        for row in sorted(rows, key=lambda row: row.device_key == device_key(device)):
            if found := _usable(kind, row):
                is_own = row.device_key == device_key(device)
                yield found if is_own else replace(found, source=f"{found.source} ({BY_NAME})")

    def _replace(self, table: Table, device: Device, *, key: Mapping[str, str], entered: object) -> None:
        row_key = {**key, "device_key": device_key(device)}
        with self.writing() as connection:
            connection.execute(delete(table).where(_is(table, row_key)))
            connection.execute(insert(table).values(**row_key, payload=encode(entered)))

    def _delete(self, table: Table, device: Device, key: Mapping[str, str]) -> None:
        """Delete what was entered for the device, and what was entered for its name: else that would come back."""
        with self.writing() as connection:
            connection.execute(delete(table).where(_is(table, key), _is_of(table, device)))

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


def _usable(kind: type[P], row: Row[Any]) -> P | None:
    """Return what was entered; None, with a line in the log, for a row that no form can have written."""
    try:
        found = decode(kind, row.payload)
        rate = found.flop_per_s if isinstance(found, Peak) else found.bytes_per_s
        _check(found.kind, kind.__name__.lower(), rate, "a second")
    except DECODE_ERRORS as error:
        warn(f"own {kind.__name__.lower()} {str(row.payload)[:60]!r}: {type(error).__name__}: {error}")
        return None
    return found


def _check(kind: PeakKind, what: str, rate: float, unit: str) -> None:
    require(kind == "own", f"kind of {what}", kind, ("own",))
    require(isfinite(rate) and rate > 0, what, rate, f"positive numbers of {unit}")


def _is(table: Table, key: Mapping[str, str]) -> ColumnElement[bool]:
    return and_(*(table.c[name] == value for name, value in key.items()))


def _is_of(table: Table, device: Device) -> ColumnElement[bool]:
    return table.c.device_key.in_((device_key(device), device.name))


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
