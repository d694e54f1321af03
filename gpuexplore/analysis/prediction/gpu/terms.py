"""The time of a library's call on a GPU: launch + (compute^p + memory^p)^(1/p).

Launch is added, not a floor under a maximum: graph, queued and single calls contain different shares of it. Compute is
that of waves of tiles, each with a start of its own, at a share of the peak that power allows: min(cap, c sqrt(watts
per TFLOP/s)). Memory is each byte at a share of the bandwidth, a second pass of long rows, or the L2 cache.

Libraries do not document their tiles. Assumed are those of CUTLASS's default kernels, and a split of long sums over
several blocks where the output is small:
https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html
"""

from dataclasses import dataclass

import numpy as np

from gpuexplore.analysis.prediction.gpu.coefficients import Coefficients
from gpuexplore.analysis.prediction.gpu.facts import USUAL_CLOCK_HZ, USUAL_YEAR, Batch, Indices, Numbers

TILE_ROWS = np.array([256, 128, 128, 128, 64, 64, 32, 64, 32, 128, 32], dtype=np.float64)
TILE_COLUMNS = np.array([128, 256, 128, 64, 128, 64, 64, 32, 32, 32, 128], dtype=np.float64)
LARGEST_REUSE = 256 * 128 / (256 + 128)  # multiply-adds for each number that a tile reads
SPLITS = (1, 2, 4, 8, 16, 32)
LEAST_SPLIT = 256  # terms of a sum that are worth a block of their own
QUERIES, KEYS = 128, 64  # rows and columns of a block of attention
ROWS_IN_FLIGHT = {"layer_norm": 12.0, "softmax": 4.0}  # of a multiprocessor
SHORT_ROW_BYTES = 4096  # a softmax of up to 1,024 fp32 numbers stays in registers
MOST_IDLE = 4.0  # how much slower a few multiprocessors can be than all


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
    compute, memory = _compute(batch, known), _memory(batch, known)
    power = known.exp("power_of_sum")
    together = (compute**power + memory**power) ** (1 / power)
    quantised = batch.numbers("quantised_bytes")
    before = np.where(quantised > 0, each + quantised / _bandwidth(batch, known), 0.0)
    return Terms(launch, compute, memory, launch + together + before)


def _launch(batch: Batch, known: Coefficients) -> tuple[Numbers, Numbers]:
    """Return the launch of each kernel, and what comes once in a call: a queued call has that in a graph and more.

    What a source's own way of timing adds is not asked for by others: it changes the last of these parts alone.
    """
    by_clock = np.exp(known.one("launch_by_clock") * np.log(USUAL_CLOCK_HZ / batch.numbers("clock_hz")))
    of_source = np.array([bool(name) for name in batch.group("source").names])[batch.group("source").places]
    own = np.exp(of_source * (known.of("launch_of_source", batch) + known.of("launch_of_both", batch)))
    kind = batch.group("calls")
    single = (np.array(kind.names) == "single")[kind.places]
    queued = (np.array(kind.names) != "graph")[kind.places]
    in_graph = known.exp("launch_in_graph") * np.exp(known.of("launch_of_family", batch)) * np.where(queued, 1.0, own)
    when_queued = known.exp("launch_when_queued") * queued * np.where(single, 1.0, own)
    return (in_graph + when_queued) * by_clock, known.exp("launch_when_single") * single * own


def _rate(batch: Batch, known: Coefficients) -> Numbers:
    """Return FLOP/s that power and lanes allow."""
    names = ("power", "power_of_architecture", "power_of_family")
    by_power = sum((known.of(name, batch) for name in names), np.zeros(len(batch)))
    by_power = by_power + known.of("power_of_graphics_memory", batch) * batch.numbers("graphics_memory")
    by_power = by_power + known.of("power_by_year", batch) * (batch.numbers("year") - USUAL_YEAR) / 3
    fp32 = np.array([row.rate == "fp32" for row in batch.rows])
    shared = batch.numbers("shared_lanes").astype(bool) & fp32
    cap = np.where(shared, known.exp("cap_shared_lanes"), known.exp("cap")) * np.exp(known.of("power_of_family", batch))
    cap = cap * np.where(batch.numbers("gaming_clock"), known.exp("above_rated_clock"), 1.0)
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
        copied = _winograd_bytes(batch) * known.exp("winograd_copies") / batch.numbers("bandwidth")[at]
        fast = (_tiled(batch, known, at, batch.winograd, rate=rate) + copied) * known.exp("winograd")
        found[at] = np.minimum(found[at] * known.exp("implicit_product"), fast)
    misaligned = np.exp(known.of("misaligned", batch)) * batch.numbers("misaligned")
    rows = known.exp("long_rows") * batch.numbers("long_rows") ** 1.5
    found = found * (1 + misaligned) * (1 + rows)
    if len(batch.attention_of):
        found[batch.attention_of] = _attention(batch, known)
    return found


