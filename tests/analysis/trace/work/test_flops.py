"""FLOPs and bytes of a call: against torch's own counter, and by hand."""

import pytest

from gpuexplore.analysis.trace.events import read_trace
from gpuexplore.analysis.trace.work.flops import FORMULAS, flop_count
from gpuexplore.analysis.trace.work.kinds import KINDS, kind_of
from gpuexplore.analysis.trace.work.moved import OUTPUTS, byte_count
from tests.analysis.trace.made import as_bytes, operation

Q, K = (2, 8, 32, 16), (2, 4, 24, 16)


def call(name, *dims, kind="float", values=(), strides=None):
    made = operation(f"aten::{name}", 0.0, 1.0, 1, *dims, kind=kind, values=values)
    if strides is not None:
        made["args"]["Input Strides"] = strides
    (found,) = read_trace("t", as_bytes({"traceEvents": [made]})).calls
    return found


IMAGE, WEIGHT, GRADIENT = (2, 6, 17, 19), (8, 6, 3, 5), (2, 8, 9, 9)
STEPS = ("[2, 2]", "[1, 1]", "[1, 1]")


@pytest.mark.parametrize(
    ("name", "dims", "values", "by_hand"),
    [
        ("mm", ((3, 5), (5, 7)), (), 2 * 3 * 5 * 7),
        ("addmm", ((7,), (3, 5), (5, 7)), ("1", "1"), 2 * 3 * 5 * 7),
        ("bmm", ((4, 3, 5), (4, 5, 7)), (), 4 * 2 * 3 * 5 * 7),
        ("baddbmm", ((4, 3, 7), (4, 3, 5), (4, 5, 7)), (), 4 * 2 * 3 * 5 * 7),
        ("linear", ((2, 3, 5), (7, 5), (7,)), (), 2 * 6 * 5 * 7),
        ("conv2d", (IMAGE, WEIGHT, (8,)), (*STEPS, "1"), 2 * 2 * 9 * 9 * 8 * 6 * 15),
        ("mm", ((3, 5), (6, 7)), (), None),
        ("mm", ((3, 5, 2), (5, 7)), (), None),
        ("mm", ((3, 5),), (), None),
        ("conv2d", (IMAGE, WEIGHT, (8,)), (), None),
        ("relu", ((3, 5),), (), None),
    ],
)
def test_flops_are_those_worked_out_by_hand(name, dims, values, by_hand):
    assert flop_count(call(name, *dims, values=values)) == by_hand


def test_flops_of_convolutions_and_attention_are_those_of_torch():
    counter = pytest.importorskip("torch.utils.flop_counter")
    forward = counter.conv_flop_count(IMAGE, WEIGHT, GRADIENT)
    both = counter.conv_backward_flop(
        GRADIENT,
        IMAGE,
        WEIGHT,
        None,
        None,
        None,
        None,
        False,
        None,
        None,
        [True, True, True],
        out_val=(IMAGE, WEIGHT),
    )
    mask = (*STEPS, "False", "[0, 0]", "1", "[True, True, True]")
    ours = {
        "convolution": (call("convolution", IMAGE, WEIGHT, (8,), values=(*STEPS, "False", "[0, 0]", "1")), forward),
        "transposed": (
            call("convolution", GRADIENT, WEIGHT, (6,), values=(*STEPS, "True", "[0, 0]", "1")),
            counter.conv_flop_count(GRADIENT, WEIGHT, IMAGE, transposed=True),
        ),
        "backward": (call("convolution_backward", GRADIENT, IMAGE, WEIGHT, values=("[8]", *mask)), both),
        "attention": (call("_scaled_dot_product_flash_attention", Q, K, K), counter.sdpa_flop_count(Q, K, K)),
        "its backward": (
            call("_scaled_dot_product_flash_attention_backward", Q, Q, K, K),
            counter.sdpa_backward_flop_count(Q, Q, K, K),
        ),
    }

    assert {name: flop_count(made) for name, (made, _) in ours.items()} == {
        name: told for name, (_, told) in ours.items()
    }


@pytest.mark.parametrize(
    ("made", "by_hand"),
    [
        (call("add", (8, 1), (1, 4), values=("1",)), 4 * (8 + 4 + 32)),
        (call("add_", (8, 4), (8, 4), kind="c10::Half"), 2 * 3 * 32),
        (call("copy_", (8, 4), (8, 4)), 4 * 64),
        (call("copy_", (8, 4), (8, 4), strides=[[4, 1], [0, 1]]), 4 * (32 + 4)),
        (call("relu", (8, 4)), 4 * 64),
        (call("sum", (8, 4)), 4 * 32),
        (call("mm", (3, 5), (5, 7)), 4 * (15 + 35 + 21)),
        (call("linear", (2, 3, 5), (7, 5)), 4 * (30 + 35 + 42)),
        (call("bmm", (4, 3, 5), (4, 5, 7)), 4 * 4 * (15 + 35 + 21)),
        (call("conv2d", IMAGE, WEIGHT, values=("", *STEPS)), 4 * (2 * 6 * 17 * 19 + 8 * 6 * 15 + 2 * 8 * 9 * 9)),
        (call("view", (8, 4)), None),
        (call("add", (8, 4), (8, 4), kind="unheard of"), None),
        (call("add"), None),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else None,
)
def test_bytes_are_those_worked_out_by_hand(made, by_hand):
    assert byte_count(made) == by_hand


def test_operations_with_a_formula_or_a_rule_are_of_a_kind():
    assert {name for name in (*FORMULAS, *OUTPUTS) if kind_of(name) is None} == set()
    assert len([name for names in KINDS.values() for name in names]) == len(set().union(*KINDS.values()))
