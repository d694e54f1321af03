"""What checks of times make of what their probe reports: each has figures that pass, and figures that fail."""

from dataclasses import replace

import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import GpuExploreError
from gpuexplore.core.model import Bandwidth, Flag, Status
from gpuexplore.core.units import format_seconds
from gpuexplore.features.selftest.suite.checks import bandwidth, ladder, timer
from gpuexplore.features.selftest.suite.contract import CheckVerdict
from gpuexplore.operations import operation_named
from tests.features.selftest.suite.fake_bench import FakeBench, ended
from tests.measure.fakes import CPU, GPU

PEAK = Bandwidth(1e12, "datasheet", "a test")


def read(read_s, cache="warm"):
    def answer(library):
        nothing = {"library": library, "length_s": 0.0, "cache": "warm", "read_s": 1e-6}
        return [nothing, {**nothing, "cache": cache, "length_s": 20e-6, "known_s": (20e-6, 20.2e-6), "read_s": read_s}]

    return answer


@pytest.mark.parametrize(
    ("read_s", "words"),
    [
        *((read_s, "") for read_s in (19.5e-6, 20e-6, 22e-6, 25e-6)),
        *((10e-6, "0.495 times"), (40e-6, "1.98 times"), (28e-6, "1.39 times")),
    ],
)
def test_timer_may_read_the_start_of_a_kernel_too_and_no_other_length(read_s, words):
    found = timer.CHECK.run(FakeBench(answers=read(read_s)))

    assert found.verdict is (CheckVerdict.FAIL if words else CheckVerdict.PASS)
    assert [words in sentence for sentence in found.said] == ([True, True] if words else []), "one for each library"


def reading(read, cache="warm"):
    """Return a probe whose timer reads `read(seconds)` for kernels of 5 and 100 µs."""

    def answer(library):
        return [
            {
                "library": library,
                "length_s": known_s,
                "cache": cache,
                "known_s": (known_s, known_s),
                "read_s": read(known_s),
            }
            for known_s in (5e-6, 100e-6)
        ]

    return answer


@pytest.mark.parametrize("factor", [0.93, 1.1])
def test_timer_that_is_wrong_by_a_factor_is_seen_in_the_difference_of_two_kernels(factor):
    found = timer.CHECK.run(FakeBench(answers=reading(lambda known_s: known_s * factor + 0.5e-6)))

    assert found.verdict is CheckVerdict.FAIL
    sentence = (
        f"a kernel of 100 µs reads {format_seconds(95e-6 * factor)} longer than one of 5.00 µs (warm), not 95.0 µs"
    )
    assert f"torch: {sentence}" in found.said


@pytest.mark.parametrize(
    ("device", "cache", "verdict"),
    [(CPU, "cold", CheckVerdict.PASS), (CPU, "warm", CheckVerdict.FAIL), (GPU, "cold", CheckVerdict.FAIL)],
)
def test_only_a_cold_call_on_a_cpu_may_cost_microseconds_more_with_a_longer_kernel(device, cache, verdict):
    """Seen on a CPU: 13.2 µs for 5 µs, 113 µs for 100 µs."""
    answers = reading(lambda known_s: known_s * 1.06, cache)

    assert timer.CHECK.run(FakeBench(device=device, answers=answers)).verdict is verdict


@pytest.mark.parametrize("answers", [lambda library: [], read(20e-6)])
def test_timer_that_was_not_read_to_the_end_is_no_pass(answers):
    def cut(library):
        bench.is_late = library == "torch"
        return answers(library) if bench.is_late else read(20e-6)(library)

    bench = FakeBench(answers=cut)
    found = timer.CHECK.run(bench)

    assert found.verdict is CheckVerdict.SKIPPED
    assert found.said == ("out of time for the timer of torch",)
    assert "numba_cuda, 20.0 µs, warm" in {figure.name for figure in found.figures}


def test_library_whose_timer_fails_is_told_and_the_other_is_tried():
    def answer(library):
        return GpuExploreError("no events") if library == "torch" else read(20e-6)(library)

    found = timer.CHECK.run(FakeBench(answers=answer))

    assert found.said == ("torch: no events",)
    assert "numba_cuda, 20.0 µs, warm" in {figure.name for figure in found.figures}


def test_cold_call_of_a_cpu_may_wait_for_the_interpreter_and_every_kernel_for_a_launch():
    on_cpu, on_gpu = (FakeBench(device=device, answers=read(45e-6, "cold")) for device in (CPU, GPU))
    launches = FakeBench(answers=reading(lambda known_s: known_s + 6e-6))

    assert timer.CHECK.run(on_cpu).verdict is CheckVerdict.PASS
    assert timer.CHECK.run(on_gpu).verdict is CheckVerdict.FAIL
    assert timer.CHECK.run(launches).verdict is CheckVerdict.PASS


def copied(times):
    def answer(library, flushes):
        return [{"library": library, "flush": name, "median_s": time_s} for name, time_s in times.items()]

    return answer


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ({None: 1e-5, "torch": 2e-5, "numba_cuda": 2.1e-5}, None),
        ({None: 1e-5, "torch": 2e-5, "numba_cuda": 3e-5}, "more than 15.0 % apart"),
        ({None: 3e-5, "torch": 2e-5, "numba_cuda": 2e-5}, "a call with cold caches cannot be faster"),
    ],
)
def test_flushes_empty_the_cache_alike(times, words):
    found = timer.FLUSH.run(FakeBench(answers=copied(times), libraries=("torch",)))

    assert (words in found.said[0]) if words else (found.verdict, found.said) == (CheckVerdict.PASS, ())


