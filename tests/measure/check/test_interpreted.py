import re

import numpy as np
import pytest

from gpuexplore.core.errors import InvalidInput, TooLarge, TooSlow, Unsupported
from gpuexplore.core.model import Shape
from gpuexplore.measure.check import interpreted as module
from gpuexplore.measure.check.interpreted import interpreted
from tests.measure.made_block import THREADS, adding, block_run, request


def test_right_kernel_is_right_and_its_first_block_is_kept():
    run = block_run()

    assert run.is_right
    assert run.faults == ()
    assert [array.name for array in run.arrays] == ["A", "B", "out"]
    assert (run.warps, run.step_count, len(run.steps)) == (2, 12, 12)
    assert [step.warp for step in run.steps] == [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]
    assert [step.is_barrier for step in run.steps[:3]] == [False, False, True]


def test_another_block_touches_elements_of_its_own():
    run = interpreted(request(adding(), block=(1, 0, 0)))
    (access,) = run.steps[0].accesses

    assert access.addresses.tolist() == [run.arrays[0].address + 4 * (64 + lane) for lane in range(32)]


@pytest.mark.parametrize(
    ("ptx", "word"),
    [
        (adding(sum_="sub.f32"), None),
        (adding(last="setp.lt.u32 %p0, %r0, 63; @%p0"), None),
        (adding(stride=8), "out of bounds"),
        (adding().replace("bar.sync 0;", "").replace("ld.shared.f32 %f2, [%r5]", "ld.shared.f32 %f2, [tile]"), "race"),
    ],
)
def test_wrong_kernel_is_wrong_and_its_faults_are_named(ptx, word):
    run = interpreted(request(ptx))

    assert not run.is_right
    assert (word is None) == (run.faults == ())
    assert word is None or any(word in fault for fault in run.faults)


def test_shared_memory_that_the_launch_asks_for_is_there():
    fixed = re.compile(r"\.shared (.*)tile\[\d+\];")
    open_ended = fixed.sub(r".extern .shared \1tile[];", fixed.search(adding())[0])
    ptx = fixed.sub("", adding()).replace(".visible .entry", f"{open_ended} .visible .entry")

    assert interpreted(request(ptx, dynamic_shared_bytes=4 * THREADS)).is_right
    assert any("out of bounds" in fault for fault in interpreted(request(ptx, dynamic_shared_bytes=4)).faults)


def test_unwritten_output_is_counted():
    run = interpreted(request(adding(last="setp.lt.u32 %p0, %r0, 63; @%p0")))

    assert run.unwritten_bytes == 2 * 4


def test_arrays_are_passed_flat_where_the_kernel_takes_them_so():
    shape = Shape.of(m=16, n=8)

    assert interpreted(request(adding(sum_="mul.f32"), operation="multiply", shape=shape)).is_right


def test_kernel_for_arrays_of_other_dimensions_is_refused():
    ptx = adding().replace(".param .u64 p20", ".param .u64 p20, .param .u64 p21")

    with pytest.raises(InvalidInput, match=r"2, 2, 2 axes: the kernel was compiled for other arrays \(22 parameters\)"):
        interpreted(request(ptx, operation="matmul", shape=Shape.of(m=8, k=8, n=8)))


def test_arrays_that_are_too_large_are_refused_with_both_figures():
    with pytest.raises(TooLarge, match=r"12,000,000 bytes are more than the interpreter's limit of 4,194,304"):
        interpreted(request(adding(), n=1_000_000))


def test_too_many_blocks_are_refused_with_the_estimate(monkeypatch):
    monkeypatch.setattr(module, "MOST_WORK", 5000)

    with pytest.raises(
        TooSlow, match=r"thread instructions \(8 blocks like the first\) exceed the interpreter's limit of 5,000"
    ):
        interpreted(request(adding(), blocks=8))


def test_unknown_instruction_is_named():
    with pytest.raises(Unsupported, match=r"cannot be run here: sqrt.magic"):
        interpreted(request(adding(sum_="sqrt.magic")))


def test_no_more_steps_are_kept_than_allowed(monkeypatch):
    monkeypatch.setattr(module, "MOST_STEPS", 5)
    run = interpreted(request(adding()))

    assert (len(run.steps), run.step_count) == (5, 12)
    assert run.is_right


def test_others_are_the_instructions_between_two_steps():
    run = block_run()
    own = [step.others for step in run.steps if step.warp == 0]

    assert own[0] == 11  # four for the index, a product, and for each array a parameter's load and a sum
    assert own[1:] == [3, 0, 0, 0, 1]


def test_inputs_are_not_changed_and_elements_are_found():
    run = block_run()
    inside = run.arrays[1].holds(np.array([run.arrays[1].address - 1, run.arrays[1].address, run.arrays[2].address]))

    assert inside.tolist() == [False, True, False]
