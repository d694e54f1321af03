"""Verdicts on claims follow from the numbers: change one, and the verdict changes."""

from dataclasses import replace

import pytest

from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.features.fact_check.analysis import Claim, ClaimFigure, Interval, claims, claims_of, interval_of
from gpuexplore.features.fact_check.analysis.judge import FINDINGS, QUANTITIES, judge
from gpuexplore.features.fact_check.analysis.measured import CARDS

EXPECTED = {
    "A1": "contradicts itself",
    "A2": "not a measurement",
    "A4": "contradicts itself",
    "B1": "contradicts itself",
    "B3": "not a measurement",
    "B4": "contradicts itself",
    "B5": "impossible",
    "E5": "confirmed here",
    "E6": "confirmed here",
    "E7": "contradicts itself",
}


def named(name):
    return next(claim for claim in claims() if claim.id == name)


def verdict(name, **changes):
    return judge(replace(named(name), **changes)).verdict


def with_figure(name, quantity, **changes):
    """Return the verdict with other numbers in one figure of a claim."""
    claim = named(name)
    figures = tuple(replace(one, **changes) if one.quantity == quantity else one for one in claim.figures)
    assert figures != claim.figures
    return judge(replace(claim, figures=figures)).verdict


@pytest.mark.parametrize(("name", "expected"), EXPECTED.items())
def test_verdict(name, expected):
    assert verdict(name) == expected


def test_ids_are_unique_over_all_notebooks_and_every_quantity_is_that_of_a_claim():
    names = [claim.id for claim in claims()]

    assert len(names) == len(set(names)) >= 25
    assert {name[0] for name in names} == set("ABCDE")
    assert {claim.card for claim in claims() if claim.card} <= CARDS.keys()

    used = {figure.quantity for claim in claims() for figure in claim.figures}

    assert QUANTITIES.keys() <= used


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("B5", {"time_s": "400e-6", "figures": ()}, "not a measurement"),
        ("B5", {"time_s": "400e-6", "figures": (), "waited": True}, "possible"),  # the memory allows it
        ("E6", {"time_s": "0.900", "figures": ()}, "impossible"),  # below what arithmetic takes
        ("E6", {"time_s": "1.200", "figures": ()}, "possible"),
        ("A2", {"time_s": "1e-9", "figures": ()}, "not a measurement"),  # of no named card
        ("A2", {"card": "Tesla T4"}, "impossible"),
    ],
)
def test_another_time_or_card_changes_the_verdict(name, changes, expected):
    assert verdict(name, **changes) == expected


@pytest.mark.parametrize(
    ("name", "quantity", "figure", "expected"),
    [
        ("A1", "allclose with default tolerances", {"printed": "True"}, "wrong"),
        ("A2", "speedup", {"printed": "90.1"}, "contradicts itself"),
        ("A4", "is_leaf", {"printed": "False"}, "possible"),
        ("B1", "the number of GPUs", {"printed": "1"}, "possible"),
        ("B2-5466", "blocks", {"printed": "5"}, "wrong"),
        ("B6", "allclose", {"printed": "False"}, "wrong"),
        ("E1", "element", {"printed": "7"}, "wrong"),
        ("E1-strides", "strides", {"printed": "[1, 4]"}, "wrong"),
        ("E2", "transposed_view", {"printed": "[[1, 2, 3], [4, 5, 6]]"}, "wrong"),
        ("E3", "product_of_ones", {"printed": "16"}, "wrong"),
        ("E5", "flop_count", {"printed": "8796093022207"}, "wrong"),
        ("E6", "share_of_promise", {"printed": "0.6347"}, "contradicts itself"),
        ("E6", "rate", {"printed": "5.0776e12"}, "contradicts itself"),
        ("A5", "results return by themselves", {"said": "False"}, "possible"),
        ("B2", "lanes", {"said": "64"}, "confirmed here"),
        ("B6-fp64", "fp64_slowdown", {"said": "16"}, "wrong"),
        ("C4-vgg", "convolutional layers of VGG-16", {"said": "13"}, "possible"),
        ("B4", "speedup", {"said": "about 5"}, "not a measurement"),
        ("E7", "speedup", {"said": "0.447"}, "wrong"),  # what is left: a T4 has no bf16 units
    ],
)
def test_another_printed_number_or_word_changes_the_verdict(name, quantity, figure, expected):
    assert with_figure(name, quantity, **figure) == expected


