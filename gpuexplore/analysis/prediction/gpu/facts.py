"""The facts of a GPU and of library calls, as the numbers that their times follow from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf, log2, nan
from typing import Literal

import numpy as np

from gpuexplore.analysis.prediction.calls import ROTATING_SETS, USUAL, Arithmetic, Calls, Conditions
from gpuexplore.core.dtypes import format_named
from gpuexplore.core.model import Case, Device, Options, Shape
from gpuexplore.hardware import row_of, table_device
from gpuexplore.operations import Product, operation_named
from gpuexplore.recorded.published import PublishedMeasurement

Numbers = np.typing.NDArray[np.float64]
Indices = np.typing.NDArray[np.intp]  # of calls in a batch
Codes = np.typing.NDArray[np.int64]  # of texts: equal where these are
Family = Literal["product", "batched_product", "attention", "convolution", "layer_norm", "softmax", "element_wise"]

USUAL_CLOCK_HZ = 1.7e9
USUAL_YEAR = 2020


@dataclass(frozen=True, slots=True)
class GpuCall:
    """One call on one GPU; times in seconds, sizes in bytes.

    Attributes:
        family: which kernels a library has for it.
        rate: which units do the products; where there are none, those of numbers of this size.
        vendor: of the GPU; empty is unknown.
        architecture: of the GPU; empty is unknown.
        device: its row of the table; empty where it has none.
        calls: how calls follow one another.
        source: a way of taking times that has launches of its own, or empty.
        team: who measures, or empty.
        kernels: kernels of a call.
        gaming_clock: whether it usually runs above its rated clock, as cards for games do.
        peak: FLOP/s of the units; infinite where the operation needs none.
        watts_per_teraflop: board power over that peak; NaN is unknown.
        reused_bytes: what has to stay in the L2 cache for the next call to find its data there; infinite: flushed.
        quantised_bytes: bytes of a kernel before, that reads the left-hand matrix in 16 bits and writes it in 8.
        long_rows: how far rows are beyond 64 KiB, as a logarithm to base 2, where translation of addresses is slow.
        rows: of a row-wise operation, with `row_bytes` each; else 0.
        position: of its shape among those of its family: four logarithms to base 2.
    """

    family: Family
    rate: str
    vendor: str
    architecture: str
    device: str
    calls: Calls
    source: str
    team: str
    kernels: int
    flops: float
    bytes: float
    item_bytes: float
    peak: float
    bandwidth: float
    multiprocessors: float
    cache_bytes: float
    clock_hz: float
    watts_per_teraflop: float
    year: float
    graphics_memory: bool
    gaming_clock: bool
    shared_lanes: bool
    misaligned: bool
    long_rows: float
    reused_bytes: float
    quantised_bytes: float
    rows: float
    row_bytes: float
    products: tuple[Product, ...]
    winograd: Product | None
    position: tuple[float, ...]


def is_of_library(case: Case, device: Device, units: Arithmetic) -> bool:
    """Return whether a library computes a case on a GPU's own units for its format: what the terms are about.

    Kernels of ours, products in another format and 16-bit ones on vector units are not: what only moves its bytes is.
    """
    operation = operation_named(case.operation)
    dtype = format_named(case.dtype)
    if device.kind == "cpu" or device.bandwidth is None or units.support == "unsupported":
        return False
    if operation.implementation_named(case.implementation).geometry is not None:
        return False
    if units.peak is not None and moves_only(case):
        return True
    if units.support != "native":
        return False
    if units.peak is None:
        return not operation.flop_count(case.shape)
    narrow = dtype.bits < format_named(dtype.accumulate).bits
    return not (narrow and units.peak.unit == "vector" and operation.is_matrix_product)


def facts_of(case: Case, device: Device, units: Arithmetic, conditions: Conditions = USUAL) -> GpuCall:
    """Return the facts of a call on a GPU whose bandwidth, and peak where it computes, are known."""
    operation = operation_named(case.operation)
    dtype = format_named(case.dtype)
    shape = case.shape
    row = row_of(device)
    item = dtype.bits / 8
    family = family_of(case)
    listed = operation.products(shape) if operation.products else ()
    products = () if moves_only(case) else listed
    moved = float(operation.byte_count(shape, dtype))
    weights = float(sum(each.batch * each.k * each.n for each in products))
    rates = {
        "fp64": "fp64",
        "fp32": "fp32",
        "tf32": "tf32",
        "fp8": "fp8",
        "fp4": "fp8",
    }  # others are of 16 bits, on matrix units
    in_units = rates.get(units.peak.dtype if units.peak else case.dtype, "16")
    rates_of_bits = {64: "fp64", 32: "fp32", 8: "fp8", 4: "fp8"}  # where bytes decide: formats of one size are alike
    rate = in_units if products else rates_of_bits.get(dtype.bits, "16")
    peak = units.peak.flop_per_s if units.peak and products else inf
    capability = device.compute_capability or ""
    rows = family in ("layer_norm", "softmax")
    gaming = "-geforce"  # of rate classes: these cards run above the clock that they are rated for
    lanes_shared_with_integers = ("8.6", "8.9", "12.0")
    slow_with_long_rows = ("CDNA", "Pascal", "Turing")  # as measured, in fp32 and up to LONGEST_ROWS; no others were
    return GpuCall(
        family=family,
        rate=rate,
        vendor=row.vendor if row else "",
        architecture=row.architecture if row else "",
        device=row.key if row else "",
        calls=conditions.calls,
        source=conditions.source,
        team=conditions.team,
        kernels=operation.calls(shape),
        flops=float(operation.flop_count(shape)) if products else 0.0,
        bytes=moved,
        item_bytes=item,
        peak=peak,
        bandwidth=device.bandwidth.bytes_per_s if device.bandwidth else nan,
        multiprocessors=float(device.cores or 1),
        cache_bytes=float(device.cache_bytes or 0),
        clock_hz=device.clock_hz or USUAL_CLOCK_HZ,
        watts_per_teraflop=row.power_w / peak * 1e12 if row and row.power_w and products else nan,
        year=float(row.release_year if row and row.release_year else USUAL_YEAR),
        graphics_memory="GDDR" in ((row.memory_type if row else None) or ""),
        gaming_clock=row is not None and row.rate_class.endswith(gaming),
        shared_lanes=capability in lanes_shared_with_integers,
        misaligned=family in ("product", "batched_product") and _is_misaligned(products, item),
        long_rows=_long_rows(products, item)
        if family == "product" and rate == "fp32" and row and row.architecture in slow_with_long_rows
        else 0.0,
        reused_bytes=inf
        if case.options.cache == "cold"
        else moved + item * (_weight_sets(case, conditions) - 1) * weights,
        quantised_bytes=3.0 * products[0].m * products[0].k if products and _quantises(case, conditions) else 0.0,
        rows=float(shape["m"]) if rows else 0.0,
        row_bytes=shape["n"] * item if rows else 0.0,
        products=_flat(shape) if family == "convolution" else products,
        winograd=_winograd(shape) if family == "convolution" and case.dtype == "fp32" and shape["r"] == 3 else None,
        position=_position_of(shape, family, listed, moved),
    )


def published_call(measured: PublishedMeasurement) -> tuple[Case, Device]:
    """Return the case and the device that a published measurement stands for."""
    device = table_device(measured.spec_key)
    options = Options(cache="cold") if measured.timing == "do_bench" else Options()
    return Case(
        measured.operation,
        measured.shape,
        measured.dtype,
        operation_named(measured.operation).vendor_library.name,
        device.id,
        options,
    ), device


def family_of(case: Case) -> Family:
    """Return which kernels a library has for a case."""
    operation = operation_named(case.operation)
    special: dict[str, Family] = {  # operations whose kernels are of their own kind
        "attention": "attention",
        "conv2d": "convolution",
        "layer_norm": "layer_norm",
        "softmax": "softmax",
    }
    if case.operation in special:
        return special[case.operation]
    if moves_only(case):
        return "element_wise"
    products = operation.products(case.shape) if operation.products else ()
    return "product" if all(each.batch == 1 for each in products) else "batched_product"


@lru_cache(maxsize=4096)
def moves_only(case: Case) -> bool:
    """Return whether a case has no products of two matrices, and takes as long as its bytes, whatever their format."""
    operation = operation_named(case.operation)
    return not operation.products or all(1 in (each.m, each.n) for each in operation.products(case.shape))


def _weight_sets(case: Case, conditions: Conditions) -> int:
    """Return how many right-hand matrices alternate: a layer's weights are read once before those of others."""
    usual = ROTATING_SETS if case.operation == "linear" else 1
    return usual if conditions.weight_sets is None else conditions.weight_sets


