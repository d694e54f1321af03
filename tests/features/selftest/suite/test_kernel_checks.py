"""What checks of kernels make of their results: each has some that pass, and some that fail with a sentence."""

from types import SimpleNamespace

import pytest

from gpuexplore.core.model import Status
from gpuexplore.features.selftest.suite.breaking import OUT_OF_BOUNDS, out_of_memory_of
from gpuexplore.features.selftest.suite.checks import CHECKS, bandwidth, correctness, ladder, recording, survival, timer
from gpuexplore.features.selftest.suite.contract import CheckVerdict
from tests.features.selftest.suite.fake_bench import FakeBench, ended
from tests.measure.fakes import GPU, case


def test_goals_of_the_ladder_are_told_and_not_required():
    def result_of(case):
        return ended(case, time_s=1e-3 if case.implementation == "torch" else 2e-3)

    found = ladder.CHECK.run(FakeBench(results=result_of))
    told = {figure.name: figure for figure in found.figures}

    assert found.verdict is CheckVerdict.PASS
    assert told["numba-cuda-vector, fp32"].value == 0.5
    assert told["best of ours, fp32"].note == "goal 85.0 % not reached"


def test_rung_that_is_wrong_fails_the_ladder():
    def result_of(case):
        return ended(case, Status.INCORRECT if case.implementation == "numba-cuda" else Status.OK)

    found = ladder.CHECK.run(FakeBench(results=result_of))

    assert found.verdict is CheckVerdict.FAIL
    assert "numba-cuda in fp32 ended incorrect: because" in found.said


def test_rungs_that_got_no_time_are_no_pass():
    found = ladder.CHECK.run(FakeBench(results=lambda case: ended(case) if case.dtype == "fp32" else None))

    assert found.verdict is CheckVerdict.SKIPPED
    assert found.said[0].startswith("out of time for ")
    assert found.said[0].endswith(" in bf16, fp16")
    assert "torch, fp32" in {figure.name for figure in found.figures}


def test_rungs_have_rates_where_the_vendors_library_does_not_run_and_none_where_theirs_does_not():
    bench = FakeBench(results=ended)
    bench.unusable = {"torch"}
    found = ladder.CHECK.run(bench)

    assert {figure.name: figure for figure in found.figures}["numba-cuda-vector, fp32"].unit == "FLOP/s"
    assert found.verdict is CheckVerdict.PASS
    assert "torch does not run here: rates have no reference." in found.said
    bench.unusable = {"numba_cuda"}
    found = ladder.CHECK.run(bench)
    assert (found.verdict, found.said[0]) == (CheckVerdict.SKIPPED, "no library that our kernels need runs here")


def broken(outcomes):
    return FakeBench(is_quick=False, results=lambda case: ended(case, outcomes.get(case.implementation, Status.OK)))


ALONE = {
    OUT_OF_BOUNDS: Status.ERROR,
    out_of_memory_of("numba_cuda"): Status.OUT_OF_MEMORY,
    out_of_memory_of("torch"): Status.OUT_OF_MEMORY,
}


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        (ALONE, ""),
        (ALONE | {"torch": Status.ERROR}, f"torch beside {OUT_OF_BOUNDS} ended error: because"),
        (ALONE | {OUT_OF_BOUNDS: Status.OK}, f"{OUT_OF_BOUNDS} should end error, but ended ok"),
        (ALONE | {out_of_memory_of("torch"): Status.ERROR}, "should end out_of_memory, but ended error"),
    ],
)
def test_broken_case_that_ends_alone_is_survived_and_one_that_takes_others_along_is_told(outcomes, words):
    found = survival.CHECK.run(broken(outcomes))

    assert found.verdict is (CheckVerdict.FAIL if words else CheckVerdict.PASS)
    assert words in " ".join(found.said)


def test_what_was_found_before_the_time_was_over_is_told():
    bench = broken(ALONE | {"torch": Status.TIMEOUT})
    ends = bench.results
    tried = []

    def result_of(case):
        tried.append(case.implementation)
        bench.is_late = len(tried) > 3
        return None if bench.is_late else ends(case)

    bench.results = result_of
    found = survival.CHECK.run(bench)

    assert found.verdict is CheckVerdict.FAIL
    assert found.said[0] == f"torch beside {OUT_OF_BOUNDS} ended timeout: because"
    assert found.said[1].startswith(f"out of time; without all results: {OUT_OF_BOUNDS}, ")


def test_broken_case_of_which_a_part_was_tried_is_no_pass():
    tried = []

    def result_of(case):
        tried.append(case)
        return ended(case, ALONE.get(case.implementation, Status.OK)) if len(tried) <= 7 else None

    found = survival.CHECK.run(FakeBench(is_quick=False, results=result_of))

    assert found.verdict is CheckVerdict.SKIPPED
    assert found.said == (
        f"out of time; without all results: {out_of_memory_of('numba_cuda')}, {out_of_memory_of('torch')}",
    )
    assert {figure.name: figure.value for figure in found.figures}[OUT_OF_BOUNDS] == "error"


