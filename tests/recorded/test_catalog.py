"""Dropping a file in is all it takes: its runs, its results and its name are found."""

import pytest

from gpuexplore import recorded
from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.core.model import RunState
from tests.recorded import made


@pytest.fixture
def two(folder):
    """A recording of two operations on a GPU, and one of a CPU that holds one of them."""
    made.write(folder / "gpu.jsonl", made.lines(made.experiment(), made.experiment("triad")))
    cpu = made.device()
    asked = made.experiment(on=("cpu",), implementations=("numpy", "torch"))
    made.write(folder / "cpu.jsonl", made.lines(asked, told=made.provenance(cpu)))


def test_without_files_there_is_nothing(folder):
    assert recorded.recordings() == recorded.recorded_results() == recorded.refusals() == ()


@pytest.mark.usefixtures("two")
def test_each_file_is_a_recording_by_its_name():
    assert [recording.name for recording in recorded.recordings()] == ["cpu", "gpu"]


@pytest.mark.usefixtures("two")
def test_recordings_of_an_operation_are_those_that_measured_it():
    assert [recording.name for recording in recorded.recordings_of("matmul")] == ["cpu", "gpu"]
    assert [recording.name for recording in recorded.recordings_of("triad")] == ["gpu"]
    assert recorded.recordings_of("softmax") == ()


@pytest.mark.usefixtures("two")
def test_every_result_leads_to_its_run():
    pairs = recorded.recorded_results()

    assert len(pairs) == 24
    for recording, result in pairs:
        run = recorded.recorded_run(recorded.run_id(recording, result))
        assert result in run.results
        assert recorded.recording_of_run(run.id) is recording


@pytest.mark.usefixtures("two")
def test_a_recorded_run_is_done_and_belongs_to_whoever_measured_it():
    run = recorded.recorded_run("recorded-gpu-triad")

    assert (run.state, run.owner, run.experiment) == (RunState.DONE, "a tester", made.experiment("triad"))
    assert [result.case for result in run.results] == list(run.experiment.cases())
    assert not run.active


def test_results_stand_in_the_order_of_the_cases_however_they_came(folder):
    first, *others = made.lines()
    made.write(folder / "gpu.jsonl", [first, *reversed(others)])

    run = recorded.recorded_run("recorded-gpu-matmul")
    assert [result.case for result in run.results] == list(run.experiment.cases())


def test_an_interrupted_recording_keeps_what_it_has_and_says_so(folder):
    made.write(folder / "gpu.jsonl", made.lines()[:4])

    run = recorded.recorded_run("recorded-gpu-matmul")
    assert (run.state, run.progress.done, run.progress.total) == (RunState.CANCELLED, 3, 8)
    assert run.reason == "the recording was interrupted"


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("run_id", ["recorded-gpu", "recorded-gpu-softmax", "gpu-matmul", ""])
def test_an_unknown_run_is_not_found(run_id):
    with pytest.raises(NotFound, match="no recorded run"):
        recorded.recorded_run(run_id)
    assert recorded.recording_of_run(run_id) is None


@pytest.mark.usefixtures("two")
def test_a_recording_is_found_by_name_or_refused_with_those_there_are():
    assert recorded.recording_named("gpu", "triad").name == "gpu"
    with pytest.raises(InvalidInput, match="recording 'h100': expected those of matmul: cpu, gpu"):
        recorded.recording_named("h100", "matmul")
    with pytest.raises(InvalidInput, match="recording 'cpu': expected those of softmax: none"):
        recorded.recording_named("cpu", "softmax")


def test_a_bad_file_is_not_shown_and_the_reason_is_kept(folder):
    made.write(folder / "good.jsonl")
    made.write(folder / "bad.jsonl", made.lines()[1:])

    assert [recording.name for recording in recorded.recordings()] == ["good"]
    assert recorded.refusals() == ("bad.jsonl, line 1: schema_version 'None': expected 1",)


def test_a_recording_is_named_by_its_devices_and_day(folder):
    made.write(folder / "gpu.jsonl")

    assert recorded.recordings()[0].title == "a made-up GPU, 2026-01-02"
