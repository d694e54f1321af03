"""The time of a library's call on a GPU: launch + (compute^p + memory^p)^(1/p).

Launch is added, not a floor under a maximum: graph, queued and single calls contain different shares of it. Compute is
that of waves of tiles, each with a start of its own, at a share of the peak that power allows: min(cap, c sqrt(watts
per TFLOP/s)). Memory is each byte at a share of the bandwidth, a second pass of long rows, or the L2 cache.

Libraries do not document their tiles. Assumed are those of CUTLASS's default kernels, and a split of long sums over
several blocks where the output is small:
https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from math import log
from statistics import NormalDist

import numpy as np

from gpuexplore.analysis.prediction.gpu.facts import USUAL_CLOCK_HZ, USUAL_YEAR, Batch, Indices, Numbers
from gpuexplore.core.once import once

# The coefficients of the terms, in natural logarithms unless stated otherwise: their priors and fitted values.


FILE = "prediction.json"
Coefficients = Mapping[str, float]  # fitted values by name; other coefficients keep their prior means


# Means are physical estimates, deviations limit the fit.
SINGLE: Mapping[str, NormalDist] = {
    "launch_in_graph": NormalDist(log(2e-6), 0.3),
    "launch_when_queued": NormalDist(log(1.5e-6), 0.3),  # beyond that in a graph
    "launch_when_single": NormalDist(log(6e-6), 0.3),  # beyond that of a queued call
    "launch_when_cold": NormalDist(log(1.5e-6), 0.5),  # beyond that in a graph: the first blocks find no code in caches
    "cold_clock": NormalDist(0.1, 0.1),  # of time: an idle GPU runs at a lower clock
    "cold_bandwidth": NormalDist(0.1, 0.1),  # of time: the first accesses miss in the TLB
    "power_of_sum": NormalDist(log(1.7), 0.3),  # p of (compute^p + memory^p)^(1/p)
    "launch_by_clock": NormalDist(0.7, 0.15),  # not a logarithm: exponent of the clock
    "cap": NormalDist(log(0.92), 0.05),  # share of the peak where power does not limit
    "above_rated_clock": NormalDist(0.05, 0.1),  # of cards for games
    "cap_shared_lanes": NormalDist(log(0.66), 0.1),  # fp32 where int32 takes lanes away
    "attention_share": NormalDist(log(0.45), 0.3),  # of the peak of matrix units
    "attention_start_s": NormalDist(log(3e-6), 0.7),  # of a wave of blocks
    "bandwidth_share": NormalDist(log(0.87), 0.1),
    "layer_norm_cache_share": NormalDist(log(0.2), 0.5),  # of the L2 cache that rows in flight may take
    "softmax_cache_share": NormalDist(log(0.2), 0.5),
    "layer_norm_second_pass": NormalDist(log(0.5), 0.3),  # of the bytes, beyond that
    "softmax_second_pass": NormalDist(log(1.0), 0.3),
    "cache_bytes_per_clock": NormalDist(log(10.7), 0.3),  # of the L2 cache and a multiprocessor
    "cache_share": NormalDist(log(0.7), 0.3),  # of the L2 cache that data of the next call may take
    "cache_edge": NormalDist(log(4.0), 0.3),
    "long_rows": NormalDist(log(0.2), 0.7),  # of time, where rows are longer than 64 KiB and translation is slow
    "winograd_copies": NormalDist(log(0.5), 0.7),  # how often transformed data pass through memory
    "winograd": NormalDist(0.2, 0.3),
    "implicit_product": NormalDist(0.0, 0.3),
    "searched": NormalDist(log(0.08), 0.5),  # gain of the best shape of a search
}
GROUPS: Mapping[str, tuple[tuple[str, ...], NormalDist]] = {
    "launch_of_family": (("family",), NormalDist(0.0, 0.4)),  # in a graph
    "launch_of_source": (("source",), NormalDist(0.0, 0.4)),  # of what its kind of calls adds
    "launch_of_both": (("source", "family"), NormalDist(0.0, 0.4)),
    "power": (("rate",), NormalDist(log(0.75), 0.4)),
    "power_of_vendor": (("vendor", "rate"), NormalDist(0.0, 0.2)),
    "power_of_architecture": (("architecture", "rate"), NormalDist(0.0, 0.15)),
    "power_of_family": (("family", "rate"), NormalDist(0.0, 0.15)),
    "power_of_graphics_memory": (("rate",), NormalDist(-0.2, 0.2)),
    "power_by_year": (("rate",), NormalDist(0.1, 0.1)),
    "attention_of_architecture": (("architecture",), NormalDist(0.0, 0.15)),
    "bandwidth_of_vendor": (("vendor", "family"), NormalDist(0.0, 0.2)),
    "bandwidth_of_architecture": (("architecture",), NormalDist(0.0, 0.08)),
    "bandwidth_of_family": (("family",), NormalDist(0.0, 0.05)),
    "start_s": (("rate",), NormalDist(log(1e-6), 0.7)),  # of a wave of blocks of a product
    "wave": (("rate",), NormalDist(-0.5, 1.0)),  # logit of the share of a last wave that idle multiprocessors cost
    "small_tiles": (("rate",), NormalDist(log(0.3), 0.5)),
    "misaligned": (("rate",), NormalDist(log(0.1), 0.7)),
}
OF_ONE: Mapping[str, NormalDist] = {  # group members with a better prior than the others
    "launch_of_source:event_after_synchronize": NormalDist(log(4), 0.4),  # 12 to 45 us, as its authors say
    "power:fp32": NormalDist(log(0.22), 0.4),
    "power:fp64": NormalDist(log(0.4), 0.4),
    "small_tiles:fp32": NormalDist(log(0.15), 0.5),
    "small_tiles:fp64": NormalDist(log(0.15), 0.5),
}


def expected(name: str) -> NormalDist:
    """Return what is expected of a coefficient: of one alone, or of a member of a group, ``group:member``."""
    group, found, _ = name.partition(":")
    return OF_ONE.get(name) or (GROUPS[group][1] if found else SINGLE[name])


def names_for(batch: Batch) -> tuple[str, ...]:
    """Return the coefficients that calls depend on."""
    grouped = (f"{name}:{member}" for name, (by, _) in GROUPS.items() for member in batch.members(*by))
    return (*SINGLE, *grouped)


def _coefficient(known: Coefficients, name: str) -> float:
    """Return the value of one coefficient."""
    return known.get(name, expected(name).mean)


def exponential(known: Coefficients, name: str) -> float:
    """Return what a coefficient is the logarithm of."""
    return float(np.exp(_coefficient(known, name)))


def _of_members(known: Coefficients, name: str, batch: Batch) -> Numbers:
    """Return the value of each call's member of a group."""
    by, _ = GROUPS[name]
    values = np.array([_coefficient(known, f"{name}:{member}") for member in batch.members(*by)], dtype=np.float64)
    return values[batch.member_of(*by)]