def compiled(launched):
    return lambda **_: [{"launched": launched, "shown": 64, "toolkit": "13.0", "recorded": 60}]


@pytest.mark.parametrize("launched", [66, None])
def test_kernel_launched_has_the_registers_that_are_shown(launched):
    equal, other = (correctness.REGISTERS.run(FakeBench(answers=compiled(count))) for count in (64, launched))

    assert (equal.verdict, other.verdict) == (CheckVerdict.PASS, CheckVerdict.FAIL)
    assert f"the kernel launched has {launched} registers, the one shown 64" in other.said[0]


def test_correctness_names_what_is_wrong_and_counts_what_is_too_slow():
    def result_of(case):
        wrong, slow = (case.operation, case.dtype) == ("copy", "fp32"), case.operation == "conv2d"
        return ended(case, Status.INCORRECT if wrong else Status.SKIPPED if slow else Status.OK)

    found = correctness.CHECK.run(FakeBench(results=result_of, is_quick=False))
    told = {figure.name: figure.value for figure in found.figures}

    assert found.verdict is CheckVerdict.FAIL
    assert any(sentence.startswith("copy n=257 fp32 numba-cuda ended incorrect") for sentence in found.said)
    assert told["too slow to try"] > 0
    assert told["not right"] >= 3, "each awkward length"


def test_correctness_of_a_part_is_no_pass():
    found = correctness.CHECK.run(FakeBench(results=lambda case: ended(case) if case.operation == "copy" else None))

    assert found.verdict is CheckVerdict.SKIPPED
    assert "none wrong" in found.said[0]


@pytest.mark.parametrize("unusable", [{"torch"}, {"numba_cuda", "torch"}])
def test_correctness_without_a_library_that_is_installed_is_no_pass(unusable):
    bench = FakeBench(results=ended)
    bench.unusable = unusable
    found = correctness.CHECK.run(bench)
    told = {figure.name: figure.value for figure in found.figures}

    assert found.verdict is CheckVerdict.SKIPPED
    assert f"libraries that do not run here were not tried: {', '.join(sorted(unusable))}" in found.said[0]
    assert (told["right"] == 0) == ("numba_cuda" in unusable)


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """Return how to run the check on a recording whose cases ended so, with so many left."""
    (tmp_path / recording.FILE).touch()

    def run(*statuses, missing=0):
        results = tuple(ended(case("torch", device="cuda:0"), status) for status in statuses)
        file = SimpleNamespace(
            results=results, missing=(None,) * missing, provenance=SimpleNamespace(command="gpuexplore record copy")
        )
        monkeypatch.setattr(recording, "validate", lambda path: file)
        monkeypatch.setattr(recording, "git_commit", lambda: "0" * 12)
        monkeypatch.setattr(recording, "_recorded", lambda bench, names: ("", True))
        return recording.CHECK.run(SimpleNamespace(device=GPU, folder=tmp_path))

    return run


@pytest.mark.parametrize("statuses", [(), (Status.UNSUPPORTED, Status.TIMEOUT)])
def test_recording_without_a_measurement_is_no_pass(recorded, statuses):
    found = recorded(*statuses)

    assert found.verdict is CheckVerdict.FAIL
    assert f"none of {len(statuses)} cases ended ok" in found.said[0]
    assert recorded(*statuses, missing=3).verdict is CheckVerdict.SKIPPED
    assert recorded(*statuses, Status.OK).verdict is CheckVerdict.PASS


def test_recording_that_had_no_time_to_begin_is_out_of_time(monkeypatch, tmp_path):
    monkeypatch.setattr(recording, "git_commit", lambda: "0" * 12)
    monkeypatch.setattr(recording, "_recorded", lambda bench, names: ("waiting", is_ended))
    bench = SimpleNamespace(device=GPU, folder=tmp_path, no_answer=lambda: "out of time")
    is_ended = False
    found = recording.CHECK.run(bench)
    assert (found.verdict, found.said) == (CheckVerdict.SKIPPED, ("out of time",))

    is_ended = True
    assert recording.CHECK.run(bench).said == ("no recording was written: waiting",)


def test_every_check_of_a_gpu_is_tried_by_name():
    """Whoever adds a check gives it figures that pass and figures that fail, here or on the stand-in."""
    tried = {module.CHECK for module in (bandwidth, correctness, ladder, recording, survival, timer)}
    tried |= {ladder.CLOCK, timer.FLUSH, correctness.REGISTERS}
    on_the_stand_in = {"environment"}

    assert {check.name for check in CHECKS} == {check.name for check in tried} | on_the_stand_in
