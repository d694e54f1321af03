import pytest

from gpuexplore.analysis.what_if.workload import (
    Workload,
    WorkloadLayer,
    of_operation,
    of_run,
    parse_layers,
    transformer_block,
)
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Experiment, Progress, Run, RunState, Shape
from gpuexplore.operations import OPERATIONS

BLOCK = {"batch": 2, "sequence": 16, "hidden": 8, "heads": 2, "feed_forward": 32}


def flops(workload):
    return {layer.name: layer.flop_count for layer in workload.layers}


def test_every_layer_of_a_block_is_counted_two_flops_for_each_parameter_and_token():
    tokens = 2 * 16
    parameters = 3 * 8 * 8 + 8 * 8 + 2 * 8 * 32  # queries, keys and values, output, two of the perceptron
    found = flops(transformer_block(**BLOCK))

    assert found["Queries, keys, values"] == 2 * tokens * 3 * 64
    assert found["Output projection"] == 2 * tokens * 64
    assert found["MLP, up projection"] == found["MLP, down projection"] == 2 * tokens * 256
    products = [
        flop_count for name, flop_count in found.items() if name not in ("Layer norms", "Attention", "Residual sums")
    ]
    assert sum(products) == 2 * parameters * tokens

    found = flops(transformer_block(**BLOCK))

    assert found["Attention"] == 4 * 2 * 16 * 16 * 8  # scores and their use: 2·b·s²·hidden each
    assert found["Layer norms"] == 2 * 8 * (2 * 16 * 8)
    assert found["Residual sums"] == 2 * (2 * 16 * 8)
    assert transformer_block(**BLOCK).flop_count == sum(found.values())


def test_a_block_of_gpt3s_size_has_its_published_cost():
    """GPT-3 has 96 blocks and about 175e9 parameters: 1.81e9 in a block, so 3.62e9 FLOPs a token beside attention."""
    block = transformer_block(batch=1, sequence=2048, hidden=12288, heads=96, feed_forward=49152)
    attention = flops(block)["Attention"]

    assert (block.flop_count - attention) / 2048 == pytest.approx(2 * 12 * 12288**2, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"heads": 3}, "heads 3: expected divisors of the hidden size, 8"),
        ({"hidden": 2**39, "heads": 1}, f"queries, keys, values: k of linear '{3 * 2**39}'"),
        ({"sequence": 2**41}, f"layer norms: m of layer_norm '{2**42}'"),
    ],
)
def test_a_block_that_cannot_be_is_refused_with_the_reason(change, said):
    with pytest.raises(InvalidInput, match=said.replace("(", r"\(")):
        transformer_block(**BLOCK | change)


def test_layers_are_read_from_lines_sizes_presets_and_exact_shapes():
    workload = parse_layers("linear b=16,d=32,k=8 x2\nmatmul 64; linear notebook-linear x 3\n".replace("x 3", "x3"))

    assert workload.layers == (
        WorkloadLayer("Linear layer, 16 × 32 × 8", "linear", Shape.of(b=16, d=32, k=8), 2),
        WorkloadLayer("Matrix multiplication, 64 × 64 × 64", "matmul", Shape.of(m=64, k=64, n=64), 1),
        WorkloadLayer("Linear layer, 16,384 × 32,768 × 8,192", "linear", Shape.of(b=16384, d=32768, k=8192), 3),
    )
    assert workload.flop_count == 2 * 2 * 16 * 32 * 8 + 2 * 64**3 + 3 * 2 * 16384 * 32768 * 8192


def test_every_bad_line_is_named_with_what_is_accepted():
    with pytest.raises(InvalidInput) as caught:
        parse_layers("abacus 3\nmatmul 64\nmatmul\nlinear b=1,d=2\nmatmul 8 x0\nmatmul 8 x200000")
    lines = str(caught.value).splitlines()

    assert len(lines) == 5
    assert lines[0].startswith("layer 'abacus 3': operation 'abacus': expected matmul")
    assert "like: linear b=16384,d=32768,k=8192 x2" in lines[1]
    assert "shape of linear 'b=1,d=2'" in lines[2]
    assert "x1 to x100000" in lines[3]


@pytest.mark.parametrize("text", ["", "\n;\n"])
def test_no_layer_is_no_workload(text):
    with pytest.raises(InvalidInput, match="no layers: give at least one"):
        parse_layers(text)


def test_endless_lists_and_lines_are_refused():
    with pytest.raises(InvalidInput, match="at most 100"):
        parse_layers("matmul 2;" * 101)

    with pytest.raises(InvalidInput) as caught:
        parse_layers("\n".join(f"abacus {number}" for number in range(100)))
    lines = str(caught.value).splitlines()

    assert len(lines) == 6
    assert lines[-1] == "95 more layers are invalid"

    with pytest.raises(InvalidInput, match="a line of 1000009 characters: expected at most 200"):
        parse_layers("matmul 8" + " " * 1_000_000 + "x")


def test_bytes_follow_the_format_of_each_layer():
    workload = Workload(
        "two",
        (WorkloadLayer("a", "matmul", Shape.of(m=10, k=10, n=10)), WorkloadLayer("b", "copy", Shape.of(n=100), 3)),
    )

    def formats(layer):
        return FORMATS["fp8" if layer.operation == "matmul" else "bf16"]

    assert workload.byte_count(formats) == 300 * 1 + 3 * 200 * 2
    assert workload.largest_bytes(formats) == 400


def test_a_run_is_its_largest_shape_unless_another_is_named():
    shapes = tuple(OPERATIONS["matmul"].shape_of_size(size) for size in (128, 64))
    experiment = Experiment("matmul", shapes, ("fp32",), ("numpy",))
    run = Run("abc", "me", experiment, RunState.DONE, Progress(0, 2))

    assert of_run(run) == of_operation(OPERATIONS["matmul"], shapes[0])
    assert of_run(run, shapes[1]).layers[0].shape == shapes[1]
