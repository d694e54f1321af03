"""Bytes as a straight line over the batch: what is there anyway, and what each sample adds.

Everything a training step allocates is one or the other, so a peak is the largest of some lines, and the largest batch
that fits follows without trying batches.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes: `fixed` ones, and `per_sample` ones for each sample of the batch."""

    fixed: int = 0
    per_sample: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(self.fixed + other.fixed, self.per_sample + other.per_sample)

    def __sub__(self, other: "Size") -> "Size":
        return Size(self.fixed - other.fixed, self.per_sample - other.per_sample)

    def at(self, batch: int) -> int:
        """Return the bytes of `batch` samples."""
        return self.fixed + batch * self.per_sample

    def largest_batch(self, capacity_bytes: int) -> int | None:
        """Return the largest batch within `capacity_bytes`, 0 where none is; None where every batch is."""
        if self.fixed > capacity_bytes:
            return 0
        return (capacity_bytes - self.fixed) // self.per_sample if self.per_sample else None


NOTHING = Size()
