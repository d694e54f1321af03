"""What a step knows: measured here, or in its place recorded, published or predicted, each labelled."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.core.model import Accuracy, Device, Flag
from gpuexplore.core.serialization import encode
from gpuexplore.features.lessons.lesson import blocks, evidence
from gpuexplore.features.lessons.lesson.blocks import LaunchBlock
from gpuexplore.features.lessons.lesson.evidence import NOT_INSTALLED, names_of, rehearse, tasks_of
from gpuexplore.features.lessons.lesson.expression import evaluate, parse
from gpuexplore.features.lessons.lesson.format import _parse_lesson
from gpuexplore.features.lessons.lesson.quantities import facts_of, launch_row
from tests.analysis.made import device, failed, ok
from tests.features.lessons.lesson.conftest import DEVICES, module_if_installed, needs

MISTAKES = module_if_installed("mistakes", "gpuexplore.features.mistakes.catalog")

FRONT = '+++\ntitle = "t"\nquestion = "q"\nminutes = 1\n+++\n## Step\n'
RUN = '```run\noperation = "matmul"\nsize = "100"\nimpl = "numpy,torch"\n```\n'


def known(text, *measured, devices=DEVICES):
    step = _parse_lesson(FRONT + text, "mine").steps[0]
    tasks = tasks_of(step, devices)
    return names_of(step, devices, dict(enumerate(measured)), tasks)


def value(text, names):
    return evaluate(parse(text), names)


def test_a_result_has_its_quantities_with_their_intervals():
    names = known(RUN, [ok(2e-3, implementation="numpy"), ok(1e-3)])

    assert value("time(impl='torch')", names).value == 1e-3
    assert value("rate(impl='torch')", names).value == pytest.approx(2e9)
    assert value("mfu(impl='torch')", names).value == pytest.approx(2e9 / 1e12)
    assert value("speedup(impl='torch')", names).value == pytest.approx(2.0)
    assert value("samples(impl='numpy')", names).value == 9
    assert value("flops(impl='numpy')", names).value == 2e6
    assert value("intensity(impl='numpy')", names).value == pytest.approx(2e6 / 120_000)
    assert value("time(impl='torch')", names).low < 1e-3 < value("time(impl='torch')", names).high
    assert value("time(impl='torch')", names).sources == {"measured here"}


def test_one_sample_is_doubted_and_has_no_precision():
    names = known(RUN, [ok(2e-3, implementation="numpy", count=1), ok(1e-3)])

    assert value("time(impl='numpy')", names).doubts == {"one_sample"}
    assert value("time(impl='numpy') / time(impl='torch')", names).doubts == {"one_sample"}
    with pytest.raises(NotFound, match="precision"):
        value("precision(impl='numpy')", names)


def test_flags_widen_a_time_and_one_that_cannot_be_is_doubted():
    wrong = ok(2e-3, implementation="numpy", flags=[Flag("over_physical_peak", "x")])
    names = known(RUN, [wrong, ok(1e-3, flags=[Flag("noisy", "x")])])
    noisy = names.quantity("time", {"impl": "torch"})

    assert value("time(impl='numpy') / time(impl='torch')", names).doubts == {"over_physical_peak"}
    assert noisy.doubts == frozenset()
    assert (noisy.low, noisy.high) == (pytest.approx(1e-3 / 1.3, rel=0.01), pytest.approx(1.3e-3, rel=0.01))


def test_a_ratio_of_times_that_were_sampled_in_turns_is_as_narrow_as_round_by_round():
    names = known(RUN, [ok(1e-3, implementation="numpy", spread=0.3), ok(1.1e-3, spread=0.3)])
    numpy, torch = value("time(impl='numpy')", names), value("time(impl='torch')", names)
    ratio = value("time(impl='torch') / time(impl='numpy')", names)
    by_rate = value("rate(impl='numpy') / rate(impl='torch')", names)
    scaled = value("2 * time(impl='torch') / time(impl='numpy')", names)

    assert numpy.high > torch.low, "the times alone overlap"
    assert value("time(impl='numpy') < time(impl='torch')", names) is True
    assert (ratio.low, ratio.high) == pytest.approx((1.1, 1.1), rel=0.01)
    assert (by_rate.low, by_rate.high) == pytest.approx((1.1, 1.1), rel=0.01)
    assert (scaled.low, scaled.high) == pytest.approx((2.2, 2.2), rel=0.01)


def test_a_ratio_of_independent_times_adds_their_uncertainties_in_quadrature():
    text = RUN.replace('size = "100"', 'size = "100, 200"')
    times = [ok(1e-3, implementation=name, size=size, spread=0.3) for size in (100, 200) for name in ("numpy", "torch")]
    names = known(text, times)
    small, large = (value(f"time(size={size}, impl='numpy')", names) for size in (100, 200))
    ratio = value("time(size=200, impl='numpy') / time(size=100, impl='numpy')", names)

    assert small.low / large.high < ratio.low < 0.9
    assert 1.1 < ratio.high < large.high / small.low


def test_a_case_that_failed_has_its_arithmetic_and_the_reason():
    names = known(RUN, [failed(implementation="numpy"), ok(1e-3)])

    assert value("flops(impl='numpy')", names).value == 2e6
    with pytest.raises(NotFound, match="too slow"):
        value("time(impl='numpy')", names)


@pytest.mark.parametrize(("size", "source"), [("4000", "predicted"), ("4096", "recorded")])
def test_a_gpu_that_is_not_here_was_recorded_or_is_predicted_and_labelled_so(size, source):
    names = known(f'```run\noperation = "matmul"\nsize = "{size}"\nimpl = "torch"\ndevice = "gpu"\n```\n')
    time = value("time()", names)

    assert time.sources == {source}
    assert time.low < time.value < time.high
    assert value("gpu", names) is False


def test_a_gpu_that_is_here_is_measured_and_facts_are_those_of_it():
    here = (*DEVICES, device(device_id="cuda:0"))
    text = '```run\noperation = "matmul"\nsize = "100"\nimpl = "torch"\ndevice = "gpu"\n```\n'
    names, facts = known(text, [ok(1e-3, on="cuda:0")], devices=here), facts_of((device(), here[-1]))

    assert value("time(device='gpu')", names).sources == {"measured here"}
    assert value("gpu", names) is True
    assert (facts["gpu"], facts["bf16_units"], facts["cores"].value) == (True, False, 1)


def mistake(name, unit, wrong, right, **more):
    """Return what is known of a mistake that was observed."""
    readings = MISTAKES.WayReading(*wrong), MISTAKES.WayReading(right), MISTAKES.Detection(True, "x")
    seen = MISTAKES.MistakeObservation(name, unit, "a product", "measured", *readings, *more.values())
    return known(f'```mistake\nmistake = "{name}"\n```\n', encode(seen))


@needs("mistakes")
def test_a_mistake_has_its_wrong_and_its_right_figure_and_their_ratio_or_words():
    names = mistake("first-call", "time", (1.0, (0.9, 1.1)), 0.1, factor=MISTAKES.Factor(10.0, (9, 11)))
    words = mistake("fp16-overflow", "sum", (None, None, "inf"), 65536.0)

    assert value("time(source='wrong') / time(source='right')", names).value == pytest.approx(10.0)
    assert (value("figure(source='factor')", names).low, value("figure(source='factor')", names).high) == (9, 11)
    assert value("figure(source='wrong') == 'inf'", words) is True


def test_a_launch_is_arithmetic():
    names = known('```launch\nelements = 100000\nthreads = 1024\ncc = "7.5"\nmultiprocessors = 16\n```\n')

    figures = [value(text, names).value for text in ("blocks()", "warps()", "waves()", "last_wave()", "share()")]
    assert figures == [98, 32, 7, 2, 672]


def test_prediction_is_of_the_kind_of_calls_that_its_block_names(monkeypatch):
    asked = []
    predicted = evidence.predictions
    monkeypatch.setattr(
        evidence, "predictions", lambda question, here: asked.append(question) or predicted(question, here)
    )
    block = '```predict\noperation = "matmul"\ngpu = "L4"\nsize = "72"\n```\n'

    for text in (block, block.replace("size", 'calls = "single"\nsize')):
        assert value("time()", known(text)).sources == {"predicted"}
    assert [question.calls for question in asked] == ["queued", "single"]


@needs("fact_check")
def test_a_claim_has_its_verdict():
    assert value("verdict(name='B5')", known('```claim\nrow = "B5"\n```\n')) == "impossible"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RUN.replace("matmul", "cooking"), "operation 'cooking'"),
        (RUN.replace("100", "0"), "size"),
        (RUN.replace("torch", "cublas"), "implementation"),
        (RUN.replace('impl = "numpy,torch"', 'device = "cuda:7"'), "device 'cuda:7': expected cpu, gpu"),
        ("```launch\nelements = 0\nthreads = 1024\n```\n", "elements and threads '0 and 1024'"),
        ("```launch\nelements = 9\nthreads = 4096\n```\n", "4096"),
        ('```launch\nelements = 9\nthreads = 64\ngpu = "abacus"\n```\n', "gpu 'abacus'"),
        ('```predict\noperation = "matmul"\ngpu = "T4"\nsize = "x"\n```\n', "size"),
        (
            '```predict\noperation = "matmul"\ngpu = "T4"\nsize = "8"\ncalls = "fast"\n```\n',
            "calls 'fast': expected graph, queued, single",
        ),
    ],
)
def test_what_cannot_be_measured_is_named(text, message):
    with pytest.raises(InvalidInput, match=message):
        known(text)


def test_an_error_is_not_doubted_for_what_is_wrong_with_the_time():
    accurate = replace(ok(1e-3, flags=[Flag("over_peak", "x")]), accuracy=Accuracy(1e-6, 1e-3))
    names = known(RUN, [ok(2e-3, implementation="numpy"), accurate])

    assert value("time(impl='torch')", names).doubts == {"over_peak"}
    assert value("error(impl='torch')", names).doubts == frozenset()


def test_a_recording_of_a_cpu_does_not_stand_in_for_a_gpu(monkeypatch):
    recorded = [(SimpleNamespace(name="r"), ok(1e-3)), (SimpleNamespace(name="r"), ok(2e-3, on="cuda:0"))]
    monkeypatch.setattr(evidence, "recorded_results", lambda: iter(recorded))
    names = known('```run\noperation = "matmul"\nsize = "100"\nimpl = "torch"\ndevice = "gpu"\n```\n')

    assert (value("time()", names).value, value("time()", names).sources) == (2e-3, {"recorded"})


CPU = Device("cpu", "cpu", "a CPU", cores=4)
T4 = Device("cuda:0", "cuda", "a GPU", cores=40, compute_capability="7.5")
H100 = Device("cuda:0", "cuda", "a GPU", cores=132, compute_capability="9.0")
UNKNOWN = Device("cuda:0", "cuda", "a GPU", cores=60)
LAUNCH = LaunchBlock(elements=100_000, threads=1024, gpu="here")


def figures(*devices):
    found = launch_row(LAUNCH, devices).figures
    return {name: figure.value for name, figure in found.items()}


@pytest.mark.parametrize(
    ("devices", "multiprocessors", "waves", "last_wave"),
    [((CPU,), 4, 25, 2), ((CPU, T4), 40, 3, 18), ((CPU, H100), 132, 1, 98), ((CPU, UNKNOWN), 60, None, None)],
    ids=["a block a core", "blocks that fit a T4", "blocks that fit an H100", "unknown compute capability"],
)
def test_a_launch_has_as_many_waves_as_its_device_takes(devices, multiprocessors, waves, last_wave):
    found = figures(*devices)

    assert (found["multiprocessors"], found.get("waves"), found.get("last_wave")) == (multiprocessors, waves, last_wave)
    assert devices != (CPU,) or "occupancy" not in found
    assert facts_of(devices)["gpus"].value == len(devices) - 1


STEP = """+++
title = "t"
question = "q"
minutes = 1
+++
## Step
```guess
id = "g"
ask = "a"
```
```{kind}
{keys}
```
```check
guess = "g"
near = "figure()"
```
"""
KEYS = {
    "claim": 'row = "B5"',
    "memory": 'model = "vgg-16"\nbatch = 128',
    "mistake": 'mistake = "first-call"',
    "tensor": 'expression = "zeros(20, 30).t()"\nread = true',
    "train": 'model = "3-10-2"\nbatch = 100',
}


@pytest.mark.parametrize("kind", KEYS)
def test_a_block_of_a_feature_that_is_not_installed_is_read_and_has_no_figures(kind, monkeypatch):
    monkeypatch.setattr(blocks, "features", tuple)
    step = _parse_lesson(STEP.format(kind=kind, keys=KEYS[kind]), "mine").steps[0]

    names = names_of(step, DEVICES, {}, tasks_of(step, DEVICES))

    assert {row.missing for row in names.rows} == {NOT_INSTALLED}
    with pytest.raises(NotFound, match=NOT_INSTALLED):
        evaluate(parse("figure()"), names)
    assert rehearse(step, DEVICES, "mine.md") == 1
