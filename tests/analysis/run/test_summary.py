import pytest

from gpuexplore.analysis.run.summary import summarize
from gpuexplore.model import Contrast, Flag, Status
from tests.analysis.made import failed, ok, with_contrasts

EMULATED = Flag("emulated", "the CPU has no bf16 arithmetic.")


def details(*results, **asked):
    return " ".join(summarize(results, **asked).details)


def test_headline_names_the_fastest_at_the_largest_size_with_time_rate_and_peak():
    results = [ok(4e-5, implementation="numpy"), ok(1e-5), ok(1e-9, size=10)]
    assert summarize(results).headline == (
        "At 100 × 100 × 100, torch in fp32 is the fastest: 10.0 µs, 200 GFLOP/s, 20.0 % of the measured ceiling."
    )


def test_a_single_result_is_not_called_the_fastest():
    assert summarize([ok(1e-5)]).headline.startswith("At 100 × 100 × 100, torch in fp32 takes 10.0 µs")


def test_what_cannot_be_told_apart_is_about_as_fast():
    pair = [ok(1.01e-3, spread=0.1, dtype="bf16"), ok(1e-3, spread=0.1)]
    assert "all 2 are about as fast" in summarize(pair).headline
    rest = ok(1.0, implementation="numpy")
    assert "torch in fp32 and torch in bf16 are about as fast, ahead of the rest" in summarize([*pair, rest]).headline


def test_devices_are_named_where_there_are_several():
    assert "torch in fp32 on cuda:0" in summarize([ok(), ok(1e-4, on="cuda:0")]).headline


def test_speedup_over_the_baseline_has_its_interval():
    found = details(ok(4e-3, implementation="numpy"), ok(1e-3))
    assert "In fp32, torch is 4.00× (95 % interval 4.00× to 4.00×) as fast as numpy." in found


def test_when_the_baseline_wins_the_next_one_is_named():
    assert "The next in fp32, torch, takes 3.00× as long." in details(ok(1e-3, implementation="numpy"), ok(3e-3))


def test_the_gain_of_a_narrower_dtype():
    assert "torch is 4.00× (95 % interval 3.9" in details(ok(4e-3), ok(1e-3, dtype="bf16"))


def test_a_dtype_as_baseline_is_said_once():
    found = details(ok(4e-3), ok(1e-3, dtype="bf16"), baseline="fp32")
    assert found.count("in bf16 as in fp32") == 1


def test_an_emulated_dtype_is_slower_and_says_why():
    found = details(ok(1e-3, implementation="numpy"), ok(0.3, implementation="numpy", dtype="bf16", flags=[EMULATED]))
    assert "numpy takes 300× as long in bf16 as in fp32: the CPU has no bf16 arithmetic." in found


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (ok(5e-4, size=600), "is compute-bound, and close to that limit"),
        (ok(5e-4 * 1.5, size=600, on="cuda:0"), "is compute-bound, and has room below that limit"),
        (ok(5e-3, size=600), "torch in fp32 reaches only 8.6 % of the measured ceiling"),
        (ok(1e-4, size=600), "is far above the measured ceiling, so the measurement is wrong"),
        (ok(4e-4, size=600), "reached 108 % of the measured ceiling: a ceiling is the best that was measured before"),
        (ok(1.2e-7, size=30), "is memory-bound, and close to that limit: 90.0 % of the memory bandwidth"),
        (ok(1e-7, size=30), "reached 108 % of the measured memory bandwidth: caches delivered part of the bytes"),
        (ok(1e-6, size=30, spec={"cache_bytes": 10**6}), "is fed by caches: its 10.5 KiB stay"),
        (ok(flags=[Flag("launch_bound", "5 µs")]), "is launch-bound"),
        (ok(dtype="fp64"), "No peak is known for torch in fp64 here"),
    ],
)
def test_the_bound_of_the_fastest(result, said):
    assert said in details(result)


def test_other_conditions_of_the_fastest_are_told():
    result = with_contrasts(ok(1e-5), Contrast("warm", (4e-6,)), Contrast("graph", (2e-6,)))

    assert "4.00 µs from warm caches, and 2.00 µs replayed from a graph, without launches." in str(summarize([result]))
    assert "caches" not in str(summarize([with_contrasts(ok(1e-5), Contrast("graph", reason="no graphs"))]))


def test_missing_cases_are_counted_with_their_reason():
    found = details(ok(), failed(dtype="bf16"), failed(Status.INCORRECT, "error 0.5", implementation="numpy"))
    assert "2 of 3 cases have no time (1 skipped, 1 incorrect): for one, too slow." in found
    assert "1 of 2 cases has no time (1 skipped): too slow." in details(ok(), failed(dtype="bf16"))


def test_disturbed_measurements_are_counted():
    noisy = Flag("noisy", "IQR 20 %")
    assert "Read with care: of 1 measurement, 1 noisy." in details(ok(flags=[noisy]))


def test_a_rate_above_the_peak_is_disturbed_although_nobody_flagged_it():
    assert "Read with care: of 1 measurement, 1 over peak." in details(ok(4e-4, size=600))


def test_nothing_is_said_twice():
    slow = ok(0.3, implementation="numpy", dtype="bf16", flags=[EMULATED])
    fast = ok(1e-3, implementation="numpy", flags=[Flag("noisy", "IQR 20 %")])
    found = summarize([fast, slow]).details
    assert len(set(found)) == len(found)


def test_while_running_it_speaks_of_what_is_there():
    assert summarize([ok()], running=True).headline.startswith("So far: at 100")
    assert summarize([], running=True).headline == "Nothing is measured yet."


def test_without_a_measurement_it_says_so():
    found = summarize([failed(), failed(dtype="bf16")])
    assert str(found) == "No case could be measured. 2 of 2 cases have no time (2 skipped): too slow."


def test_incorrect_results_are_never_ranked():
    assert "numpy" not in summarize([ok(), failed(Status.INCORRECT, "wrong", implementation="numpy")]).headline
