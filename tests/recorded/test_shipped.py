"""What ships is real: each file is valid, undisturbed, and tells nothing about whose machine it was."""

import re
from collections import Counter

import pytest

from gpuexplore.analysis.believable import believable
from gpuexplore.model import Status
from gpuexplore.recorded import refusals, validate
from gpuexplore.recorded.shelf import FOLDER

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
    assert any(one.status is Status.OK for one in recording.results)
    assert not {one.status for one in recording.results} & {Status.CRASHED, Status.ERROR, Status.INCORRECT}


@EACH
def test_every_time_is_one_that_hardware_can_reach_of_an_answer_that_is_right(path):
    measured = [one for one in validate(path).results if one.measurement]

    assert all(one.accuracy and one.accuracy.within for one in measured)
    assert all(believable(one) for one in measured)


@EACH
def test_others_disturbed_few_results(path):
    measured = [one for one in validate(path).results if one.measurement]
    flags = Counter(flag.name for one in measured for flag in one.flags)

    assert flags["contended"] + flags["throttled"] <= MOST_CONTENDED * len(measured)


@EACH
def test_file_is_small_and_names_no_path_of_a_machine(path):
    text = path.read_text(encoding="utf8")

    assert len(text) < LARGEST_BYTES
    assert re.findall(r"(?<![\w.:/<~-])/(?:home|root|tmp|work|usr|var|opt|mnt|Users)/[\w./-]*", text) == []
