"""Training steps: torch counts the same FLOPs, autograd finds the same gradients, and wrong ones are seen."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from gpuexplore.analysis.prediction.arithmetic import Arithmetic
from gpuexplore.analysis.prediction.ideal_time import CALL_S, ideal
from gpuexplore.devices import accelerator_named, as_device
from gpuexplore.dtypes import DTYPES
from gpuexplore.measure.correctness import check, tolerance
from gpuexplore.measure.inputs import Reference, make_inputs
from gpuexplore.model import Case, Shape
from gpuexplore.operations import OPERATIONS, load_build
from gpuexplore.operations.training import cross_entropy, flat, loss_scale, weight_scale

MLP = OPERATIONS["mlp_step"]
DIGITS = Shape.of(batch=128, inputs=784, hidden=784, outputs=10, layers=2)
TINY = Shape.of(batch=100, inputs=3, hidden=10, outputs=2, layers=2)
DEEP = Shape.of(batch=64, inputs=48, hidden=96, outputs=10, layers=3)


def mlp(shape):
    """Return the network as its users write it, and how its parameters are turned to lie as in ours."""
    widths = [shape["inputs"], *[shape["hidden"]] * (shape["layers"] - 1), shape["outputs"]]
    layers = [nn.Linear(fan_in, fan_out, dtype=torch.float64) for fan_in, fan_out in pairwise(widths)]
    return nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())][:-1])


NETWORKS = {"mlp_step": mlp}
SHAPES = [
    pytest.param(MLP, DIGITS, id="mlp-784-784-10"),
    pytest.param(MLP, TINY, id="mlp-3-10-2"),
    pytest.param(MLP, DEEP, id="mlp-deep"),
    pytest.param(MLP, Shape.of(batch=7, inputs=5, hidden=3, outputs=4, layers=1), id="mlp-one-layer"),
]


def inputs_of(operation, shape, dtype="fp64"):
    return make_inputs(operation, shape, DTYPES[dtype], "normal")


def in_torch(operation, shape):
    """Return the output by torch's modules and autograd in fp64, with FLOPs of forward, and of all."""
    batch, targets, *parameters = map(torch.from_numpy, inputs_of(operation, shape))
    network = NETWORKS[operation.name](shape)
    with torch.no_grad():
        for own, given in zip(network.parameters(), parameters, strict=True):
            own.copy_(given.T if given.ndim == 2 else given)
    with FlopCounterMode(display=False) as forward:
        network(batch)
    with FlopCounterMode(display=False) as whole:
        loss = nn.functional.cross_entropy(network(batch).flatten(0, -2), targets)
        loss.backward()
    gradients = [own.grad.T if own.ndim == 2 else own.grad for own in network.parameters()]
    out = flat(loss.item(), [gradient.numpy() for gradient in gradients])
    return out, forward.get_total_flops(), whole.get_total_flops()


@pytest.mark.parametrize(("operation", "shape"), SHAPES)
def test_torch_counts_the_same_flops_and_finds_the_same_gradients(operation, shape):
    out, _, flop_count = in_torch(operation, shape)

    assert operation.flop_count(shape) == flop_count
    assert operation.output(shape) == out.shape
    np.testing.assert_allclose(operation.reference(*inputs_of(operation, shape)), out, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "products", "flop_count", "six_rule"),
    [
        (DIGITS, 5, 320_724_992, 478_686_720),
        (TINY, 5, 24_000, 37_200),
        (Shape.of(batch=64, inputs=128, hidden=128, outputs=10, layers=3), 8, 10_977_280, 13_176_576),
        (Shape.of(batch=512, inputs=1024, hidden=1024, outputs=1024, layers=3), 8, 8_589_934_592, 9_673_113_600),
    ],
)
def test_a_step_of_l_layers_is_3l_less_one_products_fewer_than_six_flops_a_parameter(
    shape, products, flop_count, six_rule
):
    parameters = MLP.output(shape)[0] - 1

    assert len(MLP.products(shape)) == products == 3 * shape["layers"] - 1
    assert MLP.flop_count(shape) == flop_count
    assert 6 * shape["batch"] * parameters == six_rule


def wrong(name, inputs):
    """Return the output of a step with a mistake in it."""
    batch, targets, first, first_bias, second, second_bias = inputs
    if name == "another sample's targets":
        targets = np.roll(targets, 1, axis=0)
    z = batch @ first + first_bias
    h = np.maximum(z, 0)
    loss, error = cross_entropy(h @ second + second_bias, targets)
    hidden = error @ second.T * (1.0 if name == "no ReLU mask" else z > 0)
    gradients = [batch.T @ hidden, hidden.sum(axis=0), h.T @ error, error.sum(axis=0)]
    if name == "wrong sign":
        gradients[3] = -gradients[3]
    if name == "scale of 1.5":
        gradients[1] = 1.5 * gradients[1]
    if name == "transposed":
        gradients[0] = gradients[0].T.reshape(gradients[0].shape)
    if name == "sum for mean":
        loss *= len(batch)
    if name == "one sample's loss":
        loss, _ = cross_entropy((h @ second + second_bias)[:1], targets[:1])
    return flat(loss, gradients)


MISTAKES = [
    "wrong sign",
    "no ReLU mask",
    "scale of 1.5",
    "another sample's targets",
    "one sample's loss",
    "transposed",
    "sum for mean",
]


