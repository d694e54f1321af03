"""What a lesson says where a measurement is missing: nothing that was not measured, and never a dash for a figure."""

from random import Random

import pytest

from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.features.lessons.lesson.blocks import InstructorBlock, KeepBlock, Prose
from gpuexplore.features.lessons.lesson.evidence import names_of, tasks_of
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome, _says_of, judged_by
from tests.features.lessons.lesson.conftest import is_complete
from tests.features.lessons.lesson.machines import MACHINES, World

LESSONS = [lesson.name for lesson in catalog().lessons.values() if is_complete(lesson)]


def missing_one(step, devices):
    """Yield the figures of a step without any of its measurements, and without each."""
    tasks = tasks_of(step, devices)
    world = World(devices, Random(step.title))
    world.is_failing = False
    every = {}
    while len(every) < sum(task.work is not None for task in tasks):
        every = world.measured(tasks)
    for left_out in (tuple(every), *((place,) for place in every)):
        measured = {place: seen for place, seen in every.items() if place not in left_out}
        yield names_of(step, devices, measured, tasks)


@pytest.mark.long
@pytest.mark.parametrize("name", LESSONS)
def test_every_check_has_words_without_dashes_where_a_measurement_is_missing(name):
    silent = []
    for step in catalog().lesson(name).steps:
        for devices in MACHINES.values():
            for names in missing_one(step, devices):
                texts = [part for _, part in step.parts if isinstance(part, Prose)]
                texts += [part.text for part in step.of(KeepBlock, InstructorBlock)]
                assert not any("—" in text.said(names) for text in texts), step.letter
                for place, found in enumerate(judged_by(step, names, {}).checks):
                    assert "—" not in found.said
                    may_be_silent = found.outcome is GuessOutcome.NOT_MEASURED or not _says_of(step, found.check)
                    if not found.said and not may_be_silent:
                        silent.append(f"{name}/{step.letter}, check {place + 1}")

    assert sorted(set(silent)) == []