@pytest.mark.parametrize("times", [{}, {None: 3e-5}, {None: 1e-5, "torch": 2e-5}])
def test_copy_that_was_not_timed_behind_every_flush_is_no_pass_and_no_failure(times):
    def answer(library, flushes):
        complete = {None: 1e-5, "torch": 2e-5, "numba_cuda": 2e-5}
        return copied(complete if library == "numba_cuda" else times)(library, flushes)

    found = timer.FLUSH.run(FakeBench(answers=answer))

    assert found.verdict is CheckVerdict.SKIPPED
    assert found.said == ("out of time for the copy of torch",)
    assert len(found.figures) == 3 + len(times)


def copying(bytes_per_s, peak=PEAK):
    device = replace(GPU, bandwidth=peak, cache_bytes=2**20)
    return FakeBench(device=device, results=lambda case: ended(case, time_s=2 * 4 * case.shape["n"] / bytes_per_s))


@pytest.mark.parametrize(
    ("bytes_per_s", "words"),
    [
        (0.9e12, ""),
        (1.2e12, "above the memory bandwidth, so the measurement is wrong"),
        (0.3e12, "at least 60.0 % is expected"),
    ],
)
def test_copy_reaches_the_memorys_peak_and_not_more(bytes_per_s, words):
    found = bandwidth.CHECK.run(copying(bytes_per_s))

    assert found.verdict is (CheckVerdict.FAIL if words else CheckVerdict.PASS)
    assert words in " ".join(found.said)


def test_copies_that_other_work_disturbed_are_no_failure():
    bench = copying(0.3e12)
    undisturbed = bench.results
    bench.results = lambda case: replace(undisturbed(case), flags=(Flag("contended", "others used it"),))

    assert bandwidth.CHECK.run(bench).verdict is CheckVerdict.SKIPPED


def test_copy_without_a_known_peak_is_told_and_not_judged():
    found = bandwidth.CHECK.run(copying(1e15, peak=None))

    assert found.verdict is CheckVerdict.PASS
    assert found.said == ("The memory bandwidth is unknown, so the expected rate of a copy is unknown.",)


def test_copy_that_fails_is_a_failure_and_not_out_of_time():
    found = bandwidth.CHECK.run(FakeBench(results=lambda case: ended(case, Status.ERROR)))

    assert found.verdict is CheckVerdict.FAIL
    assert any(sentence.startswith("copy n=") and "ended error: because" in sentence for sentence in found.said)


def test_copies_that_got_no_time_are_out_of_time_and_those_of_no_library_are_said():
    bench = FakeBench(results=lambda case: None)
    found = bandwidth.CHECK.run(bench)
    assert (found.verdict, found.said) == (CheckVerdict.SKIPPED, ("out of time",))

    bench.unusable = {"numba_cuda", "torch", "triton", "cupy", "torch_compile"}
    found = bandwidth.CHECK.run(bench)
    assert (found.verdict, found.said) == (CheckVerdict.SKIPPED, ("no library that can copy runs here",))


def test_share_of_a_copy_has_its_goal_in_percent_and_a_kernel_that_is_wrong_fails():
    def result_of(case):
        operation = operation_named(case.operation)
        status = Status.INCORRECT if case.operation == "softmax" else Status.OK
        return (
            None
            if case.operation == "triad"
            else ended(case, status, time_s=operation.byte_count(case.shape, DTYPES["fp32"]) / 0.9e12)
        )

    bench = copying(0.9e12)
    bench.results, bench.is_quick = result_of, False
    found = bandwidth.CHECK.run(bench)
    told = {figure.name: figure for figure in found.figures}

    assert (told["vector_add, numba-cuda"].value, told["vector_add, numba-cuda"].note) == (
        pytest.approx(1),
        "of the copy; goal 90.0 %",
    )
    assert found.verdict is CheckVerdict.FAIL
    assert "softmax" in found.said[0]
    assert "Out of time for triad." in found.said


def loaded(clocks_mhz, reasons=(), highest_mhz=None):
    def answer(**_):
        busy = [{"clock_hz": mhz and mhz * 1e6, "throttle_reasons": list(reasons)} for mhz in clocks_mhz]
        highest_hz = highest_mhz and highest_mhz * 1e6
        return [{"before": {}, "busy": busy, "samples": 10, "rate_flop_per_s": 1e12, "highest_clock_hz": highest_hz}]

    return FakeBench(answers=answer)


@pytest.mark.parametrize(
    ("bench", "verdict", "words"),
    [
        (loaded([900, 950, 940]), CheckVerdict.PASS, ""),
        (loaded([300, 300]), CheckVerdict.FAIL, "30.0 % of the rated clock, and the driver reports no reason"),
        (loaded([300, 300], ["software power cap"]), CheckVerdict.PASS, ""),
        (loaded([1190]), CheckVerdict.PASS, ""),
        (loaded([1250]), CheckVerdict.FAIL, "125 % of the rated clock: no board boosts that far"),
        (loaded([1250], highest_mhz=1300), CheckVerdict.PASS, ""),
        (loaded([1190], highest_mhz=1100), CheckVerdict.FAIL, "above 1.10 GHz, the driver's limit"),
        (loaded([None, None]), CheckVerdict.SKIPPED, "the driver does not report the clock"),
    ],
)
def test_clock_held_under_load_is_near_the_rated_one_or_there_is_a_reason(bench, verdict, words):
    found = ladder.CLOCK.run(bench)

    assert found.verdict is verdict
    assert words in " ".join(found.said)


def test_looks_without_a_clock_are_not_counted():
    told = {figure.name: figure for figure in ladder.CLOCK.run(loaded([900, None, 950, None])).figures}

    assert told["held clock"].note == "median of 2 looks"
