"""Blocks that are computed: tensors, with what reading them costs, and the memory of training."""

import pytest

from gpuexplore.activity import of_kind
from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.features.lessons.lesson.blocks import module_of
from gpuexplore.features.lessons.lesson.evidence import names_of, rehearse, tasks_of
from gpuexplore.features.lessons.lesson.expression import evaluate, parse
from gpuexplore.features.lessons.lesson.format import _parse_lesson
from tests.features.lessons.lesson.conftest import DEVICES, needs

FRONT = '+++\ntitle = "t"\nquestion = "q"\nminutes = 1\n+++\n## Step\n'
READ = '```tensor\nexpression = "zeros(20, 30).t()"\nread = true\n```\n'
VGG = '```memory\nmodel = "vgg-16"\nbatch = 128\ngpu = "12GB"\n{}```\n'


def step_of(text):
    return _parse_lesson(FRONT + text, "mine").steps[0]


def known(text, *measured):
    step = step_of(text)
    return names_of(step, DEVICES, dict(enumerate(measured)), tasks_of(step, DEVICES))


def value(text, names):
    found = evaluate(parse(text), names)
    return getattr(found, "value", found)


def tensor(expression):
    return known(f'```tensor\nexpression = "{expression}"\n```\n')


def reading(median_s, *flags):
    return {
        "median_s": median_s,
        "ci95_s": [0.9 * median_s, 1.1 * median_s],
        "bytes_per_s": 2400 / median_s,
        "flags": [{"name": flag, "evidence": "x"} for flag in flags],
    }


def payload():
    readings = {"loop contiguous": reading(1e-3), "loop strided": reading(3e-3, "noisy", "cold")}
    readings |= {"copy contiguous": reading(1e-3), "copy strided": reading(2e-3)}
    ratios = {"loop": {"median": 3.0, "ci95": [2.8, 3.2]}, "copy": {"median": 2.0, "ci95": None}}
    return {"readings": readings, "ratios": ratios}


@needs("tensors")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x = 4x4; x[1, 2]", {"index()": 6, "figure()": 6, "kind()": "view"}),
        ("4x3.t()", {"stride(name='0')": 1, "length(name='0')": 3, "stride(name='1')": 3, "length(name='1')": 4}),
        ("2x3.t().reshape(6)", {"kind()": "copy"}),
        ("2x3.contiguous()", {"kind()": "view"}),
        ("2x3.t().view(2, 3)", {"kind()": "refused"}),
    ],
)
def test_a_tensor_has_its_layout_and_what_torch_makes_of_it(expression, expected):
    names = tensor(expression)

    assert {text: value(text, names) for text in expected} == expected


@needs("tensors")
@pytest.mark.parametrize(
    ("text", "block", "said"),
    [
        ("index()", '```tensor\nexpression = "2x3.t().view(2, 3)"\n```\n', "view"),
        ("time(source='strided', name='loop')", READ, "not measured"),
    ],
)
def test_what_is_refused_or_was_not_read_says_why(text, block, said):
    with pytest.raises(NotFound, match=said):
        value(text, known(block))


@needs("tensors")
def test_a_tensor_is_read_as_the_page_does():
    (task,) = tasks_of(step_of(READ), DEVICES)

    assert task.work == of_kind(
        "strided-read", {"shape": "30,20", "strides": "1,30"}, device=DEVICES[0].id, expected_s=2.0
    )


@needs("tensors")
def test_a_tensor_that_was_read_has_its_times_and_their_ratio_by_round():
    names = known(READ, payload())

    assert value("time(source='strided', name='loop')", names) == 3e-3
    assert value("bandwidth(source='contiguous', name='copy')", names) == pytest.approx(2.4e6)
    factor = names.quantity("figure", {"source": "factor", "name": "loop"})
    assert (factor.low, factor.high) == (pytest.approx(2.73, rel=0.01), pytest.approx(3.28, rel=0.01))  # wider: noisy
    assert names.quantity("figure", {"source": "factor", "name": "copy"}).is_exact


@needs("tensors")
def test_what_a_reading_gives_is_known_before_it_is_measured():
    guess = '```guess\nid = "g"\nask = "a"\n```\n'
    check = "```check\nguess = 'g'\nnear = \"figure(source='factor', name='loop')\"\n```\n"

    assert rehearse(step_of(READ + guess + check), DEVICES, "mine.md") == 1


@needs("model")
def test_memory_has_its_kinds_its_peak_and_the_largest_batch_and_options_change_it():
    names, changed = (
        known(VGG.format("")),
        known(VGG.format('optimizer = "adamw"\noptions = ["reserve=0", "accumulate=2"]\n')),
    )

    assert value("memory(name='peak')", names) == 10_504_591_424
    assert value("memory(name='parameters')", names) == value("memory(name='gradients')", names) == 4 * 138_357_544
    assert value("count()", names) == 138_357_544
    assert value("phase()", names) == "backward"
    assert value("batch()", names) == 119
    assert value("memory(name='usable')", names) == 9_860_000_000
    assert value("memory(name='optimizer')", changed) == 8 * 138_357_544
    assert value("memory(name='usable')", changed) == 12e9


@needs("model")
def test_memory_goes_on_with_the_same_choices():
    (block,) = step_of(VGG.format('options = ["mixed=bf16"]\n')).of(
        *[type(part) for _, part in step_of(VGG.format("")).parts]
    )

    assert module_of(block, "ui").lesson_block_query(block) == {
        "view": "memory",
        "model": "vgg-16",
        "batch": "128",
        "dtype": "fp32",
        "optimizer": "sgd",
        "mixed": "bf16",
        "gpu": "12GB",
    }


@needs("model")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('```tensor\nexpression = "4x4["\n```\n', "expression"),
        ('```tensor\nexpression = "4x4[0, 0]"\nread = true\n```\n', "tensor to read"),
        ('```tensor\nexpression = "2x3.t().view(2, 3)"\nread = true\n```\n', "view"),
        ('```memory\nmodel = "abacus"\nbatch = 1\n```\n', "model 'abacus'"),
        (VGG.format('options = ["batch=3"]\n'), "option of memory 'batch'"),
        (VGG.format("").replace("12GB", "abacus"), "gpu 'abacus'"),
    ],
)
@needs("tensors")
def test_what_cannot_be_computed_is_named(text, message):
    with pytest.raises(InvalidInput, match=message):
        known(text)