def _winograd_bytes(batch: Batch) -> Numbers:
    _, tiles, made, read = batch.winograd.T
    found: Numbers = 16 * (tiles * read + tiles * made + read * made) * batch.numbers("item_bytes")[batch.winograd_of]
    return found


def _tiled(batch: Batch, known: Coefficients, places: Indices, products: Numbers, *, rate: Numbers) -> Numbers:
    """Return the seconds of each product, (products, 4), of the calls at `places`, in its best tiles."""
    number, rows, columns, terms_of_sum = (products[:, axis, None] for axis in range(4))
    multiprocessors = batch.numbers("multiprocessors")[places, None]
    each = rate[places, None] / multiprocessors
    by_clock = USUAL_CLOCK_HZ / batch.numbers("clock_hz")[places, None]
    start = np.exp(known.of("start_s", batch))[places, None] * by_clock
    reuse = TILE_ROWS * TILE_COLUMNS / (TILE_ROWS + TILE_COLUMNS)
    small = np.exp(known.of("small_tiles", batch))[places, None]
    speed = each / (1 + 32 * small * (1 / reuse - 1 / LARGEST_REUSE))
    tiles = number * np.ceil(rows / TILE_ROWS) * np.ceil(columns / TILE_COLUMNS)
    best = np.full(len(products), np.inf)
    for split in SPLITS:
        waves = _waves(tiles * split / multiprocessors, known)
        one = 2 * TILE_ROWS * TILE_COLUMNS * terms_of_sum / split / speed + start * (1 + (split > 1))
        worth = (terms_of_sum[:, 0] >= LEAST_SPLIT * split) | (split == 1)
        best = np.where(worth, np.minimum(best, (waves * one).min(axis=1)), best)
    return best


def _waves(blocks: Numbers, known: Coefficients) -> Numbers:
    """Return how many blocks one after the other a multiprocessor computes: a last wave costs a share of a whole."""
    idle = 1 / (1 + np.exp(-known.one("wave")))
    found: Numbers = np.where(blocks > 1, blocks + idle * (np.ceil(blocks) - blocks), 1.0)
    return found


def _attention(batch: Batch, known: Coefficients) -> Numbers:
    heads, length, keys, depth = batch.attention.T
    at = batch.attention_of
    padded = np.where(depth <= 64, 64, np.where(depth <= 96, 96, np.ceil(depth / 128) * 128))
    share = np.exp(known.one("attention_share") + known.of("attention_of_architecture", batch)[at])
    multiprocessors = batch.numbers("multiprocessors")[at]
    each = batch.numbers("peak")[at] * share / multiprocessors
    start = known.exp("attention_start_s") * USUAL_CLOCK_HZ / batch.numbers("clock_hz")[at]
    waves = _waves(heads * np.ceil(length / QUERIES) / multiprocessors, known)
    found: Numbers = waves * (4 * QUERIES * np.maximum(keys, KEYS) * padded / each + start)
    return found


def _bandwidth(batch: Batch, known: Coefficients) -> Numbers:
    names = ("bandwidth_of_architecture", "bandwidth_of_family")
    share = np.exp(known.one("bandwidth_share") + sum(known.of(name, batch) for name in names))
    found: Numbers = batch.numbers("bandwidth") * share
    return found


def _memory(batch: Batch, known: Coefficients) -> Numbers:
    bandwidth, multiprocessors = _bandwidth(batch, known), batch.numbers("multiprocessors")
    cache, reused = batch.numbers("cache_bytes"), batch.numbers("reused_bytes")
    moved = batch.numbers("bytes") * (1 + _second_pass(batch, known))
    rows = batch.numbers("rows")
    idle = np.where(rows > 0, np.clip(multiprocessors / np.maximum(rows, 1), 1, MOST_IDLE), 1.0)
    edge = known.exp("cache_edge")
    with np.errstate(over="ignore", divide="ignore"):
        cached = 1 / (1 + (reused / (known.exp("cache_share") * cache)) ** edge)
    by_cache = known.exp("cache_bytes_per_clock") * multiprocessors * batch.numbers("clock_hz")
    found: Numbers = moved * idle * ((1 - cached) / bandwidth + cached / np.maximum(by_cache, bandwidth))
    return found


def _second_pass(batch: Batch, known: Coefficients) -> Numbers:
    """Return the share of the bytes that is moved again, as rows in flight do not stay in the L2 cache."""
    extra = np.zeros(len(batch))
    for family, in_flight in ROWS_IN_FLIGHT.items():
        of_family = np.array([row.family == family for row in batch.rows])
        if of_family.any():
            taken = batch.numbers("multiprocessors") * in_flight * batch.numbers("row_bytes")
            full = taken / (known.exp(f"{family}_cache_share") * batch.numbers("cache_bytes") + 1)
            long = (batch.numbers("row_bytes") > SHORT_ROW_BYTES) | (family == "layer_norm")
            again = known.exp(f"{family}_second_pass") * full**4 / (1 + full**4)
            extra = np.where(of_family & long, again, extra)
    return extra