@once
def package_data() -> dict[str, object]:
    """Return what `scripts/fit_prediction.py` wrote: coefficients, corrections and intervals."""
    text = (files("gpuexplore.analysis") / "data" / FILE).read_text(encoding="utf-8")
    loaded: dict[str, object] = json.loads(text)
    return loaded


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds of each call: of its launches, its arithmetic, its data, and in all."""

    launch: Numbers
    compute: Numbers
    memory: Numbers
    total: Numbers


def terms(batch: Batch, known: Coefficients) -> Terms:
    """Return the terms of each call."""
    each, once = _launch(batch, known)
    launch = each * batch.numbers("kernels") + once
    cold = _is_cold(batch)
    compute = _compute(batch, known) * np.exp(_coefficient(known, "cold_clock") * cold)
    memory = _memory(batch, known) * np.exp(_coefficient(known, "cold_bandwidth") * cold)
    power = exponential(known, "power_of_sum")
    together = (compute**power + memory**power) ** (1 / power)
    quantised = batch.numbers("quantised_bytes")
    before = np.where(quantised > 0, each + quantised / _bandwidth(batch, known), 0.0)
    return Terms(launch, compute, memory, launch + together + before)


def _launch(batch: Batch, known: Coefficients) -> tuple[Numbers, Numbers]:
    """Return the launch of each kernel, and what comes once in a call: a queued call has that in a graph and more.

    What a source's own way of timing adds is not asked for by others: it changes the last of these parts alone.
    """
    by_clock = np.exp(_coefficient(known, "launch_by_clock") * np.log(USUAL_CLOCK_HZ / batch.numbers("clock_hz")))
    of_source = np.array([bool(name) for name in batch.members("source")])[batch.member_of("source")]
    own = np.exp(
        of_source * (_of_members(known, "launch_of_source", batch) + _of_members(known, "launch_of_both", batch))
    )
    kinds = np.array(batch.members("calls"))[batch.member_of("calls")]
    single = kinds == "single"
    cold = kinds == "cold"
    queued = (kinds == "queued") | single
    in_graph = (
        exponential(known, "launch_in_graph")
        * np.exp(_of_members(known, "launch_of_family", batch))
        * np.where(queued, 1.0, own)
    )
    when_queued = exponential(known, "launch_when_queued") * queued * np.where(single, 1.0, own)
    when_cold = exponential(known, "launch_when_cold") * cold
    return (in_graph + when_queued + when_cold) * by_clock, exponential(known, "launch_when_single") * single * own


def _is_cold(batch: Batch) -> Indices:
    """Return whether caches are cold and the GPU idle before each call."""
    return np.array([name == "cold" for name in batch.members("calls")])[batch.member_of("calls")]


def _rate(batch: Batch, known: Coefficients) -> Numbers:
    """Return FLOP/s that power and lanes allow."""
    names = ("power", "power_of_vendor", "power_of_architecture", "power_of_family")
    by_power = sum((_of_members(known, name, batch) for name in names), np.zeros(len(batch)))
    by_power = by_power + _of_members(known, "power_of_graphics_memory", batch) * batch.numbers("graphics_memory")
    by_power = by_power + _of_members(known, "power_by_year", batch) * (batch.numbers("year") - USUAL_YEAR) / 3
    fp32 = np.array(batch.members("rate"))[batch.member_of("rate")] == "fp32"
    shared = batch.numbers("shared_lanes").astype(bool) & fp32
    cap = np.where(shared, exponential(known, "cap_shared_lanes"), exponential(known, "cap")) * np.exp(
        _of_members(known, "power_of_family", batch)
    )
    cap = cap * np.where(batch.numbers("gaming_clock"), exponential(known, "above_rated_clock"), 1.0)
    share = np.fmin(cap, np.exp(by_power) * np.sqrt(batch.numbers("watts_per_teraflop")))  # unknown power: the cap
    found: Numbers = batch.numbers("peak") * share
    return found


def _compute(batch: Batch, known: Coefficients) -> Numbers:
    found = np.zeros(len(batch))
    rate = _rate(batch, known)
    if len(batch.product_of):
        seconds = _tiled(batch, known, batch.product_of, batch.products, rate=rate)
        np.add.at(found, batch.product_of, seconds)
    if len(batch.winograd_of):
        at = batch.winograd_of
        copied = _winograd_bytes(batch) * exponential(known, "winograd_copies") / batch.numbers("bandwidth")[at]
        fast = (_tiled(batch, known, at, batch.winograd, rate=rate) + copied) * exponential(known, "winograd")
        found[at] = np.minimum(found[at] * exponential(known, "implicit_product"), fast)
    misaligned = np.exp(_of_members(known, "misaligned", batch)) * batch.numbers("misaligned")
    rows = exponential(known, "long_rows") * batch.numbers("long_rows") ** 1.5
    found = found * (1 + misaligned) * (1 + rows)
    if len(batch.attention_of):
        found[batch.attention_of] = _attention(batch, known)
    return found


def _winograd_bytes(batch: Batch) -> Numbers:
    _, tiles, made, read = batch.winograd.T
    found: Numbers = 16 * (tiles * read + tiles * made + read * made) * batch.numbers("item_bytes")[batch.winograd_of]
    return found


def _tiled(batch: Batch, known: Coefficients, calls: Indices, products: Numbers, *, rate: Numbers) -> Numbers:
    """Return the seconds of each product, (products, 4), of the calls at these indices, in its best tiles."""
    number, rows, columns, terms_of_sum = (products[:, axis, None] for axis in range(4))
    multiprocessors = batch.numbers("multiprocessors")[calls, None]
    each = rate[calls, None] / multiprocessors
    by_clock = USUAL_CLOCK_HZ / batch.numbers("clock_hz")[calls, None]
    start = np.exp(_of_members(known, "start_s", batch))[calls, None] * by_clock
    tile_columns = np.array([128, 256, 128, 64, 128, 64, 64, 32, 32, 32, 128], dtype=np.float64)
    tile_rows = np.array([256, 128, 128, 128, 64, 64, 32, 64, 32, 128, 32], dtype=np.float64)
    scaled = (
        np.array(batch.members("rate"))[batch.member_of("rate")][calls] == "fp8"
    )  # in blocks of 128 x 128, sums in one piece
    fits = ~scaled[:, None] | ((tile_columns == 128) & (tile_rows == 128))
    reuse = tile_rows * tile_columns / (tile_rows + tile_columns)
    small = np.exp(_of_members(known, "small_tiles", batch))[calls, None]
    idle = 1 / (1 + np.exp(-_of_members(known, "wave", batch)))[calls, None]
    largest_reuse = 256 * 128 / (256 + 128)  # multiply-adds for each number that a tile reads
    speed = each / (1 + 32 * small * (1 / reuse - 1 / largest_reuse))
    tiles = number * np.ceil(rows / tile_rows) * np.ceil(columns / tile_columns)
    best = np.full(len(products), np.inf)
    least_split = 256  # least terms of a sum that justify a separate block
    for split in (1, 2, 4, 8, 16, 32):
        waves = _waves(tiles * split / multiprocessors, idle)
        one = 2 * tile_rows * tile_columns * terms_of_sum / split / speed + start * (1 + (split > 1))
        worth = ((terms_of_sum[:, 0] >= least_split * split) & ~scaled) | (split == 1)
        fastest = np.where(fits, waves * one, np.inf).min(axis=1)
        best = np.where(worth, np.minimum(best, fastest), best)
    return best


def _waves(blocks: Numbers, idle: Numbers) -> Numbers:
    """Return how many blocks one after the other a multiprocessor computes: a last wave costs a share of a whole."""
    found: Numbers = np.where(blocks > 1, blocks + idle * (np.ceil(blocks) - blocks), 1.0)
    return found


def _attention(batch: Batch, known: Coefficients) -> Numbers:
    heads, length, keys, depth = batch.attention.T
    at = batch.attention_of
    padded = np.where(depth <= 64, 64, np.where(depth <= 96, 96, np.ceil(depth / 128) * 128))
    share = np.exp(_coefficient(known, "attention_share") + _of_members(known, "attention_of_architecture", batch)[at])
    multiprocessors = batch.numbers("multiprocessors")[at]
    each = batch.numbers("peak")[at] * share / multiprocessors
    start = exponential(known, "attention_start_s") * USUAL_CLOCK_HZ / batch.numbers("clock_hz")[at]
    queries = 128
    idle = 1 / (1 + np.exp(-_of_members(known, "wave", batch)[at]))
    waves = _waves(heads * np.ceil(length / queries) / multiprocessors, idle)
    least_keys = 64  # rows and columns of a block of attention
    found: Numbers = waves * (4 * queries * np.maximum(keys, least_keys) * padded / each + start)
    return found


def _bandwidth(batch: Batch, known: Coefficients) -> Numbers:
    names = ("bandwidth_of_vendor", "bandwidth_of_architecture", "bandwidth_of_family")
    share = np.exp(_coefficient(known, "bandwidth_share") + sum(_of_members(known, name, batch) for name in names))
    found: Numbers = batch.numbers("bandwidth") * share
    return found


def _memory(batch: Batch, known: Coefficients) -> Numbers:
    bandwidth = _bandwidth(batch, known)
    multiprocessors = batch.numbers("multiprocessors")
    moved = batch.numbers("bytes") * (1 + _second_pass(batch, known))
    rows = batch.numbers("rows")
    most_idle = 4.0  # how much slower a few multiprocessors can be than all
    idle = np.where(rows > 0, np.clip(multiprocessors / np.maximum(rows, 1), 1, most_idle), 1.0)
    edge = exponential(known, "cache_edge")
    with np.errstate(over="ignore", divide="ignore"):
        reused = np.where(_is_cold(batch), np.inf, batch.numbers("reused_bytes"))
        cached = 1 / (1 + (reused / (exponential(known, "cache_share") * batch.numbers("cache_bytes"))) ** edge)
    by_cache = exponential(known, "cache_bytes_per_clock") * multiprocessors * batch.numbers("clock_hz")
    found: Numbers = moved * idle * ((1 - cached) / bandwidth + cached / np.maximum(by_cache, bandwidth))
    return found


def _second_pass(batch: Batch, known: Coefficients) -> Numbers:
    """Return the share of the bytes that is moved again, as rows in flight do not stay in the L2 cache."""
    extra = np.zeros(len(batch))
    rows_in_flight = {"layer_norm": 12.0, "softmax": 4.0}  # of a multiprocessor
    short_row_bytes = 4096  # a softmax of up to 1,024 fp32 numbers stays in registers
    for family, in_flight in rows_in_flight.items():
        of_family = np.array(batch.members("family"))[batch.member_of("family")] == family
        if of_family.any():
            taken = batch.numbers("multiprocessors") * in_flight * batch.numbers("row_bytes")
            full = taken / (exponential(known, f"{family}_cache_share") * batch.numbers("cache_bytes") + 1)
            long = (batch.numbers("row_bytes") > short_row_bytes) | (family == "layer_norm")
            again = exponential(known, f"{family}_second_pass") * full**4 / (1 + full**4)
            extra = np.where(of_family & long, again, extra)
    return extra
