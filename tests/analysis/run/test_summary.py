from dataclasses import replace

import pytest

from gpuexplore.core.model import Contrast, Flag, Measurement, Peak, Phase, Shape, Status
from tests.analysis.made import analyzed, custom, failed, ok, with_contrasts, with_phases

EMULATED = Flag("emulated", "the CPU has no bf16 arithmetic.")
NOISY = Flag("noisy", "IQR 20 %")
OTHERS = Flag("contended", "2 other processes")
HOT = Flag("throttled", "60 %")


def summary(*results, **asked):
    return analyzed(*results, **asked).summary


def details(*results, **asked):
    return " ".join(summary(*results, **asked).details)


def sampled(*samples_s, **about):
    """Return a result with these samples."""
    return replace(ok(**about), measurement=Measurement(samples_s, 1.0))


NUMPY = {"implementation": "numpy"}


@pytest.mark.parametrize(
    ("results", "said"),
    [
        (
            [ok(4e-5, **NUMPY), ok(1e-5), ok(1e-9, size=10)],
            "At 100 × 100 × 100, torch in fp32 is the fastest: 10.0 µs, 200 GFLOP/s, 20.0 % of the measured peak.",
        ),
        ([ok(1e-3, spread=0.1, dtype="bf16"), ok(1.15e-3, spread=0.1)], "torch in bf16 is very likely the fastest:"),
        ([ok(1e-5)], "At 100 × 100 × 100, torch in fp32 takes 10.0 µs"),
        ([ok(), ok(1e-4, on="cuda:0")], "torch in fp32 on cuda:0"),
    ],
)
def test_headline_names_the_fastest_at_the_largest_size_with_time_rate_and_peak(results, said):
    assert said in summary(*results).headline


def test_what_cannot_be_separated_is_said_with_its_factor_and_many_are_counted():
    pair = [ok(1.01e-3, spread=0.1, dtype="bf16"), ok(1e-3, spread=0.1)]
    said = "torch in fp32 and torch in bf16 cannot be separated statistically (within 10.0 %)"
    assert said in summary(*pair).headline
    assert said in summary(*pair, ok(1.0, implementation="numpy")).headline

    several = [ok(1e-3, spread=0.1, dtype=dtype) for dtype in ("fp32", "bf16", "fp64")]
    assert "all 3 results cannot be separated statistically (within 10.0 %): 1.00 ms" in summary(*several).headline
    assert "all 3" not in summary(*several, ok(1.0, implementation="numpy")).headline


def test_touching_intervals_of_medians_far_apart_are_not_called_a_tie():
    pair = [ok(83.2e-3, spread=0.6), ok(49.8e-3, spread=0.6, dtype="bf16")]
    assert "cannot be separated" not in summary(*pair).headline
    assert (
        "Not significantly slower than torch in bf16: torch in fp32 (0.881× to 3.17× as long); "
        "more samples would decide it: use a larger budget."
    ) in details(*pair)


def test_results_73_times_apart_are_no_tie_though_their_samples_overlap_and_not_said_to_take_longer():
    slow = sampled(73e-3, 74e-3, 2e-3)
    fast = sampled(1e-3, 1e-3, 0.1, implementation="numpy")
    assert "cannot be separated" not in summary(slow, fast).headline
    assert "Not significantly slower than numpy in fp32: torch in fp32 (" in details(slow, fast)
    assert "The next in fp32" not in details(slow, fast)


def test_ties_and_what_is_surely_slower_are_not_said_to_vary_too_much():
    tie = [ok(1e-3, spread=0.1), ok(1.01e-3, spread=0.1, dtype="bf16")]
    assert "vary too much" not in details(*tie, ok(1.0, implementation="numpy"))


def test_speedup_over_the_baseline_has_its_interval():
    found = details(ok(4e-3, implementation="numpy"), ok(1e-3))
    assert "In fp32, torch is 4.00× (95 % interval 4.00× to 4.00×, within this run) as fast as numpy." in found


def test_a_gain_that_is_not_sure_is_said_with_its_interval():
    torch = sampled(*(2e-3, 1e-3) * 3, 1e-3)
    numpy = sampled(*(1e-3, 2e-3) * 3, 1e-3, implementation="numpy")
    said = (
        "In fp32, torch cannot be separated from numpy: 1.00× (95 % interval 0.500× to 2.00×, within this run) as fast."
    )
    assert said in details(torch, numpy)


def test_a_gain_whose_interval_leaves_its_order_of_magnitude_open_says_what_would_determine_it():
    numpy = sampled(0.2, 1.0, implementation="numpy")
    torch = sampled(1e-3, 1e-3)
    found = details(numpy, torch)
    assert "about 600× (not determined: 2 rounds leave " in found
    assert "possible; 6 samples of each would determine it: give it a larger budget, or" in found
    assert "95 % interval" not in found


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([ok(1e-3, **NUMPY), ok(3e-3)], "The next in fp32, torch, takes 3.00× as long."),  # the baseline wins
        ([ok(4e-3), ok(1e-3, dtype="bf16")], "torch is 4.00× (95 % interval 3.9"),
        (
            [ok(1e-3, **NUMPY), ok(0.3, dtype="bf16", flags=[EMULATED], **NUMPY)],
            "numpy takes 300× as long in bf16 as in fp32: the CPU has no bf16 arithmetic.",
        ),
        ([ok(flags=[NOISY])], "Of 1 measurement, 1 noisy."),
        ([ok(4e-4, size=600)], "Of 1 measurement, 1 above the peak."),  # although no flag says so
        (
            [ok(size=32, flags=[OTHERS]), ok(size=64, flags=[OTHERS]), ok(flags=[HOT]), ok(dtype="bf16")],
            "Of 4 measurements, 2 overlapped with other work, 1 with a throttled clock.",
        ),
        (
            [ok(), failed(dtype="bf16"), failed(Status.INCORRECT, "error 0.5", **NUMPY)],
            "2 of 3 without a time (1 skipped, 1 incorrect): one of them: too slow.",
        ),
        ([ok(), failed(dtype="bf16")], "1 of 2 skipped: too slow."),
        (
            [ok(size=64), failed(), failed(dtype="bf16"), failed(Status.INCORRECT, "error 0.5", dtype="fp64")],
            "3 of 4 without a time (2 skipped, 1 incorrect): mostly: too slow.",
        ),
    ],
)
def test_gains_disturbances_and_missing_cases_have_their_sentence(results, said):
    assert said in details(*results)


