"""The summary of a run for lists: kept with the run, for working it out takes all of its results."""

from dataclasses import dataclass
from typing import Literal

Quality = Literal["clean", "noisy", "contended"]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run that has ended, as lists show it; None is unknown.

    Attributes:
        best: the result with the highest rate, e.g. ``torch in fp32, 384 × 384 × 384``.
        rate: of that result, in `unit`.
        unit: ``FLOP/s``, or ``B/s`` where memory bounds the operation.
        share: of its peak that the rate reaches, as a fraction.
        peak: what that peak is, for a reader.
        quality: how far its times can be trusted.
        why: the evidence for that, in a sentence.
    """

    best: str | None = None
    rate: float | None = None
    unit: str | None = None
    share: float | None = None
    peak: str | None = None
    quality: Quality | None = None
    why: str | None = None
