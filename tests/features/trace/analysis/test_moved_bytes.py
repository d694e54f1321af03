"""Bytes of a call: types promoted and shapes broadcast as torch's meta tensors are, and cases worked out by hand."""

from itertools import product

import pytest

from gpuexplore.features.trace.analysis.events import read_trace
from gpuexplore.features.trace.analysis.moved_bytes import TYPES, byte_count
from tests.features.trace.analysis import made

M = 64
BF16, HALF = "c10::BFloat16", "c10::Half"
NAMES = {  # torch's name of a type in a trace: in its library
    "bool": "bool",
    "unsigned char": "uint8",
    "signed char": "int8",
    "int": "int32",
    "long int": "int64",
    HALF: "float16",
    BF16: "bfloat16",
    "float": "float32",
    "double": "float64",
    "c10::complex<float>": "complex64",
}
WIDE, ROW, ONE, NONE = (M, 32), (32,), (M, 1), ()


def called(name, *arguments):
    """Return a call whose arguments are tensors, (dims, kind), or values as the profiler writes them."""
    (found,) = read_trace("t", made.as_bytes({"traceEvents": [made.called(f"aten::{name}", *arguments)]})).calls
    return found


def called_name(value):
    return value.name.removeprefix("aten::") if hasattr(value, "name") else ""


def meta(torch, argument):
    if isinstance(argument, tuple):
        return torch.empty(argument[0], dtype=getattr(torch, NAMES[argument[1]]), device="meta")
    return float(argument) if "." in argument else int(argument)


def recorded(argument):
    """Return how the profiler writes a number that stands for a tensor."""
    return ((), "double" if "." in argument else "long int") if isinstance(argument, str) else argument


OTHERS = [*product((WIDE, ROW, ONE), NAMES), *((NONE, kind) for kind in NAMES if kind != "double"), "2", "0.5"]


@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize(
    "name",
    ["add", "sub", "mul", "div", "maximum", "fmod", "pow", "atan2", "lt", "eq", "bitwise_and", "logical_or", "where"],
)
def test_types_and_shapes_of_pairs_are_those_of_torchs_meta_tensors(name):
    torch = pytest.importorskip("torch")
    compared = 0
    for kind, other in product(NAMES, OTHERS):
        inputs = [(WIDE, kind), other]
        before = [(WIDE, "bool")] if name == "where" else []
        try:
            output = getattr(torch, name)(*(meta(torch, each) for each in (*before, *inputs)))
        except (RuntimeError, TypeError, NotImplementedError):  # not of these types
            continue
        if name == "pow" and kind == "bool":  # whose power is of type long, which is no promotion
            continue
        written = output.numel() * output.element_size()
        arguments = [*before, *map(recorded, inputs)]
        read = sum(meta(torch, each).numel() * TYPES[each[1]][1] for each in arguments)
        assert byte_count(called(name, *arguments)) == read + written, (name, inputs)
        compared += 1
    assert compared > 60


@pytest.mark.parametrize("name", ["exp", "sqrt", "sigmoid", "reciprocal", "neg", "isnan", "logical_not"])
def test_types_of_one_input_are_those_of_torchs_meta_tensors(name):
    torch = pytest.importorskip("torch")
    for kind in NAMES:
        try:
            output = getattr(torch, name)(meta(torch, (WIDE, kind)))
        except (RuntimeError, NotImplementedError):
            continue
        moved = byte_count(called(name, (WIDE, kind)))
        assert moved == 32 * M * (TYPES[kind][1] + output.element_size()), kind


BIG = 32 * M


