from dataclasses import replace

import pytest

from gpuexplore.analysis.run.analyze import _machine_notes
from gpuexplore.core.model import Flag, Origin
from tests.analysis.made import analyzed, failed, ok


def drifted(longer, **about):
    return ok(flags=[Flag("drifted", f"in {longer:.0%} of the rounds", longer), Flag("warm", "x")], **about)


def spreading(between, ratios, **about):
    found = ok(**about)
    return replace(found, measurement=replace(found.measurement, between_processes=between, between_ratios=ratios))


SHARED = [drifted(0.2, size=size, implementation=name) for size in (10, 20) for name in ("numpy", "torch")]


def test_a_flag_of_most_results_is_said_once_of_the_machine():
    analysis = analyzed(*SHARED)
    (note,) = analysis.machines

    assert note.sentence == "This machine is shared: times vary by about 20.0 % from run to run, ratios by 4.7 %."
    assert note.details == ("4 of 4 measurements ran on cores that were slower for a while, e.g. in 20% of the rounds",)
    assert [result.marks for result in analysis.results] == [("warm",)] * 4
    assert not [
        diagnosis for result in analysis.results for diagnosis in result.diagnoses if diagnosis.kind == "drifted"
    ]
    assert [flag.name for flag in analysis.results[0].result.flags] == ["drifted", "warm"]


def test_a_flag_stands_on_a_result_where_it_is_worse_than_the_rest():
    found = analyzed(*SHARED, drifted(0.5, dtype="bf16"), ok(dtype="fp64", flags=[Flag("noisy", "y", 0.2)])).results

    assert [result.marks for result in found[-2:]] == [("drifted", "warm"), ("noisy",)]
    assert "drifted" in [diagnosis.kind for diagnosis in found[-2].diagnoses]


@pytest.mark.parametrize("results", [(), (failed(),), (ok(),), (drifted(0.2), drifted(0.2, size=10))])
def test_a_few_results_tell_nothing_usual(results):
    assert all(not note.usual for note in _machine_notes(results))


@pytest.mark.parametrize(
    ("between", "ratios", "sentence"),
    [
        (0.1, 0.02, "On this machine, times vary by about 10.5 % from run to run, ratios by 2.9 %."),
        (0.01, 0.001, None),
    ],
)
def test_what_processes_differ_by_is_told_without_any_flag(between, ratios, sentence):
    results = [spreading(between, ratios, implementation=name) for name in ("numpy", "torch")]

    assert [note.sentence for note in _machine_notes(results)] == ([sentence] if sentence else [])


def test_devices_of_one_run_are_told_apart_and_a_recording_is_not_this_machine():
    gpu = [replace(result, case=replace(result.case, device="cuda:0")) for result in SHARED]
    notes = _machine_notes([*SHARED, *gpu])

    assert [note.sentence.partition(":")[0] for note in notes] == ["Device cpu is shared", "Device cuda"]
    assert _machine_notes(SHARED, Origin.RECORDED)[0].sentence.startswith("The machine of this recording is shared")


def test_others_that_cannot_be_seen_are_no_reason_for_doubt():
    flags = [Flag("contention_unknown", "not checked")]
    (note,) = _machine_notes([ok(size=size, flags=flags) for size in (10, 20, 30)])

    assert note.sentence == "It is unknown whether other work used this machine at the same time."
    assert "is not visible on this machine" in note.details[0]
