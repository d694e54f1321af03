"""Two runs beside each other."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.compare import Side, _Difference, as_json, as_markdown, compare_runs
from gpuexplore.core.model import Flag, Options, Status
from tests.analysis.made import failed, ok

STEADY = 0.004  # half width from process to process


def known(result, between=STEADY):
    return replace(result, measurement=replace(result.measurement, between_processes=between))


def compared(before, after):
    return compare_runs(Side("Monday", tuple(before), "aaaaaaaaaa", "2026-01-01"), Side("Tuesday", tuple(after), "b"))


def change(before_s, after_s, **about):
    (case,) = compared([known(ok(before_s), **about)], [known(ok(after_s), **about)]).cases
    return case.change


def test_a_ratio_with_its_interval_tells_faster_slower_and_the_same():
    assert change(1e-3, 1.1e-3) == "slower"
    assert change(1e-3, 0.9e-3) == "faster"
    assert change(1e-3, 1.001e-3) == "same"
    assert change(1e-3, 1.1e-3, between=0.2) is None


def test_the_spread_from_run_to_run_is_in_the_interval_whether_a_result_states_it_or_not():
    (stated,) = compared([known(ok(1e-3), 0.1)], [known(ok(1e-3), 0.1)]).cases
    (unstated,) = compared([ok(1e-3)], [ok(1e-3)]).cases

    assert stated.ratio.high > 1.14
    assert stated.change is None
    assert unstated.ratio.high > 1.14  # what is assumed of a shared machine
    assert "processes" in [doubt.name for doubt in unstated.ratio.doubts]


def test_on_one_device_the_larger_spread_counts_for_both_and_on_two_each_has_its_own():
    first, later = known(ok(1e-3), 0.01), known(ok(1e-3), 0.2)
    there = replace(later.environment, device=replace(later.environment.device, name="Another"))
    (one,), (two,) = compared([first], [later]).cases, compared([first], [replace(later, environment=there)]).cases

    assert one.ratio.high > 1.3 > two.ratio.high > 1.2
    assert compared([later], [first]).cases[0].ratio.high == pytest.approx(one.ratio.high)


def test_cases_are_matched_by_device_or_whatever_a_single_one_is_called():
    here, there = known(ok(1e-3, on="cpu")), known(ok(1e-3, on="lab1/cpu"))
    longer = replace(there, case=replace(there.case, options=Options(budget_s=1.0, cache="warm")))

    assert [case.change for case in compared([here], [longer]).cases] == ["same"]
    assert compared([here], [known(ok(1e-3, dtype="bf16"))]).cases == ()

    both = [known(ok(1e-3, on="cpu")), known(ok(1e-4, on="cuda:0"))]
    found = compared(both, [known(ok(1e-4, on="cuda:0"))])

    assert [case.case.device for case in found.cases] == ["cuda:0"]
    assert [case.device for case in found.only_before] == ["cpu"]


def test_what_is_no_longer_measured_is_broken_and_the_reverse_mended():
    good, bad = known(ok(1e-3, size=512)), failed(Status.INCORRECT, "wrong by 3", size=512)

    (broken,), (mended,) = compared([good], [bad]).cases, compared([bad], [good]).cases
    (neither,) = compared([bad], [bad]).cases

    assert (broken.change, broken.statement) == ("broken", "incorrect: wrong by 3")
    assert (mended.change, mended.ratio) == ("mended", None)
    assert neither.change is None


def test_the_headline_counts_and_averages_what_is_conclusive():
    before = [known(ok(1e-3, size=size)) for size in (64, 128, 256)] + [known(ok(1e-3, size=512), 0.3)]
    after = [known(ok(second, size=size)) for size, second in ((64, 2e-3), (128, 1e-3), (256, 0.5e-3))]
    after.append(known(ok(1.01e-3, size=512), 0.3))
    found = compared(before, after)

    assert found.headline == (
        "Of 4 cases: 1 faster, 1 slower, 1 unchanged, 1 inconclusive; geometric mean of the conclusive ones: unchanged."
    )
    assert found.mean.value == pytest.approx(1.0)
    assert found.mean.low < 1 < found.mean.high
    assert compared(before, []).headline == "The two runs have no case in common."

    before = [known(ok(1e-3, size=64)), *(known(ok(1e-3, size=size), 0.3) for size in (128, 256))]
    after = [known(ok(1e-5, size=64)), *(known(ok(1.01e-3, size=size), 0.3) for size in (128, 256))]

    assert compared(before, after).headline == "Of 3 cases: 1 faster, 2 inconclusive."


def test_the_headline_says_that_nothing_changed_and_leaves_out_what_was_not_measured():
    steady, vague = [known(ok(1e-3, size=64))], [known(ok(1e-3, size=128), 0.3)]
    bad = [failed(Status.INCORRECT, "wrong by 3", size=512)]

    assert compared(steady, steady).headline == "No significant change in 1 case."
    both = compared([*steady, *vague, *bad], [*steady, known(ok(1.01e-3, size=128), 0.3), *bad])
    assert both.headline == "No significant change in 2 cases: 1 unchanged, 1 inconclusive."
    assert compared(bad, bad).headline == "No case was measured in either run."


def test_what_differs_is_named():
    before, after = known(ok(1e-3, size=64)), known(ok(1e-3, size=64, flags=[Flag("contended", "", 0.4)]))
    environment = replace(
        after.environment,
        libraries={**after.environment.libraries, "torch": "2.99"},
        threads=1,
        device=replace(after.environment.device, driver="580", name="Another"),
    )
    found = compared([before], [replace(after, environment=environment)]).differences

    names = {each.what for each in found}
    assert {"device", "driver", "torch", "threads", "flag contended"} <= names
    assert _Difference("flag contended", "0 of 1", "1 of 1") in found
    assert compared([before], [before]).differences == ()


def test_another_layout_or_alignment_is_the_same_case_and_named_as_a_difference():
    before = known(ok(1e-3, size=64))
    after = known(replace(ok(2e-3, size=64), case=replace(before.case, options=Options(layout="NT"))))
    found = compared([before], [after])

    assert [each.change for each in found.cases] == ["slower"]
    assert found.differences == (_Difference("layout", "NN", "NT"),)

    before = known(ok(1e-3, size=64))
    after = known(replace(ok(2e-3, size=64), case=replace(before.case, options=Options(align="pages"))))

    assert compared([before], [after]).differences == (_Difference("alignment", "library", "pages"),)


def test_markdown_shows_names_as_they_are_and_keeps_its_table():
    side = Side("a|b <script> [x](y)\n# z", (known(ok(1e-3)),), "`c`")

    text = as_markdown(compare_runs(side, side))

    assert r"a\|b \<script\> \[x\](y) \# z" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 3
    assert {line.replace(r"\|", "").count("|") for line in rows} == {7}


def test_json_is_strict_and_in_seconds():
    found = as_json(compared([known(ok(1e-3))], [known(ok(2e-3))]))

    (case,) = found["cases"]
    assert (case["before_s"], case["after_s"], case["told"]) == (1e-3, 2e-3, "slower")
    assert case["ratio"] == pytest.approx(2.0)
    assert case["ratio_ci95"][0] < 2 < case["ratio_ci95"][1]
    assert found["before"] == {"title": "Monday", "source": "aaaaaaaaaa", "when": "2026-01-01"}


@pytest.mark.parametrize("counts", [(1, 9), (9, 1), (1, 1)])
def test_one_sample_is_in_no_verdict_and_no_mean(counts):
    before, after = (ok(seconds, count=count) for seconds, count in zip((1e-3, 1e-1), counts, strict=True))
    known_before, known_after = ok(1e-3, dtype="bf16"), ok(2e-3, dtype="bf16")
    found = compared([before, known_before], [after, known_after])

    assert (found.cases[0].change, found.cases[0].ratio) == (None, None)
    assert found.cases[0].statement == "a single sample has no interval: measure again"
    assert found.mean.value == pytest.approx(2.0)