def test_findings_are_told_the_strongest_first():
    told = list(judge(named("E7")).findings)

    assert told == ["contradicts itself", "wrong"]
    assert told == sorted(told, key=FINDINGS.index)


def test_allclose_says_false_of_what_differs_in_the_order_of_its_sums_alone():
    told = judge(named("A1")).evidence

    assert any("summed in another order, default tolerances: False, not True" in sentence for sentence in told)
    share = float(told[-1].rpartition(" ")[2])
    assert 0.005 < share < 0.05


def test_evidence_of_a_card_that_is_not_named_has_the_limit_of_each_candidate():
    told = " ".join(judge(named("A2")).evidence)

    for limit in ("on a Tesla T4, it computes at most 8.10 TFLOP/s", "15.7 TFLOP/s", "19.5 TFLOP/s"):
        assert limit in told
    assert "not excluded on: L4, H100" in told


def test_a_time_that_one_variant_allows_is_possible():
    judged = judge(replace(named("B4"), time_s="220e-6", figures=(), waited=True))

    assert judged.verdict == "possible"
    assert "impossible on a GeForce GTX 1650 (GDDR5), its memory gives at most 128 GB/s" in judged.evidence[0]
    assert "not excluded on: GeForce GTX 1650 of a laptop (GDDR6)" in judged.evidence[0]


def test_what_fits_into_the_cache_may_be_read_faster_than_memory_gives():
    small = Claim("X", "", card="GTX 1650", operation="vector_add", shape=named("B3").shape, time_s="1e-6", waited=True)

    assert judge(replace(small, byte_count=1_000_000)).verdict == "possible"
    assert judge(replace(small, byte_count=10_000_000)).verdict == "impossible"


def test_claims_without_a_number_or_of_a_quantity_that_cannot_be_computed_are_possible():
    judged = judge(Claim("X", "It is faster."))

    assert (judged.verdict, judged.evidence) == ("possible", ())

    assert judge(Claim("X", "", figures=(ClaimFigure("speedup", printed="3"),))).verdict == "possible"


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("6", 6, 6),
        ("0.0006", 0.00055, 0.00065),
        ("8e12", 7.5e12, 8.5e12),
        ("10.4e-6", 10.35e-6, 10.45e-6),
        ("about 9", 6, 13.5),
        (">1", 1, float("inf")),
        ("<1e-5", float("-inf"), 0.5e-5),
        ("-4.5", -4.55, -4.45),
    ],
)
def test_a_figure_stands_for_all_that_are_rounded_to_it(text, low, high):
    found = interval_of(text)

    assert (found.low, found.high) == pytest.approx((low, high))


def test_words_are_no_figures_and_intervals_that_touch_meet():
    words = ["True", "", "nan", "inf", "1e9999", "9" * 50, "0x10", "[4, 1]", "about much", ">"]

    assert [text for text in words if interval_of(text)] == []
    assert Interval(1, 2).meets(Interval(2, 3))
    assert not Interval(1, 2).meets(Interval(2.001, 3))


def test_a_row_gives_its_claims_and_an_id_one():
    assert [claim.id for claim in claims_of("b2")] == ["B2", "B2-warps", "B2-5466", "B2-100000"]
    assert [claim.id for claim in claims_of("b2-5466")] == ["B2-5466"]


@pytest.mark.parametrize("row", ["Z9", "", "B", "B5 ", "\x00", "x" * 100_000])
def test_a_row_without_claims_is_named_with_those_that_have_some(row):
    with pytest.raises(NotFound, match="there are claims of A1, A2") as refused:
        claims_of(row)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("name", ["time_s", "compared_s", "promise"])
@pytest.mark.parametrize("text", ["0", "-1", "0.0", "text", "nan"])
def test_a_time_that_is_none_is_refused(name, text):
    with pytest.raises(InvalidInput, match=f"{name} of E7 '{text}': expected figures above 0"):
        replace(named("E7"), **{name: text})
