"""The clock a peak is rated at: what a rate at another clock is scaled from."""

from gpuexplore.devices.accelerators import Accelerator, row_of
from gpuexplore.devices.formula import SLOWED_FIELDS, tensor_clock_share
from gpuexplore.devices.peaks import PEAK_FIELDS
from gpuexplore.model import Device, Peak

SCALES_WITH_CLOCK = ("datasheet", "formula")


def printed_clock_hz(device: Device, peak: Peak) -> float | None:
    """Return the clock in Hz that `peak` of `device` counts on; None where nothing states it.

    Matrix units of the largest GPUs are rated below the boost clock, and their datasheets' peaks are at that clock. A
    measured ceiling was reached at a clock no datasheet lists.
    """
    if peak.kind not in SCALES_WITH_CLOCK or device.clock_hz is None:
        return None
    field = next(row.field for row in PEAK_FIELDS if (row.dtype, row.unit) == (peak.dtype, peak.unit))
    row = row_of(device)
    if row is None:
        return device.clock_hz * tensor_clock_share(device.compute_capability, device.name, field)
    return _of_row(row, field)


def _of_row(row: Accelerator, field: str) -> float | None:
    return row.tensor_clock_hz or row.boost_clock_hz if field in SLOWED_FIELDS else row.boost_clock_hz