@pytest.mark.parametrize("dtype", ["fp64", "fp32", "tf32", "bf16", "fp16"])
@pytest.mark.parametrize("shape", [TINY, DIGITS], ids=["tiny", "digits"])
def test_a_mistake_in_any_quantity_is_seen_in_every_dtype(shape, dtype):
    row = DTYPES[dtype]
    reference = Reference(MLP, row, inputs_of(MLP, shape, dtype))
    wide, allowed = tuple(map(row.widen, reference.inputs)), tolerance(MLP, shape, row)

    def judged(name):
        return check(row.widen(row.round(wrong(name, wide))), reference.parts, allowed, reference.leeways)

    assert judged("none").within
    assert [name for name in MISTAKES if judged(name).within] == []


def test_a_unit_within_rounding_of_zero_may_pass_its_gradient_on_or_not():
    """The sum of the second unit is 1e-9: in fp32 its sign depends on the order of the terms."""
    shape = Shape.of(batch=1, inputs=2, hidden=2, outputs=2, layers=2)
    inputs = (
        np.array([[1.0, 1.0]]),
        np.array([[1.0, 0.0]]),
        np.array([[1.0, 1.0], [0.5, -1.0]]),
        np.array([0.25, 1e-9]),
        np.array([[0.5, -0.5], [1.0, -1.0]]),
        np.zeros(2),
    )
    off = tuple(np.where(array == 1e-9, -1e-9, array) for array in inputs)
    reference = Reference(MLP, DTYPES["fp32"], tuple(array.astype(np.float32) for array in inputs))
    exact = Reference(MLP, DTYPES["fp64"], inputs)
    out, allowed = MLP.reference(*off), tolerance(MLP, shape, DTYPES["fp32"])

    assert check(out, reference.parts, allowed, reference.leeways).within
    assert not check(out, exact.parts, allowed, exact.leeways).within
    assert not check(2 * out, reference.parts, allowed, reference.leeways).within


def test_roundings_in_series_are_allowed_as_independent_errors_are():
    one, three = (Shape.of(batch=1, inputs=1, hidden=1, outputs=2, layers=layers) for layers in (1, 3))
    bf16 = DTYPES["bf16"]

    assert tolerance(MLP, one, bf16) == pytest.approx(2 * bf16.unit_roundoff * 3**0.5, rel=1e-3)
    assert tolerance(MLP, three, bf16) == pytest.approx(2 * bf16.unit_roundoff * 7**0.5, rel=1e-3)


@pytest.mark.parametrize("data", ["zeros", "ones"])
def test_gradients_that_cancel_to_zero_are_compared_on_the_scale_of_the_whole_output(data):
    row = DTYPES["fp32"]
    reference = Reference(MLP, row, make_inputs(MLP, DEEP, row, data))
    out = MLP.reference(*(array.astype(np.float64) for array in reference.inputs))
    noise = np.random.default_rng(1).standard_normal(out.size) * 1e-9

    assert check(out + noise, reference.parts, 1e-5, reference.leeways).within
    assert not check(out + 1e6 * noise, reference.parts, 1e-5, reference.leeways).within


def test_weights_keep_the_size_of_numbers_from_layer_to_layer():
    assert [weight_scale(terms) for terms in (1, 2, 3, 784, 1024)] == [1, 1, 1, 0.0625, 0.0625]
    assert [loss_scale(samples) for samples in (1, 2, 100, 128, 129)] == [1, 2, 128, 128, 256]


def test_inputs_are_exact_in_every_dtype_where_targets_and_scales_are():
    for dtype in DTYPES.values():
        _, targets, weights, *_ = make_inputs(MLP, DIGITS, dtype, "normal")
        rows = dtype.widen(targets)

        assert set(np.unique(rows)) == {0.0, 1.0}
        assert (rows.sum(axis=1) == 1).all()
        assert dtype.widen(weights).std() == pytest.approx(1 / 16, rel=0.01)


def test_a_small_step_cannot_be_predicted_faster_than_its_launches():
    device = as_device(accelerator_named("t4"))
    units = Arithmetic("native", None, device.peak("fp32", "matrix"))
    deep = Shape.of(**dict(TINY.axes) | {"layers": 4})
    best = [ideal(Case("mlp_step", shape, "fp32", "torch", device.id), device, units) for shape in (TINY, deep)]

    assert [round(found.time_s / CALL_S["gpu"]) for found in best] == [12, 24]
    assert {found.bound for found in best} == {"overhead"}


@pytest.mark.parametrize("operation", [operation for operation in OPERATIONS.values() if operation.phases])
def test_phases_share_the_flops_of_the_whole(operation):
    shape = operation.presets[0].shape

    assert sum(flop_count(shape) for flop_count in operation.phases.values()) == operation.flop_count(shape)


def test_forward_of_the_presets_has_the_flops_that_were_worked_out():
    forward = MLP.phases["forward"]

    assert [forward(preset.shape) for preset in MLP.presets] == [10_000, 159_358_976]


@pytest.mark.parametrize("name", ["numpy", "numba-cpu", "torch", "torch-checkpoint"])
def test_phases_one_after_the_other_compute_the_whole_also_again_and_again(name):
    from gpuexplore.backends import load_backend

    implementation, dtype = MLP.implementation_named(name), DTYPES["fp64"]
    backend, inputs = load_backend(implementation.backend), inputs_of(MLP, DEEP)
    out = backend.empty(MLP.output(DEEP), dtype, "cpu")
    step = load_build(MLP, implementation)([backend.to_device(a, dtype, "cpu") for a in inputs], out, dtype)
    backend.poison(out)
    for call in step.phases.values():
        call()
        call()

    assert list(step.phases) == list(MLP.phases)
    np.testing.assert_allclose(backend.to_host(out, dtype), MLP.reference(*inputs), rtol=0, atol=1e-12)
