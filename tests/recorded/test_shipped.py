"""What ships is real: each file is valid, undisturbed, and tells nothing about whose machine it was."""

import re

import pytest

from gpuexplore.analysis.utilization.best_results import is_plausible
from gpuexplore.core.model import DISTURBED, Status
from gpuexplore.recorded import FOLDER, refusals, validate

FILES = sorted(FOLDER.glob("*.jsonl"))
LARGEST_BYTES = 500_000
MOST_CONTENDED = 0.10
EACH = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_no_shipped_file_is_refused():
    assert refusals() == ()
    assert [path.suffix for path in FOLDER.iterdir() if path.name != "README.md"] == [".jsonl"] * len(FILES)


@EACH
def test_every_case_has_its_result_and_most_are_measured(path):
    recording = validate(path)

    assert all(run.progress.done == run.progress.total for run in recording.as_runs())
    assert any(result.status is Status.OK for result in recording.results)
    assert not {result.status for result in recording.results} & {Status.CRASHED, Status.ERROR, Status.INCORRECT}


@EACH
def test_every_time_is_one_that_hardware_can_reach_of_a_right_answer_and_few_are_disturbed(path):
    measured = [result for result in validate(path).results if result.measurement]
    disturbed = [result for result in measured if any(flag.name in DISTURBED for flag in result.flags)]

    assert all(result.accuracy and result.accuracy.within for result in measured)
    assert all(is_plausible(result) for result in measured)
    assert len(disturbed) <= MOST_CONTENDED * len(measured)


@EACH
def test_file_is_small_and_names_no_path_of_a_machine(path):
    text = path.read_text(encoding="utf8")

    assert len(text) < LARGEST_BYTES
    assert re.findall(r"(?<![\w.:/<~-])/(?:home|root|tmp|work|usr|var|opt|mnt|Users)/[\w./-]*", text) == []
