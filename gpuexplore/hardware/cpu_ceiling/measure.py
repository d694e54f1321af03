"""Measurement of a CPU's compute rate and memory bandwidth, which no system file states.

/proc/cpuinfo can state 2.6 GHz where the cores run at 4.2, and no table knows how many vector units
there are. A ceiling is a maximum, so it is the best of many short trials; every other figure of
gpuexplore is a median. Loads LLVM: import it on demand only.
"""

import ctypes
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from threading import Barrier
from time import perf_counter
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from gpuexplore.core import Bandwidth, CacheRoof, Cancelled, format_bytes
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.hardware.cpu import affinity, cache_bytes, cache_levels, cpu_name, memory_bytes, physical_cores
from gpuexplore.hardware.cpu_ceiling.ceiling import ASSUMED_CACHE_BYTES, CACHES_OVERFLOWN, Ceiling, plan_caches
from gpuexplore.hardware.cpu_ceiling.loops import (
    CACHED_TRIAD_VECTORS,
    MultiplyAddLoop,
    cached_triad_code,
    flush_code,
    loop_code,
    loops_for,
    register_bytes,
    tile_dtypes,
    triad_code,
    unreached_dtypes,
)
from gpuexplore.hardware.cpu_times import cpu_lost_share, read_cpu_times

TRIAL_S = 0.002  # shorter than a scheduler's time slice: some trials have the core to themselves, however busy it is
FIRST_ITERATIONS = 10_000
TRIAD_ARRAYS = 3
LINE_ELEMENTS = 8  # a cache line of doubles: where one thread's part ends and the next begins
CACHED_LENGTH = 8 * CACHED_TRIAD_VECTORS  # doubles of an iteration in the widest registers: arrays are multiples of it
TRIADS: Mapping[str, Callable[[str, int], str]] = {
    "triad": partial(triad_code, past_cache=True),
    "ordinary_triad": partial(triad_code, past_cache=False),
    "cached_triad": cached_triad_code,
}
SCRATCH_BYTES = 256  # two vector registers and some more
Arrays = tuple[np.typing.NDArray[np.float64], ...]
Functions = Mapping[str, Callable[..., None]]


@dataclass(frozen=True, slots=True)
class _ThreadTeam:
    """The threads that run machine code side by side; ctypes lets go of the GIL meanwhile."""

    threads: int
    pool: ThreadPoolExecutor
    hurried: Callable[[], bool]
    trials: int = 30

    def seconds(self, part: Callable[[int], None]) -> float:
        """Return the time until every thread has done its part; raise Cancelled where others wait."""
        if self.hurried():
            raise Cancelled("something else goes first")
        return _seconds(lambda: list(self.pool.map(part, range(self.threads))))


def _host_features() -> dict[str, bool]:
    """Return the host's instruction sets by LLVM's names."""
    return dict(llvm.get_host_cpu_features())


def _parsed_loops(loops: Mapping[str, MultiplyAddLoop], features: Mapping[str, bool]) -> Mapping[str, Any]:
    """Return a module of LLVM for each of the loops and the triads."""
    lanes = register_bytes(features) // 8
    texts = {dtype: loop_code(dtype, loop) for dtype, loop in loops.items()}
    texts |= {name: code(name, lanes) for name, code in TRIADS.items()}
    flush = flush_code("flush", features)
    return {name: llvm.parse_assembly(text) for name, text in (texts | ({"flush": flush} if flush else {})).items()}


