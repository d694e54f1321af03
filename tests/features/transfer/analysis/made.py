"""Made-up times of moving and computing, so that every break-even can be checked by hand."""

from gpuexplore.features.transfer.analysis import TimeSpan
from gpuexplore.features.transfer.analysis.comparison import SizePoint
from gpuexplore.features.transfer.measure.contract import TransferReading, TransferReadings
from tests.analysis.made import environment


def span(time_s, spread=1.0, origin="predicted"):
    return TimeSpan(time_s, time_s / spread, time_s * spread, origin)


def point(size, *, cpu, move=0.0, kernel=0.0, spread=1.0):
    half = span(move / 2, spread)
    return SizePoint(size, span(cpu, spread), half, span(kernel, spread), half)


def moves(on="cpu"):
    """Return rates of 1 GB/s at two sizes."""
    return tuple(
        TransferReading(
            "torch memory copy",
            "torch",
            size,
            2 * size,
            median_s=size * 2e-9,
            ci95_s=(size * 1.9e-9, size * 2.1e-9),
            n=10,
            first_call_s=1.0,
        )
        for size in (2**16, 2**26)
    )


def work():
    return tuple(
        TransferReading(
            f"matmul, size {size}",
            "torch",
            size=size,
            median_s=time_s,
            ci95_s=(0.9 * time_s, 1.1 * time_s),
            n=10,
            first_call_s=0.5,
        )
        for size, time_s in ((64, 1e-5), (1024, 1e-2))
    )


def observed(on="cpu"):
    """Return all three parts as they were observed."""
    calls = (TransferReading("numpy call", "numpy", median_s=4e-7, ci95_s=(3e-7, 5e-7), n=10, first_call_s=1e-5),)
    parts = {"moves": moves(on), "calls": calls, "work": work()}
    return tuple(TransferReadings(part, "matmul", readings, environment(on)) for part, readings in parts.items())
