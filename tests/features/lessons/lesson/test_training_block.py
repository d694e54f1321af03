"""A training in a lesson: what is queued, what a step knows of it, and that expressions are tried beforehand."""

from dataclasses import replace

import pytest

from gpuexplore.core.errors import GpuExploreError, NotFound
from gpuexplore.core.serialization import encode
from gpuexplore.features.lessons.lesson.evidence import names_of, rehearse, tasks_of
from gpuexplore.features.lessons.lesson.expression import evaluate, parse
from gpuexplore.features.lessons.lesson.format import _parse_lesson
from tests.analysis.made import device
from tests.features.lessons.lesson.conftest import module_if_installed, needs

MADE = module_if_installed("training", "tests.features.training.made_training")

pytestmark = needs("training")

CPU = replace(device(), cores=2)
FRONT = '+++\ntitle = "t"\nquestion = "q"\nminutes = 1\n+++\n## Step\n'
TRAIN = '```train\nmodel = "3-10-2"\nbatch = 100\nsteps = 3\nmodes = ["fp32", "fp16"]\nid = "t"\n```\n'
TOGETHER = '```train\nmodel = "784-784-10"\nbatch = 256\nprocesses = 2\n```\n'


def step_of(text):
    return _parse_lesson(FRONT + text, "mine").steps[0]


def known(text, *payloads):
    step = step_of(text)
    return names_of(step, [CPU], dict(enumerate(map(encode, payloads))), tasks_of(step, [CPU]))


def value(text, names):
    return evaluate(parse(text), names)


def test_a_training_is_work_for_the_queue():
    (task,) = tasks_of(step_of(TRAIN), [CPU])

    assert task.work.kind == "train"
    assert dict(task.work.arguments) == {
        "model": "3-10-2",
        "batch": "100",
        "steps": "3",
        "modes": "fp32,fp16",
        "data": "rule",
        "processes": "1",
        "optimizer": "sgd",
        "seed": "0",
    }
    assert task.seconds == task.work.expected_s


def test_more_processes_than_cores_are_not_measured_here():
    (task,) = tasks_of(step_of(TOGETHER), [replace(CPU, cores=1)])

    assert task.work is None
    with pytest.raises(NotFound, match="need a core each: this CPU has 1"):
        value("time()", names_of(step_of(TOGETHER), [replace(CPU, cores=1)], {}, [task]))


def test_what_cannot_be_trained_is_named():
    with pytest.raises(GpuExploreError, match="mode 'fp9'"):
        tasks_of(step_of(TRAIN.replace("fp16", "fp9")), [CPU])


def test_a_step_knows_times_losses_phases_and_shares_of_each_mode():
    names = known(TRAIN, MADE.report(MADE.mode(zero_gradients=((2, 0.1),)), MADE.fp16()))

    assert value("time(source='fp32', of='t')", names).value == 4e-3
    assert value("time(source='fp32')", names).low == pytest.approx(3.6e-3)
    assert value("rate(source='fp32')", names).value == pytest.approx(24_000 / 4e-3)
    assert value("batch(source='fp32') / time(source='fp32')", names).value == pytest.approx(25_000)
    assert value("speedup(source='fp16')", names).value == 2.0
    assert value("loss(source='fp32', name='first')", names).value == 0.7
    assert value("loss(source='fp16', name='last')", names).value == 0.5
    assert value("loss(source='guessing')", names).value == pytest.approx(0.693147)
    assert value("phase(source='fp32', name='backward')", names).value == 1e-3
    assert value("share(source='fp32', name='zero')", names).value == 0.1
    assert value("share(source='fp16', name='zero unscaled')", names).value == 1.0
    assert value("share(source='fp16', name='zero scaled')", names).value == 0.009
    assert value("time(source='fp32')", names).sources == {"measured here"}


@pytest.mark.parametrize(("share", "widens"), [(0.3, True), (0.05, False), (None, False)])
def test_times_beside_other_work_are_wider_and_losses_are_not(share, widens):
    names = known(
        TOGETHER, MADE.report(MADE.mode(), MADE.mode("fp32 × 2"), processes=MADE.processes(), lost_cpu_share=share)
    )

    for text, by in (
        ("time(source='fp32')", 1.5),
        ("phase(source='fp32', name='backward')", 1.5),
        ("share(source='processes', name='efficiency')", 1.1),  # both were taken in turns, so others hit both
    ):
        figure = value(text, names)
        assert (figure.high / figure.low > by) == widens
    assert value("loss(source='fp32', name='first')", names).is_exact
    assert value("error(source='processes')", names).is_exact


def test_a_step_knows_how_far_a_mode_is_from_the_first_and_what_its_scaler_did():
    names = known(TRAIN, MADE.report(MADE.mode(error=1e-7), MADE.fp16(losses=(0.7, 0.66, 0.5))))

    assert value("error(source='fp32', name='gradients')", names).value == 1e-7
    assert value("error(source='fp16', name='losses')", names).value == pytest.approx(0.1)
    assert value("count(source='fp16', name='skipped')", names).value == 1
    assert value("figure(source='fp16', name='first scale')", names).value == 65536
    assert value("figure(source='fp16', name='last scale')", names).value == 32768
    assert value("share(source='fp16', name='zero fp32')", names).value == 0


def test_losses_that_are_not_finite_have_no_difference():
    names = known(TRAIN, MADE.report(MADE.mode(), MADE.fp16(losses=(0.7, None, 0.5))))

    with pytest.raises(NotFound):
        value("error(source='fp16', name='losses')", names)


def test_a_step_knows_what_several_processes_bring():
    names = known(
        TOGETHER, MADE.report(MADE.mode(), MADE.mode("fp32 × 2", ratio=MADE.fp16().ratio), processes=MADE.processes())
    )

    assert value("speedup(source='processes')", names).value == 2.0
    assert value("share(source='processes', name='efficiency')", names).value == 0.8
    assert value("share(source='processes', name='communicating')", names).value == 0.25
    assert value("bytes(source='processes')", names).value == 4 * 623_290
    assert value("error(source='processes')", names).value == 3e-8
    assert value("phase(source='processes', name='all-reduce')", names).value == 1e-3


def test_expressions_on_a_training_are_tried_before_it_is_done():
    guess = '```guess\nid = "g"\nask = "how"\n```\n'
    check = '```check\nguess = "g"\nnear = "{}"\n```\n'
    good = check.format("time(source='fp32') / time(source='fp16')")

    assert rehearse(step_of(guess + TRAIN + good), [CPU], "mine") == 1
    both = check.format("speedup(source='processes')")
    assert rehearse(step_of(guess + TOGETHER + both), [CPU], "mine") == 1
    with pytest.raises(GpuExploreError, match="was not measured"):
        rehearse(step_of(guess + TRAIN + check.format("time(source='bf16')")), [CPU], "mine")
