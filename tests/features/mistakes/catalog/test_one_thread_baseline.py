"""A machine whose cores are busy shows nothing of the cores that a baseline left idle."""

import pytest

from gpuexplore.features.mistakes.catalog.contract import Detection, Factor
from gpuexplore.features.mistakes.catalog.work import _unless_others_had_the_cores


@pytest.mark.parametrize(("interval", "found"), [((1.6, 1.9), True), ((0.6, 1.4), True), ((0.02, 0.26), None)])
def test_one_thread_that_was_faster_is_no_mistake_shown(interval, found):
    seen = Detection(True, "threads: 1, physical cores: 2")

    assert _unless_others_had_the_cores(Factor(0.5, interval), seen).found is found