def test_a_dtype_as_baseline_is_said_once():
    found = details(ok(4e-3), ok(1e-3, dtype="bf16"), baseline="fp32")
    assert found.count("in bf16 as in fp32") == 1


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (ok(5e-4, size=600), "is compute-bound and close to the limit, 86.4 % of the measured peak"),
        (ok(5e-4 * 1.3, size=600, on="cuda:0"), "is compute-bound and reaches 66.5 % of the measured peak"),
        (ok(5e-3, size=600), "torch in fp32 reaches only 8.6 % of the measured peak"),
        (ok(1e-4, size=600), "is far above the measured peak, so the measurement is wrong"),
        (
            ok(4e-4, size=600),
            "reached 108 % of the measured peak: a measured peak is the best that was measured before",
        ),
        (ok(1.2e-7, size=30), "is memory-bound and close to the limit, 90.0 % of the memory bandwidth"),
        (ok(1e-7, size=30), "reached 108 % of the measured memory bandwidth: caches delivered part of the bytes"),
        (ok(1e-6, size=30, spec={"cache_bytes": 10**6}), "is served by caches: its 10.5 KiB stay"),
        (ok(flags=[Flag("launch_bound", "5 µs")]), "is launch-bound"),
        (ok(dtype="fp64"), "No peak is known for torch in fp64 here"),
    ],
)
def test_the_bound_of_the_fastest(result, said):
    assert said in details(result)


def test_other_conditions_of_the_fastest_are_told():
    result = with_contrasts(ok(1e-5), Contrast("warm", (4e-6,)), Contrast("graph", (2e-6,)))

    assert "4.00 µs from warm caches, and 2.00 µs replayed from a graph, without launches." in str(summary(result))
    assert "caches" not in str(summary(with_contrasts(ok(1e-5), Contrast("graph", reason="no graphs"))))


def test_a_peak_that_is_only_compared_with_is_no_reason_for_care():
    above = ok(4e-4, size=600, spec={"peaks": (Peak("fp32", "matrix", 2e12, "datasheet", "a test"),)})
    entered = custom(Peak("fp32", "matrix", 1e12, "own", "me"))
    assert "above the peak" in details(above, custom_peaks=entered)
    assert "above the peak" not in details(above, peak_kind="datasheet")


def test_nothing_is_said_twice():
    slow = ok(0.3, implementation="numpy", dtype="bf16", flags=[EMULATED])
    fast = ok(1e-3, implementation="numpy", flags=[NOISY])
    found = summary(fast, slow).details
    assert len(set(found)) == len(found)


def test_without_a_measurement_it_says_so_and_while_running_it_speaks_of_what_is_there():
    assert summary(ok(), running=True).headline.startswith("So far: at 100")
    assert summary(running=True).headline == "Nothing is measured yet."

    found = summary(failed(), failed(dtype="bf16"))
    assert str(found) == "No case could be measured. 2 of 2 skipped: too slow."


def test_incorrect_results_are_never_ranked():
    assert "numpy" not in summary(ok(), failed(Status.INCORRECT, "wrong", implementation="numpy")).headline


def test_phases_of_the_fastest_result_are_told_or_why_they_have_no_times():
    shape = Shape.of(batch=100, inputs=3, hidden=10, outputs=2, layers=2)
    step = ok(operation="mlp_step", shape=shape)
    timed = with_phases(step, Phase("forward", (1e-3,)), Phase("backward", (2e-3,)))
    untimed = with_phases(
        step, *(Phase(name, reason="torch has no calls of its phases") for name in ("forward", "backward"))
    )

    assert "forward 1.00 ms (10.0 MFLOP/s), backward 2.00 ms (7.00 MFLOP/s)" in str(summary(timed))
    assert "are not timed: torch has no calls of its phases." in str(summary(untimed))
    assert "phases" not in str(summary(step))


@pytest.mark.parametrize("lucky", ["torch", "numpy"])
def test_one_sample_wins_nothing_and_says_so(lucky):
    names = ("numpy", "torch", "numba-cpu")
    results = [
        ok(1e-6 if name == lucky else 1e-5, count=1 if name == lucky else 9, implementation=name) for name in names
    ]
    found = analyzed(*results)
    single = next(each for each in found.results if each.case.implementation == lucky)

    assert f"{lucky} in fp32" not in found.summary.headline
    assert f"and is excluded from rankings and comparisons: {lucky} in fp32 at 100 × 100 × 100." in " ".join(
        found.summary.details
    )
    assert (single.speedup, single.ci95_s) == (None, None)
    assert single not in found.at_largest_shape
    if lucky == "numpy":  # the baseline
        assert not any(each.speedup for each in found.results)


def test_a_run_of_single_samples_alone_measured_nothing():
    found = summary(ok(count=1), ok(count=1, dtype="bf16"))

    assert found.headline == "No case was measured more than once."
    assert "torch in fp32 at 100 × 100 × 100, torch in bf16 at 100 × 100 × 100" in found.details[0]
