"""Whether moving data to a GPU pays: pure arithmetic on times that were measured or predicted.

For other pages and for lessons: `break_even_on` is the size from which a named GPU beats this CPU, `uses_that_pay` the
uses of data that pay for moving them, `call_costs` what a call costs by library.
"""

from collections.abc import Sequence

from gpuexplore.analysis.prediction import Calibration
from gpuexplore.analysis.transfer.break_even import BreakEven, break_even_size, uses_that_pay
from gpuexplore.analysis.transfer.comparison import Side, SizePoint, compare, side_of
from gpuexplore.analysis.transfer.link import OWN, Path, measured_path, path_to
from gpuexplore.analysis.transfer.span import Span, measured_span
from gpuexplore.devices import target_named
from gpuexplore.measure.transfer.contract import Observed, Part, Reading
from gpuexplore.model import Device

__all__ = [
    "BreakEven",
    "Path",
    "Side",
    "SizePoint",
    "Span",
    "break_even_on",
    "break_even_size",
    "call_costs",
    "compare",
    "measured_path",
    "path_to",
    "readings_of",
    "side_of",
    "this_cpu",
    "uses_that_pay",
]


def break_even_on(operation: str, cpu: Side, gpu: str, calibration: Calibration, *, link: str = OWN) -> BreakEven:
    """Return the size from which a GPU of the table, transfers from pageable memory included, beats this CPU in fp32.

    Args:
        operation: its name.
        cpu: this CPU with its peaks, and with what was measured on it.
        gpu: driver name or key of the table.
        calibration: what predictions rest on.
        link: a key of LINKS, or OWN.

    Raises:
        InvalidInput: no such operation, GPU or link.
    """
    target = target_named(gpu, ())
    return break_even_size(compare(operation, (cpu, Side(target)), path_to(target, link), calibration))


def readings_of(observed: Sequence[Observed], part: Part) -> tuple[Reading, ...]:
    """Return the readings of one part; none while it is not measured."""
    return tuple(reading for each in observed if each.part == part for reading in each.readings)


def call_costs(observed: Sequence[Observed]) -> dict[str, Span]:
    """Return what a call on one element costs, by its library; on a GPU in a row and with a wait."""
    return {
        reading.name: measured_span(reading.median_s, reading.ci95_s)
        for reading in readings_of(observed, "calls")
        if reading.median_s
    }


def this_cpu(devices: Sequence[Device]) -> Device | None:
    """Return the CPU among the devices of this machine."""
    return next((device for device in devices if device.kind == "cpu"), None)
