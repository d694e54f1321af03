"""The clock a peak is rated for: what a rate at another clock is scaled from."""

from gpuexplore.analysis.utilization.utilization import device_of, measured_clock_hz
from gpuexplore.devices import Accelerator, row_of
from gpuexplore.devices.formula import SLOWED_FIELDS, tensor_clock_share
from gpuexplore.devices.peaks import PEAK_FIELDS
from gpuexplore.model import Device, Peak, Result


def rated_clock_hz(device: Device, peak: Peak) -> float | None:
    """Return the clock in Hz that a printed `peak` of `device` counts on; None where nothing states it.

    Matrix units of the largest GPUs are rated below the boost clock, and their peaks are printed for that clock.
    """
    if device.clock_hz is None:
        return None
    field = next(row.field for row in PEAK_FIELDS if (row.dtype, row.unit) == (peak.dtype, peak.unit))
    row = row_of(device)
    if row is None:
        return device.clock_hz * tensor_clock_share(device.compute_capability, device.name, field)
    return _of_row(row, field)


def measured_over_rated(result: Result, peak: Peak) -> float | None:
    """Return the measured clock over the one a printed `peak` is rated for; None where either is unknown."""
    device, measured_hz = device_of(result), measured_clock_hz(result)
    rated_hz = rated_clock_hz(device, peak) if device else None
    return measured_hz / rated_hz if measured_hz and rated_hz else None


def _of_row(row: Accelerator, field: str) -> float | None:
    return row.tensor_clock_hz or row.boost_clock_hz if field in SLOWED_FIELDS else row.boost_clock_hz