def _quantises(case: Case, conditions: Conditions) -> bool:
    """Return whether the left-hand matrix is quantised first: a layer in 8 bits gets activations in 16."""
    usual = case.operation == "linear" and case.dtype == "fp8"
    return usual if conditions.quantises is None else conditions.quantises


def _long_rows(products: Sequence[Product], item_bytes: float) -> float:
    longest = max(each.k for each in products)
    most = 2.0  # logarithm to base 2 of the longest measured row over 64 KiB
    return min(max(0.0, log2(longest * item_bytes / 2**16)), most)


def _is_misaligned(products: Sequence[Product], item_bytes: float) -> bool:
    """Return whether rows of the matrices do not begin at whole vectors of 16 bytes."""
    vector = max(int(16 / item_bytes), 1)
    return any(each.n % vector or each.k % vector for each in products)


def _flat(shape: Shape) -> tuple[Product, ...]:
    """Return the convolution as one product: a row for each pixel of the batch, a column for each channel made."""
    return (Product(1, shape["b"] * shape["h"] * shape["w"], shape["o"], shape["c"] * shape["r"] ** 2),)


def _winograd(shape: Shape) -> Product:
    """Return the 16 products of Winograd's F(2 x 2, 3 x 3): a row for each tile of 2 x 2 pixels."""
    tiles = shape["b"] * -(-shape["h"] // 2) * -(-shape["w"] // 2)
    return Product(16, tiles, shape["o"], shape["c"])


def _position_of(shape: Shape, family: Family, products: Sequence[Product], moved: float) -> tuple[float, ...]:
    if family == "convolution":  # kernels of another reach are other kernels
        return _log2(shape["c"]), _log2(shape["o"]), _log2(shape["h"]) + 3 * shape["r"], _log2(shape["b"])
    if family in ("layer_norm", "softmax"):
        return _log2(shape["m"]), _log2(shape["n"]), 0.0, 0.0
    if family == "element_wise" or not products:
        return _log2(moved), 0.0, 0.0, 0.0
    largest = max(products, key=lambda each: each.batch * each.m * each.n * each.k)
    if family == "attention":
        return _log2(largest.batch), _log2(products[0].m), products[0].k / 16, 0.0
    return _log2(largest.m), _log2(largest.n), _log2(largest.k), _log2(largest.batch)


def _log2(length: float) -> float:
    return log2(max(length, 1))


class Batch:
    """GpuCall of many calls, an array each.

    Args:
        rows: the calls.
        kinds: of calls, in each of which every row stands, one after the other; None: in its own.
    """

    def __init__(self, rows: Sequence[GpuCall], kinds: Sequence[Calls] | None = None) -> None:
        self._kinds = kinds
        self._own = rows  # each once, whatever its kinds: the same numbers are read of it for all of them
        per = self._per = len(kinds) if kinds else 1
        self.chosen: tuple[int, ...] = ()  # the indices of the rows in a larger batch
        self.rows = tuple(row for row in rows for _ in range(per))
        self._numbers: dict[str, Numbers] = {}
        self._codes: dict[str, Codes] = {}
        self._grouped: dict[tuple[str, ...], tuple[tuple[str, ...], Indices]] = {}
        listed = [(at, each) for at, row in enumerate(rows) if row.family != "attention" for each in row.products]
        self.product_of, self.products = _stacked(listed, per)
        fast = [(at, row.winograd) for at, row in enumerate(rows) if row.winograd]
        self.winograd_of, self.winograd = _stacked(fast, per)
        attention = [(at, row.products[0]) for at, row in enumerate(rows) if row.family == "attention" and row.products]
        self.attention_of, self.attention = _stacked(attention, per)

    def __len__(self) -> int:
        return len(self.rows)

    def numbers(self, name: str) -> Numbers:
        """Return a field of each call as a number."""
        if name not in self._numbers:
            own = np.array([getattr(row, name) for row in self._own], dtype=np.float64)
            self._numbers[name] = np.repeat(own, self._per)
        return self._numbers[name]

    def codes(self, name: str) -> Codes:
        """Return a number for the text in a field of each call, the same in every batch of this process."""
        if name not in self._codes:
            self._codes[name] = np.array([hash(getattr(row, name)) for row in self.rows], dtype=np.int64)
        return self._codes[name]

    @cached_property
    def positions(self) -> Numbers:
        """Features of the shape of each call, (calls, 4)."""
        return np.array([row.position for row in self.rows], dtype=np.float64).reshape(-1, 4)

    @cached_property
    def hardware(self) -> Numbers:
        """Watts per TFLOP/s and multiprocessors of the GPU of each call, logarithms to base 2, (calls, 2)."""
        usual = 8.0  # of a device of unknown power
        watts = np.nan_to_num(self.numbers("watts_per_teraflop"), nan=usual)
        found: Numbers = np.log2(np.stack([np.maximum(watts, 1e-3), self.numbers("multiprocessors")], axis=1))
        return found

    def members(self, *names: str) -> tuple[str, ...]:
        """Return the different texts that fields of the calls are, joined by a slash."""
        return self._group(names)[0]

    def member_of(self, *names: str) -> Indices:
        """Return which of the `members` each call is."""
        return self._group(names)[1]

    def _group(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], Indices]:
        if names not in self._grouped:
            kinds = self._kinds if names == ("calls",) else None
            texts = ["/".join(getattr(row, name) for name in names) for row in self._own]
            texts = [*kinds] * len(texts) if kinds else texts
            places = {text: at for at, text in enumerate(dict.fromkeys(texts))}
            found = np.array([places[text] for text in texts], dtype=np.intp)
            self._grouped[names] = tuple(places), found if kinds else np.repeat(found, self._per)
        return self._grouped[names]

    def part(self, chosen: Sequence[int]) -> "Batch":
        """Return the batch of the chosen calls, with their indices."""
        found = Batch([self.rows[at] for at in chosen])
        found.chosen = tuple(chosen)
        return found


def _stacked(listed: Sequence[tuple[int, Product]], per: int) -> tuple[Indices, Numbers]:
    """Return the indices of the calls of products, and these, (products, 4); `per`: kinds of each call."""
    products = np.array([each for _, each in listed], dtype=np.float64).reshape(-1, 4)
    own = np.array([at for at, _ in listed], dtype=np.intp)
    return (own[:, None] * per + np.arange(per)).ravel(), np.repeat(products, per, axis=0)
