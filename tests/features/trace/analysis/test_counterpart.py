"""Which of our operations stands for a call of torch: with the same FLOPs, and taken by our commands."""

from dataclasses import replace

import pytest

from gpuexplore.features.trace.analysis.counterpart import MATCHES, counterpart
from gpuexplore.features.trace.analysis.flops import flop_count
from gpuexplore.operations import OPERATIONS
from gpuexplore.request import Request, fields_in, resolve
from tests.features.trace.analysis.test_flops import call

HALF = ("[1, 1]", "[1, 1]", "[1, 1]", "1")
FOUND = {
    "matmul": call("mm", (3, 5), (5, 7)),
    "matvec": call("mv", (3, 5), (5,)),
    "linear": call("addmm", (7,), (3, 5), (5, 7)),
    "batched_matmul": call("bmm", (600, 3, 5), (600, 5, 7)),
    "attention": call("scaled_dot_product_attention", *[(2, 4, 32, 16)] * 3, values=("", "0.", "False")),
    "conv2d": call("conv2d", (2, 6, 17, 19), (8, 6, 3, 3), (8,), values=HALF),
    "vector_add": call("add", (8, 4), (8, 4), values=("1",)),
    "multiply": call("mul", (8, 4), (8, 4)),
    "softmax": call("_softmax", (2, 3, 4), values=("-1", "False")),
    "copy": call("copy_", (8, 4), (8, 4)),
}
NOT_FOUND = (
    call("add", (8, 1), (1, 4), values=("1",)),
    call("add", (8, 4), (8, 4), values=("2",)),
    call("mm", (0, 5), (5, 7)),
    call("mm", (3, 5)),
    call("mm", (3, 5), (5, 7), strides=[[1, 3], [1, 5]]),
    call("mm", (10_000_000, 5), (5, 7)),
    call("bmm", (65_537, 3, 5), (65_537, 5, 7)),
    call("_softmax", (2, 3, 4), values=("0", "False")),
    call("conv2d", (2, 6, 17, 19), (8, 6, 3, 3), (8,), values=("[2, 2]", *HALF[1:])),
    call("conv2d", (2, 6, 17, 19), (8, 3, 3, 3), (8,), values=HALF),
    call("mv", (3, 5), (5,), strides=[[1, 3], [1]]),
    call("scaled_dot_product_attention", *[(2, 4, 32, 16)] * 3, (32, 32), values=("0.", "False")),
    call("scaled_dot_product_attention", *[(2, 4, 32, 16)] * 3),
    call("relu", (8, 4)),
)


@pytest.mark.parametrize(("name", "made"), FOUND.items(), ids=FOUND)
def test_a_call_maps_to_the_operation_with_its_flops_and_links_and_commands_are_taken(name, made):
    found = counterpart(made, "bf16")
    experiment = resolve(Request(**fields_in(found.query)), ["cpu"])

    assert found.operation == name
    assert flop_count(made) in (None, OPERATIONS[name].flop_count(found.shape))
    assert (experiment.shapes, experiment.dtypes) == ((found.shape,), ("bf16",))
    assert found.run_command == f"gpuexplore run {found.operation} --shape {found.shape} --dtype bf16"
    assert f"--gpu t4 --shape {found.shape}" in found.predict_command("t4")
    assert "--calls" not in found.predict_command("t4")
    assert found.predict_command("t4", "single").endswith(" --calls single")


def test_a_layer_norm_maps_where_it_is_over_the_last_axis_with_weights():
    made = call("native_layer_norm", (2, 3, 4), (), (4,), (4,))
    tokens, _, *rest = made.arguments
    axis = replace(tokens, dims=None, value="[4]")

    assert str(counterpart(replace(made, arguments=(tokens, axis, *rest)), "fp32").shape) == "m=6,n=4"
    assert counterpart(replace(made, arguments=(tokens, replace(axis, value="[3, 4]"), *rest)), "fp32") is None


@pytest.mark.parametrize(
    ("made", "name", "layout"),
    [
        (call("mm", (3, 5), (5, 7), strides=[[5, 1], [7, 1]]), "matmul", "NN"),
        (call("mm", (3, 5), (5, 7), strides=[[5, 1], [1, 5]]), "matmul", "NT"),
        (call("mm", (3, 5), (5, 7), strides=[[1, 3], [7, 1]]), "matmul", "TN"),
        (call("bmm", (4, 3, 5), (4, 5, 7), strides=[[15, 5, 1], [35, 1, 5]]), "batched_matmul", "NT"),
        (call("addmm", (7,), (3, 5), (5, 7), strides=[[1], [5, 1], [7, 1]]), "linear", "NN"),
        (call("addmm", (7,), (3, 5), (5, 7), strides=[[1], [5, 1], [1, 5]]), "matmul", "NT"),
        (call("linear", (2, 3, 5), (7, 5)), "matmul", "NT"),
    ],
)
def test_matrices_that_lie_by_columns_are_measured_by_columns(made, name, layout):
    found = counterpart(made, "fp32")

    assert (found.operation, found.layout) == (name, layout)
    assert ("--layout" in found.run_command) == (layout != "NN")
    assert OPERATIONS[name].flop_count(found.shape) == flop_count(made)
    assert resolve(Request(**fields_in(found.query)), ["cpu"]).options.layout == layout


def test_what_is_not_the_same_or_of_a_dtype_that_is_not_measured_maps_to_nothing():
    assert [made for made in NOT_FOUND if counterpart(made, "fp32")] == []
    assert [counterpart(FOUND["matmul"], dtype) for dtype in (None, "fp8", "int64")] == [None] * 3
    assert all(name.startswith("aten::") for name in MATCHES)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("scaled_dot_product_attention", ("", "0.", "True")),
        ("_scaled_dot_product_flash_attention", ("0.", "True", "False")),
        ("_scaled_dot_product_efficient_attention", ("", "False", "0.", "True")),
        ("_scaled_dot_product_flash_attention_for_cpu", ("0.", "True")),
    ],
)
def test_causal_attention_maps_to_ours_with_the_mask(name, values):
    made = call(name, *[(2, 4, 32, 16)] * 3, values=values)
    found = counterpart(made, "bf16")

    assert found.operation == "attention"
    assert found.shape["causal"] == 1
    assert flop_count(made) == OPERATIONS["attention"].flop_count(found.shape)
    assert "causal=1" in found.run_command
