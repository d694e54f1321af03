"""What to run to measure the roofs of a device: large products, and a triad over more than its caches."""

from math import ceil, log2

from gpuexplore.devices import ASSUMED_CACHE_BYTES, CACHES_OVERFLOWN
from gpuexplore.model import Device, Experiment, Options
from gpuexplore.operations import operation_named
from gpuexplore.operations.contract import Operation

PRODUCTS, TRIAD = "matmul", "triad"
PRODUCT_DTYPES = ("fp32", "bf16", "fp16")
LONGEST_PRODUCT_S = 0.1  # at the fp32 peak: a few seconds for everything
SMALLEST_PRODUCT, LARGEST_PRODUCT = 1024, 8192
SHORTEST_TRIAD_S = 2e-4  # a launch of some microseconds must not show
MEMORY_SHARE = 1 / 16
TRIAD_BYTES = 3 * 4  # of one element
BUDGET_S = 0.3


def roof_experiments(device: Device) -> tuple[Experiment, Experiment]:
    """Return the large products and the triad that show what `device` reaches, by what is usual on it."""
    product, triad = operation_named(PRODUCTS), operation_named(TRIAD)
    return (
        _experiment(product, device, size=_product_size(device), dtypes=_dtypes(device)),
        _experiment(triad, device, size=_triad_size(device), dtypes=("fp32",)),
    )


def _experiment(operation: Operation, device: Device, *, size: int, dtypes: tuple[str, ...]) -> Experiment:
    fitting = tuple(implementation.name for implementation in operation.usual if implementation.runs_on(device))
    shape = operation.shape_of_size(size)
    return Experiment(operation.name, (shape,), dtypes, fitting, (device.id,), Options(budget_s=BUDGET_S))


def _dtypes(device: Device) -> tuple[str, ...]:
    """Return the usual dtypes that the device computes in its own units: others would show another dtype's roof."""
    own = tuple(product_dtype for product_dtype in PRODUCT_DTYPES if product_dtype in device.native)
    return own or PRODUCT_DTYPES[:1]


def _product_size(device: Device) -> int:
    """Return the largest power of two whose product takes about a tenth of a second at the fp32 peak."""
    peak = device.peak("fp32", "matrix")
    if peak is None:
        return SMALLEST_PRODUCT
    longest = log2(peak.flop_per_s * LONGEST_PRODUCT_S / 2) / 3
    return max(SMALLEST_PRODUCT, min(LARGEST_PRODUCT, 1 << int(longest)))


def _triad_size(device: Device) -> int:
    """Return a power of two whose three fp32 arrays overflow the caches and take long enough, within the memory."""
    least = CACHES_OVERFLOWN * (device.cache_bytes or ASSUMED_CACHE_BYTES)
    wanted = max(least, SHORTEST_TRIAD_S * device.bandwidth.bytes_per_s if device.bandwidth else 0.0)
    most = device.memory_bytes * MEMORY_SHARE if device.memory_bytes else wanted
    return 1 << ceil(log2(min(wanted, most) / TRIAD_BYTES))
