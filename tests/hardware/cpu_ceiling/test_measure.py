"""The loops behind the CPU's ceiling: vector registers are used, and what they reach is kept."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Bandwidth, CacheRoof, Device
from gpuexplore.core.serialization import encode
from gpuexplore.hardware import cache_directory, data_directory, ensure_ceiling
from gpuexplore.hardware.cpu import CacheLevel
from gpuexplore.hardware.cpu_ceiling.cache import (
    ATTEMPTS,
    CEILING_VERSION,
    _best_of,
    _with_saved,
    load_ceiling,
    save_ceiling,
    with_ceiling,
)
from gpuexplore.hardware.cpu_ceiling.ceiling import Ceiling, plan_caches
from gpuexplore.hardware.cpu_ceiling.loops import flush_code, loops_for, tile_dtypes, unreached_dtypes
from gpuexplore.hardware.cpu_ceiling.measure import (
    _compiled,
    _host_features,
    _host_machine,
    _parsed_loops,
    _zeros,
    measure_ceiling,
)
from gpuexplore.hardware.identity import device_key
from gpuexplore.operations import OPERATIONS
from tests.hardware.processors import ZEN_4, ZEN_5

KIB, MIB = 2**10, 2**20


def cache_roof(level, bytes_per_s):
    return CacheRoof(level, 10**level, Bandwidth(bytes_per_s, "measured_ceiling", "triad"))


CACHES = (cache_roof(1, 4e11), cache_roof(2, 2e11), cache_roof(3, 1e11))
QUIET = Ceiling("a CPU", 2, {"fp64": 1e11, "fp32": 2e11, "bf16": 4e11}, 5e10, 60, "2026-11-20T10:00:00+00:00")
CPU = Device("cpu", "cpu", "a CPU", cores=2)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_a_measured_ceiling_is_positive_and_halves_with_precision_doubled():
    ceiling = measure_ceiling(1)
    assert ceiling.bytes_per_s > 0
    assert 1.2 < ceiling.flop_per_s["fp32"] / ceiling.flop_per_s["fp64"] < 3
    assert all(
        rate > 1e9
        for rate in (*ceiling.flop_per_s.values(), *(cache.bandwidth.bytes_per_s for cache in ceiling.caches))
    )


def assembly_of(loops, features):
    return "\n".join(map(_host_machine().emit_assembly, _parsed_loops(loops, features).values()))


def test_the_loops_run_in_the_widest_vector_registers():
    features = _host_features()
    if not features.get("avx"):
        pytest.skip("no AVX here: its registers are named otherwise")
    assembly = assembly_of(loops_for(features), features)
    assert ("%zmm" if features.get("avx512f") else "%ymm") in assembly


def test_every_accumulator_stays_a_multiply_add_of_its_own():
    features = _host_features()
    if not features.get("fma"):
        pytest.skip("no x86 FMA here: multiply-adds are named otherwise")
    loops = {"fp32": loops_for(features)["fp32"]}
    assembly = assembly_of(loops, features)
    assert assembly.count("vfmadd") >= loops["fp32"].accumulators


def test_only_the_triad_for_memory_stores_past_the_caches():
    features = _host_features()
    if not features.get("avx"):
        pytest.skip("no AVX here: its stores are named otherwise")
    assembly = assembly_of({}, features)
    memory, rest = assembly.split("ordinary_triad:", maxsplit=1)
    assert "movntp" in memory
    assert "movntp" not in rest
    assert "cached_triad:" in rest


def test_caches_are_filled_by_half_and_past_the_level_before():
    levels = [CacheLevel(1, 32 * KIB, (0,)), CacheLevel(2, MIB, (0,)), CacheLevel(3, 32 * MIB, tuple(range(8)))]

    assert plan_caches(levels, 4, cores_of=len) == (
        (1, 4 * 32 * KIB, 16 * KIB),
        (2, 4 * MIB, 512 * KIB),
        (3, 32 * MIB, 4 * MIB),
    )
    # A thread of its own has the whole of a shared cache.
    assert plan_caches([CacheLevel(3, 32 * MIB, (0, 1))], 1, cores_of=len) == ((3, 32 * MIB, 16 * MIB),)


def test_a_cache_hardly_larger_than_the_one_before_is_not_told_from_it():
    levels = [CacheLevel(2, MIB, (0,)), CacheLevel(3, 22 * MIB, tuple(range(16)))]

    assert [level for level, _, _ in plan_caches(levels, 16, cores_of=len)] == [2]
    assert plan_caches([], 4, cores_of=len) == ()


@pytest.mark.parametrize(
    ("features", "dtypes", "lanes"),
    [
        ({"sse2": True}, {"fp64", "fp32"}, 4),
        ({"sse2": True, "avx": True}, {"fp64", "fp32"}, 8),
        ({"sse2": True, "avx": True, "avx512f": True, "avx512bf16": True}, {"fp64", "fp32", "bf16"}, 16),
        ({"sse2": True, "avx512f": True, "avx512fp16": True}, {"fp64", "fp32", "fp16"}, 16),
        ({"sse2": True, "avx512f": True, "avx512bf16": True, "amx-bf16": True}, {"fp64", "fp32", "bf16"}, 16),
        ({"neon": True, "fullfp16": True, "bf16": True}, {"fp64", "fp32", "fp16"}, 4),
    ],
)
def test_the_loops_fit_the_instructions_of_the_host(features, dtypes, lanes):
    loops = loops_for(features)
    assert set(loops) == dtypes
    assert loops["fp32"].lanes == lanes


def test_a_turn_counts_two_flops_per_multiply_add():
    features = {"sse2": True, "avx512f": True, "avx512bf16": True}
    assert loops_for(features)["fp32"].flop_count == 2 * 16 * 24
    assert loops_for(features)["bf16"].flop_count == 2 * 32 * 24


def test_a_saved_ceiling_comes_back_and_leaves_no_draft_behind(home):
    save_ceiling(CPU, QUIET)
    assert [json.loads(path.read_text())["threads"] for path in (home / "cache").iterdir()] == [2]
    assert ensure_ceiling(CPU) == with_ceiling(CPU, QUIET)
    assert load_ceiling(CPU, 2) == replace(QUIET, device_key=device_key(CPU))
    assert load_ceiling(CPU, 4) is load_ceiling(replace(CPU, name="another"), 2) is None


def test_two_processors_of_one_name_that_share_a_home_share_no_ceiling():
    save_ceiling(ZEN_4, QUIET)

    saved = replace(QUIET, device_key=device_key(ZEN_4))
    assert load_ceiling(ZEN_4, 2) == load_ceiling(replace(ZEN_4, peaks=()), 2) == saved
    assert load_ceiling(ZEN_5, 2) is None


@pytest.mark.parametrize("text", [None, "{", "[]"])
def test_a_file_that_is_passed_over_is_named(home, monkeypatch, text):
    monkeypatch.setattr("gpuexplore.hardware.cpu_ceiling.measure.measure_ceiling", lambda *_: QUIET)
    save_ceiling(ZEN_4, QUIET)
    (written,) = (home / "cache").glob("ceiling-*.json")
    found = written.rename(written.with_name(written.name.replace(device_key(ZEN_4), device_key(ZEN_5))))
    if text is not None:
        found.write_text(text)

    assert f"The saved ceilings in {found} are of another processor or unreadable" in ensure_ceiling(ZEN_5).notes[-1]
    assert all("another processor" not in note for note in ensure_ceiling(ZEN_5).notes)  # it was written anew


def test_a_file_that_names_its_cpu_alone_is_not_read(home):
    """Version 0.1 hashed the name: nobody knows which processor of that name it measured."""
    written = hashlib.sha256(f"{ZEN_5.name}|2|{CEILING_VERSION}".encode()).hexdigest()[:16]
    (home / "cache").mkdir()
    (home / "cache" / f"ceiling-{written}.json").write_text(json.dumps(encode(replace(QUIET, cpu_name=ZEN_5.name))))

    assert load_ceiling(ZEN_5, 2) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"flop_per_s": {"fp32": "much"}}', '{"cpu_name": "a CPU"}', '{"flop_per_s": 3}']
)
def test_a_corrupt_file_is_as_good_as_none(home, text):
    save_ceiling(CPU, QUIET)
    next((home / "cache").glob("*.json")).write_text(text)
    assert load_ceiling(CPU, 2) is None


@pytest.mark.parametrize("rates", [{}, {"fp64": 1e11, "fp32": 0.0}, {"fp64": 1e11, "fp32": float("nan")}])
def test_rates_that_no_loop_reaches_are_refused(rates):
    with pytest.raises(InvalidInput, match="ceiling"):
        replace(QUIET, flop_per_s=rates)


def test_a_directory_that_cannot_be_written_costs_a_note_and_not_the_peaks(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path / "file" / "below"))
    cpu = _with_saved(CPU, QUIET)
    assert cpu.peaks == with_ceiling(CPU, QUIET).peaks
    assert "could not be saved" in cpu.notes[-1]


@pytest.mark.parametrize(
    ("age", "attempts", "later", "is_due"),
    [(11, 1, True, True), (9, 1, True, False), (11, ATTEMPTS, True, False), (11, 1, False, False)],
)
def test_a_ceiling_is_measured_again_on_a_later_occasion(monkeypatch, age, attempts, later, is_due):
    measured = datetime.now(UTC) - timedelta(minutes=age)
    quartered = replace(cache_roof(2, 3e11), size_bytes=cache_roof(2, 1.0).size_bytes // 4)
    planted = replace(
        QUIET, bytes_per_s=1.8e10, caches=(quartered,), attempts=attempts, measured_utc=measured.isoformat()
    )
    save_ceiling(CPU, planted)
    true = replace(QUIET, caches=(cache_roof(2, 2e11),))
    monkeypatch.setattr("gpuexplore.hardware.cpu_ceiling.measure.measure_ceiling", lambda *_: true)
    cpu = ensure_ceiling(CPU, later=later)

    assert cpu.bandwidth.bytes_per_s == (QUIET.bytes_per_s if is_due else 1.8e10)
    assert cpu.caches[0].size_bytes == cache_roof(2, 1.0).size_bytes // (1 if is_due else 4)
    assert cpu.caches[0].bandwidth.bytes_per_s == 3e11


@pytest.mark.parametrize("saved", [None, replace(QUIET, contended=True, measured_utc="2020-01-01")])
def test_measuring_peaks_gives_way_and_what_is_saved_counts(saved):
    if saved:
        save_ceiling(CPU, saved)
    asked = iter([False, False, True])  # once before, then between loops

    cpu = ensure_ceiling(CPU, 1 if saved is None else 2, hurried=lambda: next(asked))

    assert cpu == (with_ceiling(CPU, saved) if saved else CPU)
    assert load_ceiling(CPU, 1) is None
    assert next(asked, None) is None


def test_a_ceiling_measured_beside_others_is_used_after_enough_attempts():
    save_ceiling(CPU, replace(QUIET, contended=True, attempts=ATTEMPTS))
    assert "busy CPU" in ensure_ceiling(CPU).notes[1]


ALONE = replace(QUIET, threads=1, flop_per_s={"fp64": 6e10, "fp32": 1.2e11}, bytes_per_s=3e10, caches=CACHES[:1])


def test_one_thread_has_roofs_of_its_own_and_ordinary_stores_a_bandwidth():
    alone = replace(ALONE, ordinary_bytes_per_s=2e10)
    save_ceiling(CPU, replace(QUIET, ordinary_bytes_per_s=4e10, one_thread=alone))

    cpu = ensure_ceiling(CPU)

    assert (cpu.bandwidth.bytes_per_s, cpu.ordinary_stores.bytes_per_s) == (5e10, 4e10)
    assert cpu.peak("fp32", "vector").flop_per_s == 2e11
    assert cpu.one_thread.peak("fp32", "vector").flop_per_s == 1.2e11
    assert (cpu.one_thread.bandwidth.bytes_per_s, cpu.one_thread.ordinary_stores.bytes_per_s) == (3e10, 2e10)
    assert [cache.level for cache in cpu.one_thread.caches] == [1]
    assert "on 1 thread, best of up to 60" in cpu.one_thread.ordinary_stores.source


def test_one_thread_of_one_is_the_same_and_unmeasured_is_unknown():
    assert with_ceiling(CPU, ALONE).one_thread.peaks == with_ceiling(CPU, ALONE).peaks
    assert with_ceiling(CPU, QUIET).one_thread is with_ceiling(CPU, QUIET).ordinary_stores is None


def test_the_best_of_two_ceilings_is_taken_of_one_thread_and_of_ordinary_stores_too():
    saved = replace(QUIET, ordinary_bytes_per_s=4e10, one_thread=replace(ALONE, bytes_per_s=3.5e10))
    best = _best_of(saved, replace(QUIET, ordinary_bytes_per_s=3e10, one_thread=ALONE))

    assert (best.ordinary_bytes_per_s, best.one_thread.bytes_per_s) == (4e10, 3.5e10)
    assert _best_of(QUIET, QUIET).one_thread is _best_of(QUIET, QUIET).ordinary_bytes_per_s is None


@pytest.mark.slow
def test_a_contended_ceiling_is_measured_again_and_its_best_kept():
    save_ceiling(CPU, replace(QUIET, bytes_per_s=1e15, contended=True))
    assert ensure_ceiling(CPU).bandwidth.bytes_per_s == 1e15
    assert load_ceiling(CPU, 2).attempts == 2


def test_the_best_of_two_ceilings_takes_each_rate_at_its_highest():
    better = replace(QUIET, flop_per_s={"fp64": 2e11, "fp32": 1e11}, bytes_per_s=1e10)
    assert _best_of(QUIET, better).flop_per_s == {"fp64": 2e11, "fp32": 2e11}
    assert _best_of(QUIET, better).bytes_per_s == 5e10
    assert _best_of(None, better) == better

    saved = replace(QUIET, caches=(cache_roof(1, 4e11), cache_roof(2, 3e11)))

    assert _best_of(saved, replace(QUIET, caches=CACHES)).caches == (
        cache_roof(1, 4e11),
        cache_roof(2, 3e11),
        CACHES[2],
    )


def test_caches_come_back_from_the_file_and_become_roofs_with_their_source():
    save_ceiling(CPU, replace(QUIET, caches=CACHES))

    found = ensure_ceiling(CPU).caches

    assert [one.bandwidth.bytes_per_s for one in found] == [4e11, 2e11, 1e11]
    assert found[0].bandwidth.source == "triad on 2 threads, best of 60, 2026-11-20"


def test_a_cache_that_is_not_faster_than_what_lies_behind_it_is_no_roof():
    slow = (cache_roof(1, 4e11), cache_roof(2, 1e11), cache_roof(3, 2e11))

    assert [cache.level for cache in with_ceiling(CPU, replace(QUIET, caches=slow)).caches] == [1, 3]
    assert with_ceiling(CPU, replace(QUIET, caches=(cache_roof(3, 4e10),))).caches == ()


def test_a_file_from_before_the_caches_were_measured_is_not_read(monkeypatch):
    monkeypatch.setattr("gpuexplore.hardware.cpu_ceiling.cache.CEILING_VERSION", CEILING_VERSION - 1)
    save_ceiling(CPU, QUIET)
    monkeypatch.setattr("gpuexplore.hardware.cpu_ceiling.cache.CEILING_VERSION", CEILING_VERSION)
    assert load_ceiling(CPU, 2) is None


def test_a_gpu_has_no_ceiling_to_measure():
    gpu = Device("cuda:0", "cuda", "a GPU")
    assert ensure_ceiling(gpu) is gpu


def test_peaks_say_what_was_run_for_each_dtype():
    cpu = with_ceiling(CPU, QUIET)
    assert cpu.peak("bf16", "matrix").source == "dot-product loop on 2 threads, best of 60, 2026-11-20"
    assert cpu.peak("fp32", "vector").source == "FMA loop on 2 threads, best of 60, 2026-11-20"
    assert "widened" in cpu.peak("bf16", "vector").source
    assert cpu.peak("fp16", "matrix").flop_per_s == cpu.peak("fp32", "matrix").flop_per_s
    assert cpu.peak("tf32", "matrix") is None


def test_products_may_widen_where_the_dot_product_is_the_slower_way():
    slow = replace(QUIET, flop_per_s={**QUIET.flop_per_s, "bf16": QUIET.flop_per_s["fp32"] / 2})
    peak = with_ceiling(CPU, slow).peak("bf16", "matrix")
    assert peak.flop_per_s == QUIET.flop_per_s["fp32"]
    assert "bf16 is widened to fp32" in peak.source


X86 = {"sse2": True, "avx": True}
AVX512 = {**X86, "avx512f": True}
RATES = {"fp64": 1e11, "fp32": 2e11, "bf16": 3.5e11, "fp16": 4e11}  # of the loops, where there are


@pytest.mark.parametrize(
    ("features", "by_torch", "by_numba", "kind"),
    [
        pytest.param(X86, 2e11, 2e11, "measured_ceiling", id="AVX2, Zen 3"),
        pytest.param(AVX512, 2e11, 2e11, "measured_ceiling", id="AVX-512 without bf16"),
        pytest.param({**AVX512, "avx512bf16": True}, 3.5e11, 3.5e11, "measured_ceiling", id="Zen 4 and 5"),
        pytest.param(
            {**AVX512, "avx512bf16": True, "avx512fp16": True}, 3.5e11, 3.5e11, "measured_ceiling", id="masked"
        ),
        pytest.param(
            {**AVX512, "avx512bf16": True, "avx512fp16": True, "amx-bf16": True}, 3.2e12, 3.5e11, "formula", id="AMX"
        ),
    ],
)
def test_every_x86_has_a_peak_of_the_units_that_products_in_16_bits_run_on(features, by_torch, by_numba, kind):
    rates = {dtype: RATES[dtype] for dtype in loops_for(features)}
    cpu = with_ceiling(CPU, replace(QUIET, flop_per_s=rates, tiles=tile_dtypes(features)))
    cpu = replace(cpu, native=tuple({"fp32", *rates}))
    torch, numba = (OPERATIONS["matmul"].implementation_named(name) for name in ("torch", "numba-cpu"))

    assert (torch.peak(cpu, "bf16").flop_per_s, torch.peak(cpu, "bf16").kind) == (by_torch, kind)
    assert numba.peak(cpu, "bf16").flop_per_s == by_numba
    assert torch.peak(cpu, "fp16").flop_per_s == numba.peak(cpu, "fp16").flop_per_s == 2e11  # both sum in fp32
    assert cpu.peak("fp16", "vector").flop_per_s == rates.get("fp16", 2e11)
    assert cpu.peak("bf16", "vector").flop_per_s == 2e11


def test_amx_in_fp16_has_a_peak_of_its_own_and_arm_in_bf16_none():
    granite_rapids = tile_dtypes({**AVX512, "amx-bf16": True, "amx-fp16": True})
    assert with_ceiling(CPU, replace(QUIET, tiles=granite_rapids)).peak("fp16", "matrix").kind == "formula"
    assert unreached_dtypes({"neon": True, "bf16": True}) == ("bf16",)
    assert tile_dtypes({"neon": True, "bf16": True}) == ()


def test_matrix_units_that_the_loop_does_not_drive_leave_the_peak_unknown():
    cpu = with_ceiling(CPU, replace(QUIET, flop_per_s={"fp64": 1e11, "fp32": 2e11}, unreached=("bf16",)))
    assert cpu.peak("bf16", "matrix") is None
    assert "matrix units for bf16" in cpu.notes[1]


def test_the_home_variable_decides_where_files_go(home):
    assert data_directory() == home
    assert cache_directory() == home / "cache"


def test_without_it_the_users_own_directories_are_used(monkeypatch, tmp_path):
    monkeypatch.delenv("GPUEXPLORE_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert cache_directory().name == "gpuexplore"


@pytest.mark.parametrize(
    ("features", "instruction"),
    [
        ({"sse2": True, "clflushopt": True}, "clflushopt ($0)"),
        ({"sse2": True}, "clflush ($0)"),
        ({"neon": True}, "dc civac, $0"),
    ],
)
def test_caches_are_flushed_by_the_instruction_of_the_processor(features, instruction):
    assert flush_code("flush", features).count(f'"{instruction}"') == 3
    assert flush_code("flush", {}) is None


def test_a_triad_of_flushed_arrays_leaves_their_values():
    functions = _compiled({}, _host_features())
    if "flush" not in functions:
        pytest.skip("no instruction of this processor flushes caches")
    a, b, c = _zeros(4096)
    a[:], b[:] = 1.0, 2.0
    pointers = [array.ctypes.data for array in (a, b, c)]
    functions["triad"](0, 4096, *pointers)
    functions["flush"](0, 4096, *pointers)
    assert (c == 7.0).all()


def test_arrays_in_a_cache_differ_in_the_last_bits_of_their_addresses():
    for length in (32, 1024, 5000 * 32):
        first, second, third = (array.ctypes.data % 4096 for array in _zeros(length))
        assert len({first, second, third}) == 3
        assert all(min(gap % 4096, -gap % 4096) >= 1024 for gap in (second - first, third - second, first - third))
