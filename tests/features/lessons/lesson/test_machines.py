"""On made-up machines each check of each lesson has one outcome, and all that may be said is said somewhere."""

from random import Random

import pytest

from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.features.lessons.lesson.blocks import CheckBlock
from gpuexplore.features.lessons.lesson.evidence import names_of, tasks_of
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome, _says_of, judged_by
from tests.features.lessons.lesson.conftest import is_complete
from tests.features.lessons.lesson.machines import MACHINES, World, guesses
from tests.unchanged import PACKAGE, heavy

MOST_WORLDS = 300  # of each machine, until everything was said
LEAST_WORLDS = 5
LESSONS = [lesson.name for lesson in catalog().lessons.values() if is_complete(lesson)]


def tried(lesson, step, devices, tasks, random):
    """Return the step judged in one world, with guesses that are now right and now wrong."""
    world = World(devices, random)
    names = names_of(step, devices, world.measured(tasks), tasks)
    own = world.own_rows(lesson, step)
    unguessed = judged_by(step, names, {}, own)
    return judged_by(step, names, guesses(step, unguessed, random), own)


def unsaid_of(lesson, step, random):
    """Return what was never said after the checks of a step, in as many worlds as it took."""
    unsaid = {id(say): f"{step.letter}: {say.when}" for check in step.of(CheckBlock) for say in _says_of(step, check)}
    machines = [(devices, tasks_of(step, devices)) for devices in MACHINES.values()]
    for world in range(MOST_WORLDS):
        for devices, tasks in machines:
            for found in tried(lesson, step, devices, tasks, random).checks:
                assert found.outcome in GuessOutcome
                silent = found.say is None and bool(_says_of(step, found.check))
                assert not silent or found.outcome is GuessOutcome.NOT_MEASURED, f"{step.letter}: {found}"
                unsaid.pop(id(found.say), None)
        if not unsaid and world >= LEAST_WORLDS:
            break
    return list(unsaid.values())


@pytest.mark.long
@heavy(f"{PACKAGE}.*")
@pytest.mark.parametrize("name", LESSONS)
def test_each_check_has_one_outcome_and_every_say_is_reached(name):
    lesson, random = catalog().lesson(name), Random(name)

    assert [f"{name}/{unsaid}" for step in lesson.steps for unsaid in unsaid_of(lesson, step, random)] == []