@pytest.mark.parametrize(
    ("call", "by_hand"),
    [
        (called("mul", (WIDE, BF16), ((), "double")), BIG * 4 + 8),
        (called("mul", (WIDE, "float"), ((), "double"), (WIDE, "float")), BIG * 8 + 8),
        (called("mul", (WIDE, BF16), (WIDE, "float"), (WIDE, BF16)), BIG * (2 + 4 + 2)),
        (called("mul", (WIDE, BF16), (ONE, BF16), ((0,), BF16)), BIG * 4 + M * 2),
        (called("div_", (WIDE, "float"), ((), "long int")), BIG * 8 + 8),
        (called("add_", (WIDE, BF16), (WIDE, "float"), "1"), BIG * (2 + 4 + 2)),
        (called("add_", (WIDE, "float"), (ROW, HALF), "1"), BIG * 8 + 64),
        (called("add", (WIDE, BF16), (WIDE, BF16), "0.5"), BIG * 6),
        (called("rsub", (WIDE, HALF), "1.", "1"), BIG * 4),
        (called("pow", (WIDE, BF16), "2"), BIG * 4),
        (called("pow", "2", (WIDE, BF16)), BIG * 4),
        (called("pow", (WIDE, "int"), "0.5"), BIG * 8),
        (called("clamp", (WIDE, BF16), "0.", None), BIG * 4),
        (called("clamp", (WIDE, BF16), (ONE, "float"), (ONE, "float")), BIG * (2 + 4) + 2 * M * 4),
        (called("clamp_", (WIDE, BF16), "0.", "1."), BIG * 4),
        (called("lerp", (WIDE, BF16), (WIDE, BF16), "0.5"), BIG * 6),
        (called("addcmul", (WIDE, "float"), (WIDE, BF16), (WIDE, BF16), "2."), BIG * (4 + 2 + 2 + 4)),
        (called("addcdiv_", (WIDE, "float"), (WIDE, "float"), (WIDE, "float"), "2."), BIG * 16),
        (called("where", (WIDE, "bool"), (WIDE, BF16), "0."), BIG * (1 + 2 + 2)),
        (called("masked_fill_", (WIDE, BF16), (ROW, "bool"), "0."), BIG * 4 + 32),
        (called("gt", (WIDE, BF16), "0", (WIDE, "bool")), BIG * 3),
        (called("div", (WIDE, "int"), (WIDE, "int"), None), BIG * 12),
        (called("div", (WIDE, "int"), (WIDE, "int")), BIG * 12),
        (called("div", (WIDE, "long int"), (WIDE, "long int"), None), BIG * 24),
        (called("div", (WIDE, "long int"), (WIDE, "long int")), BIG * 20),
        (called("copy_", (WIDE, "float"), (WIDE, BF16), "False"), BIG * 6),
        (called("copy_", (WIDE, BF16), (ROW, "float"), "False"), BIG * 2 + 128),
        (called("fill_", (WIDE, BF16), "0."), BIG * 2),
        (called("threshold_backward", (WIDE, BF16), (WIDE, BF16), "0"), BIG * 6),
        (called("_softmax", (WIDE, BF16), "-1", "True"), BIG * 6),
        (called("_softmax", (WIDE, BF16), "-1", "False"), BIG * 4),
        (called("_softmax_backward_data", (WIDE, "float"), (WIDE, "float"), "-1", "5"), BIG * 10),
        (called("mm", (WIDE, BF16), ((32, M), BF16), ((M, M), BF16)), 2 * (2 * BIG + M * M)),
        (called("addmm_", ((M, M), "float"), (WIDE, "float"), ((32, M), "float"), "1", "1"), 4 * (2 * BIG + 2 * M * M)),
    ],
    ids=called_name,
)
def test_scalars_writing_in_place_and_to_out_are_worked_out_by_hand(call, by_hand):
    assert byte_count(call) == by_hand


@pytest.mark.parametrize(
    ("call", "by_hand"),
    [
        (called("sum", (WIDE, "float"), "[0]", "False", ""), 4 * (BIG + 32)),
        (called("sum", (WIDE, "float"), ""), 4 * (BIG + 1)),
        (called("mean", (WIDE, BF16), "[-1]", "True", "6", (ONE, "float")), 2 * BIG + 4 * M),
        (called("sum", (WIDE, "bool"), "[1]", "False", None), BIG + 8 * M),
        (called("sum", (WIDE, "signed char"), None), BIG + 8),
        (called("sum", (WIDE, BF16), "[1]", "False", "6"), 2 * BIG + 4 * M),
        (called("sum", (WIDE, BF16), "6"), 2 * BIG + 4),
        (called("mean", (WIDE, "int"), "[0]", "True", "7"), 4 * BIG + 8 * 32),
        (called("amax", (WIDE, "signed char"), "[1]", "False"), BIG + M),
    ],
    ids=called_name,
)
def test_a_sum_writes_the_other_axes_whole_numbers_as_long_and_others_as_it_is_asked(call, by_hand):
    assert byte_count(call) == by_hand


