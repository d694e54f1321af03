"""The measured ceilings of a CPU: a file per machine, and the peaks that follow; light to import.

What is measured is in `gpuexplore.hardware.cpu_ceiling.measure`, which compiles machine code and is loaded on demand.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gpuexplore.core import (
    WIDENED,
    Bandwidth,
    CacheRoof,
    Cancelled,
    Device,
    GpuExploreError,
    InvalidInput,
    Peak,
    ThreadRoofs,
    Unit,
    decode,
    write_json,
)
from gpuexplore.hardware.cpu import ACCOUNTING_UNREADABLE
from gpuexplore.hardware.cpu_ceiling.ceiling import Ceiling
from gpuexplore.hardware.cpu_ceiling.loops import TILES_PER_FMA
from gpuexplore.hardware.directories import cache_directory
from gpuexplore.hardware.identity import device_key

CEILING_VERSION = 5  # raise it when the loops change: older files are then measured again
ATTEMPTS = 5  # attempts on a machine that is never quiet, and at later starts
DOT_PRODUCT = "bf16"  # its instruction sums pairs of products: useless for element-wise operations


def load_ceiling(cpu: Device, threads: int) -> Ceiling | None:
    """Return the ceiling saved for this CPU and thread count; None without a readable file, or with another CPU's."""
    try:
        saved = decode(Ceiling, json.loads(_path(cpu, threads).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, GpuExploreError):
        return None  # it is measured again
    return saved if (saved.device_key, saved.threads) == (device_key(cpu), threads) else None


def save_ceiling(cpu: Device, ceiling: Ceiling) -> None:
    """Save the ceiling of `cpu`."""
    write_json(_path(cpu, ceiling.threads), replace(ceiling, device_key=device_key(cpu)))


def _path(cpu: Device, threads: int) -> Path:
    """Return the file of this processor: machines that share a home share no ceilings."""
    return cache_directory() / f"ceiling-{device_key(cpu)}-{threads}-v{CEILING_VERSION}.json"


def ensure_ceiling(
    device: Device,
    threads: int | None = None,
    *,
    again: bool = False,
    later: bool = False,
    hurried: Callable[[], bool] = lambda: False,
) -> Device:
    """Return the CPU with measured peaks, measuring for about 1 s when none are saved.

    What was measured while others used the CPU is measured again, not within a minute and up to five times, and the
    best is kept.
    Other devices come back as they are. Call it in a measuring process: it loads a compiler.

    Args:
        device: any device.
        threads: None is one per physical core.
        again: measure although a ceiling is saved.
        later: measure although one is saved, where that was ten minutes ago or more and fewer than five times: for
            who can wait, as a worker that starts with the app.
        hurried: asked between loops; once true, nothing more is measured, and what is saved counts: without a file, the
            device comes back as it is.
    """
    if device.kind != "cpu":
        return device
    count = threads or device.cores or 1
    saved = load_ceiling(device, count)
    known = with_ceiling(device, saved) if saved else device
    if hurried() or (saved is not None and not again and not _is_due(saved, later)):
        return known
    from gpuexplore.hardware.cpu_ceiling.measure import measure_ceiling

    passed_over = _stale_file_notes(device, count)
    try:
        new = measure_ceiling(count, hurried)
    except Cancelled:
        return known
    measured = _with_saved(device, _best_of(saved, replace(new, cpu_name=device.title)))
    return replace(measured, notes=(*measured.notes, *passed_over))


def _is_due(saved: Ceiling, later: bool) -> bool:
    if saved.attempts >= ATTEMPTS:
        return False
    age = datetime.now(UTC) - _measured_at(saved)
    # By then, work that used the CPU or the memory, like a starting app, may have ended.
    return (saved.contended and age >= timedelta(minutes=1)) or (later and age >= timedelta(minutes=10))


def _measured_at(saved: Ceiling) -> datetime:
    """Return when it was measured; long ago where the file does not state it."""
    with suppress(ValueError):
        found = datetime.fromisoformat(saved.measured_utc)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return datetime.min.replace(tzinfo=UTC)


def _stale_file_notes(cpu: Device, threads: int) -> tuple[str, ...]:
    """Return notes on a saved file of another processor, or an unreadable one; empty without a file."""
    with suppress(InvalidInput):  # a directory that cannot be used has a note of its own
        path = _path(cpu, threads)
        if path.exists() and load_ceiling(cpu, threads) is None:
            return (f"The saved ceilings in {path} are of another processor or unreadable: they were measured again.",)
    return ()


def _with_saved(device: Device, ceiling: Ceiling) -> Device:
    """Return `device` with the peaks of `ceiling`, which is saved for the next process."""
    measured = with_ceiling(device, ceiling)
    try:
        save_ceiling(device, ceiling)
    except (OSError, InvalidInput) as error:
        note = f"The ceiling could not be saved, so every process measures it again: {error}."
        return replace(measured, notes=(*measured.notes, note))
    return measured


def _best_of(saved: Ceiling | None, new: Ceiling) -> Ceiling:
    """Return `new` with every rate that `saved` reached before if it was higher: a ceiling is a maximum."""
    if saved is None:
        return new
    flop_per_s = {dtype: max(rate, saved.flop_per_s.get(dtype, 0.0)) for dtype, rate in new.flop_per_s.items()}
    return replace(
        new,
        flop_per_s=flop_per_s,
        bytes_per_s=max(saved.bytes_per_s, new.bytes_per_s),
        caches=tuple(_best_cache(cache, saved) for cache in new.caches),
        contended=saved.contended and new.contended,
        attempts=saved.attempts + 1,
        ordinary_bytes_per_s=max(new.ordinary_bytes_per_s or 0.0, saved.ordinary_bytes_per_s or 0.0) or None,
        one_thread=_best_of(saved.one_thread, new.one_thread) if new.one_thread else None,
    )


def _best_cache(new: CacheRoof, saved: Ceiling) -> CacheRoof:
    """Return a level at its fastest, of the size that the system states now: a size is no maximum."""
    same_level = (cache for cache in (new, *saved.caches) if cache.level == new.level)
    return replace(max(same_level, key=lambda cache: cache.bandwidth.bytes_per_s), size_bytes=new.size_bytes)


def with_ceiling(device: Device, ceiling: Ceiling) -> Device:
    """Return `device` with the peaks and the bandwidths of `ceiling`, and a note on them alone."""
    roofs = _roofs(ceiling)
    alone = ceiling if ceiling.threads == 1 else ceiling.one_thread
    return replace(
        device,
        peaks=roofs.peaks,
        bandwidth=roofs.bandwidth,
        ordinary_stores=roofs.ordinary_stores,
        caches=roofs.caches,
        one_thread=_roofs(alone) if alone else None,
        notes=(
            *(note for note in device.notes if note == ACCOUNTING_UNREADABLE),
            f"Peaks were measured here: {_source('FMA loop', ceiling)}.",
            *_doubts(ceiling),
        ),
    )


def _roofs(ceiling: Ceiling) -> ThreadRoofs:
    units: tuple[Unit, ...] = ("matrix", "dot", "vector")
    peaks = (_peak(ceiling, dtype, unit) for dtype in ("fp64", "fp32", "bf16", "fp16") for unit in units)
    ordinary = ceiling.ordinary_bytes_per_s
    return ThreadRoofs(
        peaks=tuple(peak for peak in peaks if peak is not None),
        bandwidth=_memory("STREAM triad with streaming stores", ceiling.bytes_per_s, ceiling),
        ordinary_stores=_memory("STREAM triad with ordinary stores (their reads not counted)", ordinary, ceiling)
        if ordinary
        else None,
        caches=_caches(ceiling),
    )


def _memory(loop: str, bytes_per_s: float, ceiling: Ceiling) -> Bandwidth:
    return Bandwidth(bytes_per_s, "measured_ceiling", _source(loop, ceiling, "up to "))


def _caches(ceiling: Ceiling) -> tuple[CacheRoof, ...]:
    """Return the levels that are faster than everything behind them: another one is no roof of its own."""
    kept: list[CacheRoof] = []
    behind = ceiling.bytes_per_s
    for cache in reversed(ceiling.caches):
        if cache.bandwidth.bytes_per_s > behind:
            behind = cache.bandwidth.bytes_per_s
            bandwidth = replace(cache.bandwidth, source=_source(cache.bandwidth.source, ceiling))
            kept.insert(0, replace(cache, bandwidth=bandwidth))
    return tuple(kept)


def _peak(ceiling: Ceiling, dtype: str, unit: Unit) -> Peak | None:
    fp32 = ceiling.flop_per_s["fp32"]
    own = ceiling.flop_per_s.get(dtype, 0.0)
    if unit == "dot" and dtype != DOT_PRODUCT:
        return None
    if unit == "matrix" and dtype in ceiling.tiles:
        source = f"AMX: 1,024 FLOP a clock and core where the fp32 FMA loop does 64; {_source('that loop', ceiling)}"
        return Peak(dtype, unit, TILES_PER_FMA * fp32, "formula", source)
    if unit == "matrix" and dtype in ceiling.unreached:
        return None
    is_slower = dtype == DOT_PRODUCT and own < fp32  # on some CPUs
    # Vector instructions of fp16 sum in fp16, and libraries sum products in fp32.
    is_other = (dtype, unit) in {(DOT_PRODUCT, "vector"), ("fp16", "matrix")}
    if own and not is_slower and not is_other:
        loop = "dot-product loop" if dtype == DOT_PRODUCT else "FMA loop"
        return Peak(dtype, unit, own, "measured_ceiling", _source(loop, ceiling))
    source = _source("fp32 FMA loop", ceiling) + f" ({dtype} {WIDENED})"
    return Peak(dtype, unit, fp32, "measured_ceiling", source)


def _source(loop: str, ceiling: Ceiling, up_to: str = "") -> str:
    threads = f"{ceiling.threads} thread{'s' if ceiling.threads > 1 else ''}"
    return f"{loop} on {threads}, best of {up_to}{ceiling.trials}, {ceiling.measured_utc[:10]}"


def _doubts(ceiling: Ceiling) -> tuple[str, ...]:
    dtypes = ", ".join(ceiling.unreached)
    busy = "Peaks were measured on a busy CPU: the true ones may be higher."
    undriven = f"This CPU has matrix units for {dtypes} whose rate is unknown: no peak is given."
    return (*((busy,) if ceiling.contended else ()), *((undriven,) if dtypes else ()))