def _host_machine() -> Any:
    """Return LLVM's target machine of this host."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
    )


def _compiled(loops: Mapping[str, MultiplyAddLoop], features: Mapping[str, bool]) -> Functions:
    """Return the loops and the triads as functions of this process."""
    modules = _parsed_loops(loops, features)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _host_machine())
    for module in modules.values():
        engine.add_module(module)
    engine.finalize_object()
    return {name: _function(engine, name) for name in modules}


def _function(engine: Any, name: str) -> Callable[..., None]:
    arguments = (ctypes.c_int64,) * 5 if name in (*TRIADS, "flush") else (ctypes.c_int64,) * 3
    function: Any = ctypes.CFUNCTYPE(None, *arguments)(engine.get_function_address(name))
    function.engine = engine  # keeps its machine code in memory
    return function


def measure_ceiling(threads: int, hurried: Callable[[], bool] = lambda: False) -> Ceiling:
    """Return the best rates that `threads` threads reach, in about 1 s.

    No more threads run than there are cores: two that alternate on one core would count it twice.

    Raises:
        Cancelled: `hurried` returned true, which is asked between loops.
    """
    features = _host_features()
    before = read_cpu_times()
    loops = loops_for(features)
    functions = _compiled(loops, features)
    used = min(threads, physical_cores(affinity()))
    with ThreadPoolExecutor(used) as pool:
        team = _ThreadTeam(used, pool, hurried)
        arrays = _stream_arrays(functions, team)
        together = _measured(functions, loops, team, arrays)
        # Fewer trials do: nothing disturbs one thread but other processes of this machine.
        alone = _measured(functions, loops, _ThreadTeam(1, pool, hurried, 8), arrays) if used > 1 else None
    contended = (cpu_lost_share(before, read_cpu_times()) or 0.0) > 0.1
    return replace(_at_least(together, alone), threads=threads, one_thread=alone, contended=contended)


def _at_least(together: Ceiling, alone: Ceiling | None) -> Ceiling:
    """Return the ceiling of all threads, whose memory gives at least what it gives to one of them."""
    if alone is None:
        return together
    ordinary = max(together.ordinary_bytes_per_s or 0.0, alone.ordinary_bytes_per_s or 0.0)
    return replace(together, bytes_per_s=max(together.bytes_per_s, alone.bytes_per_s), ordinary_bytes_per_s=ordinary)


def _measured(functions: Functions, loops: Mapping[str, MultiplyAddLoop], team: _ThreadTeam, arrays: Arrays) -> Ceiling:
    """Return the best rates of `team`."""
    plans = plan_caches(cache_levels(), team.threads, cores_of=physical_cores)
    return Ceiling(
        cpu_name=cpu_name(),
        threads=team.threads,
        flop_per_s={dtype: _loop_rate(functions[dtype], loop.flop_count, dtype, team) for dtype, loop in loops.items()},
        bytes_per_s=_stream_rate(functions, "triad", team, arrays),
        ordinary_bytes_per_s=_stream_rate(functions, "ordinary_triad", team, arrays),
        trials=team.trials,
        measured_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        unreached=unreached_dtypes(_host_features()),
        tiles=tile_dtypes(_host_features()),
        caches=tuple(_cache_roof(functions["cached_triad"], plan, team, arrays) for plan in plans),
    )


def _loop_rate(function: Callable[..., None], flop_count: int, dtype: str, team: _ThreadTeam) -> float:
    """Return the FLOP/s of all threads, each at its best while the others run; `flop_count` is of one iteration."""
    best_s = [0.0] * team.threads
    shortest_s = _best_seconds(function, FIRST_ITERATIONS, dtype, team.trials)
    iterations = max(FIRST_ITERATIONS, round(FIRST_ITERATIONS * TRIAL_S / shortest_s))

    def part(number: int) -> None:
        best_s[number] = _best_seconds(function, iterations, dtype, team.trials)

    team.seconds(part)
    return sum(iterations * flop_count / thread_s for thread_s in best_s)


def _best_seconds(function: Callable[..., None], iterations: int, dtype: str, trials: int) -> float:
    sums = np.zeros(SCRATCH_BYTES, dtype=np.uint8)
    # Random factors: with zeros the units draw less power and may clock higher.
    factors = dtype_named(dtype).round(np.random.default_rng(0).normal(size=SCRATCH_BYTES // 2))
    return min(_seconds(lambda: function(iterations, sums.ctypes.data, factors.ctypes.data)) for _ in range(trials))


def _seconds(run: Callable[[], object]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def _stream_arrays(functions: Functions, team: _ThreadTeam) -> Arrays:
    """Return the arrays of a triad through memory; where no instruction flushes caches, of four last-level caches."""
    if "flush" in functions:
        wanted = team.threads * 64 * 2**20  # a trial takes milliseconds, however many threads
    else:
        wanted = CACHES_OVERFLOWN * (cache_bytes() or ASSUMED_CACHE_BYTES)
    size = min(wanted, (memory_bytes() or 8 * wanted) // 8)
    line = LINE_ELEMENTS * team.threads
    length = max(1, size // (TRIAD_ARRAYS * 8 * line)) * line
    a, b, c = (_aligned(length) for _ in range(TRIAD_ARRAYS))
    for out in (a, b, c):  # the thread that writes a page first has it in its own memory
        _stream_seconds(functions["triad"], team, (c, c, out))
    return a, b, c


def _stream_rate(functions: Functions, name: str, team: _ThreadTeam, arrays: Arrays) -> float:
    """Return the best bytes/s of a triad over `arrays`, which no cache has."""

    def trial() -> float:
        if flush := functions.get("flush"):
            _stream_seconds(flush, team, arrays)
        return _stream_seconds(functions[name], team, arrays)

    first_s = _seconds(trial)
    return sum(array.nbytes for array in arrays) / min(trial() for _ in range(_trials_of(first_s, team)))


def _trials_of(trial_s: float, team: _ThreadTeam) -> int:
    """Return how many trials follow the first, in 60 ms."""
    return min(team.trials, max(2, int(0.06 / trial_s)))


def _stream_seconds(function: Callable[..., None], team: _ThreadTeam, arrays: Arrays) -> float:
    pointers = [array.ctypes.data for array in arrays]
    share = arrays[0].size // team.threads
    return team.seconds(lambda part: function(part * share, (part + 1) * share, *pointers))


def _cache_roof(
    function: Callable[..., None], plan: tuple[int, int, int], team: _ThreadTeam, arrays: Arrays
) -> CacheRoof:
    """Return the best bytes/s of a cache level, all threads at once; `plan` is one of `plan_caches`.

    Large levels are read in `arrays`, which are there: pages of new ones take longer than the measurement. Of a level
    larger than these, only as much is known to be a cache.
    """
    level, size_bytes, thread_bytes = plan
    most_bytes = sum(array.nbytes for array in arrays) // team.threads
    if thread_bytes > most_bytes:
        size_bytes = most_bytes * team.threads
        thread_bytes = most_bytes
    length = max(1, thread_bytes // (TRIAD_ARRAYS * 8 * CACHED_LENGTH)) * CACHED_LENGTH
    # shorter arrays that lie apart by a power of two would share sets of the L1 cache
    is_large = length > 2**20
    best_s = [0.0] * team.threads
    together = Barrier(team.threads)
    iteration_s = _iteration_seconds(function, length, arrays if is_large else _zeros(length))
    iterations = max(1, round(TRIAL_S / iteration_s))
    trials = _trials_of(iterations * iteration_s, team)

    def part(number: int) -> None:
        own = tuple(array[number * length :] for array in arrays) if is_large else _zeros(length)
        pointers = [array.ctypes.data for array in own]

        def trial() -> float:
            together.wait()  # a cache level shared by threads is only saturated by all of them
            return _seconds(lambda: function(iterations, length, *pointers))

        best_s[number] = min(trial() for _ in range(trials))

    team.seconds(part)
    rate = sum(iterations * TRIAD_ARRAYS * 8 * length / thread_s for thread_s in best_s)
    source = f"triad over {format_bytes(TRIAD_ARRAYS * 8 * length)} a thread, stores into the cache"
    return CacheRoof(level, size_bytes, Bandwidth(rate, "measured_ceiling", source))


def _iteration_seconds(function: Callable[..., None], length: int, arrays: Arrays) -> float:
    """Return about how long one pass over arrays in the cache takes."""
    pointers = [array.ctypes.data for array in arrays]
    iterations = max(1, FIRST_ITERATIONS * CACHED_LENGTH // length)
    return min(_seconds(lambda: function(iterations, length, *pointers)) for _ in range(3)) / iterations


def _zeros(length: int) -> Arrays:
    """Return the three arrays of a triad, written once so that their pages are there, a third of 4 KiB apart.

    A load whose address equals that of a store before it in the last 12 bits waits for it: a quarter of the rate.
    """
    stride = length - length % -512 + 168
    buffer = _aligned(TRIAD_ARRAYS * stride)
    buffer.fill(0.0)
    return tuple(buffer[number * stride :][:length] for number in range(TRIAD_ARRAYS))


def _aligned(length: int) -> np.typing.NDArray[np.float64]:
    """Return an uninitialised array that begins at a cache line."""
    raw = np.empty(length + LINE_ELEMENTS, dtype=np.float64)
    offset = (-raw.ctypes.data // 8) % LINE_ELEMENTS
    return raw[offset : offset + length]
