"""The cards that claims are about, each with every variant that its name may stand for: the limits of all count."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpuexplore.devices import accelerator_named
from gpuexplore.devices.accelerators import Accelerator
from gpuexplore.devices.peaks import PEAK_FIELDS

NOT_NAMED = "not named"


@dataclass(frozen=True, slots=True)
class Variant:
    """One device that a claim may have been measured on; FLOP/s and bytes/s are the most that it can do."""

    name: str
    row: Accelerator
    multiprocessors: int | None
    bandwidth_bytes_per_s: float | None

    def peak_flop_per_s(self, dtype: str) -> float | None:
        """Return the largest rate it has for `dtype`; None where its units for that are unknown or absent."""
        columns = (column.field for column in PEAK_FIELDS if column.dtype == dtype)
        known = [self.row.rates[column] for column in columns if column in self.row.rates]
        if not known:
            return None
        ours, theirs = self.multiprocessors, self.row.multiprocessors
        return max(known) * (ours / theirs if ours and theirs else 1)


def _as_listed(key: str) -> Variant:
    row = accelerator_named(key)
    assert row, key
    return Variant(row.name, row, row.multiprocessors, row.bandwidth_bytes_per_s)


def _laptop_gtx_1650(memory: str, bandwidth_bytes_per_s: float) -> Variant:
    """Return a laptop's variant: the notebook printed 16 multiprocessors (B1), whose clock is at most the desktop's.

    Both memories go by one name: see the row's notes.
    """
    row = _as_listed("gtx-1650").row
    return Variant(f"GeForce GTX 1650 of a laptop ({memory})", row, 16, bandwidth_bytes_per_s)


CARDS: Mapping[str, tuple[Variant, ...]] = {
    "GTX 1650": (_as_listed("gtx-1650"), _laptop_gtx_1650("GDDR5", 128e9), _laptop_gtx_1650("GDDR6", 192e9)),
    "Tesla T4": (_as_listed("t4"),),
    # What Colab lends, and what is faster.
    NOT_NAMED: tuple(map(_as_listed, ("t4", "v100-sxm2-16gb", "a100-sxm4-40gb", "l4", "h100-sxm5-80gb"))),
}