FP8, ONE_SCALE = "c10::Float8_e4m3fn", ((), "float")
IMAGE, WEIGHT, GRADIENT = ((2, 6, 10, 10), BF16), ((6, 4, 3, 3), BF16), ((2, 8, 19, 19), BF16)


@pytest.mark.parametrize(
    ("call", "by_hand"),
    [
        (called("mm", (WIDE, BF16), ((32, M), BF16), "6"), 2 * 2 * BIG + 4 * M * M),
        (called("mv", (WIDE, BF16), ((32,), BF16)), 2 * (BIG + 32 + M)),
        (called("addmv_", ((M,), "float"), (WIDE, "float"), ((32,), "float"), "1", "1"), 4 * (BIG + 32 + 2 * M)),
        (called("_int_mm", (WIDE, "signed char"), ((32, M), "signed char")), 2 * BIG + 4 * M * M),
        (
            called("_scaled_mm", (WIDE, FP8), ((32, M), FP8), ONE_SCALE, ONE_SCALE, None, None, "15", "True"),
            2 * BIG + 8 + 2 * M * M,
        ),
        (called("_scaled_mm", (WIDE, FP8), ((32, M), FP8), ONE_SCALE, ONE_SCALE), 2 * BIG + 8 + M * M),
        (
            called("convolution", IMAGE, WEIGHT, None, "[2, 2]", "[1, 1]", "[1, 1]", "True", "[0, 0]", "2"),
            2 * (2 * 6 * 100 + 6 * 4 * 9 + 2 * 8 * 19 * 19),
        ),
        (
            called("convolution", IMAGE, WEIGHT, None, "[2, 2]", "[1, 1]", "[1, 1]", "True", "[1, 1]", "2"),
            2 * (2 * 6 * 100 + 6 * 4 * 9 + 2 * 8 * 20 * 20),
        ),
    ],
    ids=called_name,
)
def test_products_of_another_output_are_worked_out_by_hand(call, by_hand):
    assert byte_count(call) == by_hand


@pytest.mark.parametrize(
    ("mask", "elements"),
    [
        ("[True, True, False]", 5776 + 2 * 216 + 2 * 1200),
        ("[True, False, False]", 5776 + 216 + 1200),
        ("[False, True, True]", 5776 + 216 + 1200 + 8),
        ("[True, True, True]", 5776 + 2 * 216 + 2 * 1200 + 8),
    ],
)
def test_the_backward_of_a_convolution_moves_what_its_gradients_need(mask, elements):
    steps = ("[8]", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[0, 0]", "2")

    assert byte_count(called("convolution_backward", GRADIENT, IMAGE, WEIGHT, *steps, mask)) == 2 * elements


def test_the_backward_of_attention_reads_five_tensors_and_writes_three():
    query, key = ((2, 8, 32, 16), BF16), ((2, 4, 24, 16), BF16)
    call = called("_scaled_dot_product_flash_attention_backward", query, query, key, key, query)

    assert byte_count(call) == 2 * (4 * 8192 + 4 * 3072)


@pytest.mark.parametrize(
    ("dims", "strides", "elements"),
    [
        ((1000, 64), (1, 1), 1063),
        ((8, 32), (0, 1), 32),
        ((8, 4), (0, 2), 4),
        ((8, 4), (8, 2), 32),
        ((2, 3, 6, 6, 3, 3), (192, 64, 8, 1, 8, 1), 2 * 3 * 8 * 8),
        ((0, 4), (4, 1), 0),
    ],
)
def test_elements_that_share_a_place_are_read_once(dims, strides, elements):
    one = made.called("aten::sum", (dims, "float"), None)
    one["args"]["Input Strides"] = [list(strides), []]
    (call,) = read_trace("t", made.as_bytes({"traceEvents": [one]})).calls

    assert byte_count(call) == 4 * (elements + 1)
