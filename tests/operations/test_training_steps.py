"""Training steps: torch counts the same FLOPs, autograd finds the same gradients, and wrong ones are seen."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from gpuexplore.analysis.prediction.calls import CALL_S, Arithmetic, ideal
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.backends import load_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Case, Shape
from gpuexplore.hardware import accelerator_named, as_device
from gpuexplore.measure.check.correctness import check, tolerance
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.operations import OPERATIONS, cnn_step, load_build, torch_steps, training
from gpuexplore.operations.optimizer_step import DECAY, EPSILON, FIRST, MOMENTUM, SECOND
from gpuexplore.operations.training import RATE, cross_entropy, flat, loss_scale, weight_scale

MLP, CNN, TRANSFORMER = (OPERATIONS[f"{name}_step"] for name in ("mlp", "cnn", "transformer"))
OPTIMIZER = OPERATIONS["optimizer_step"]
DIGITS = Shape.of(batch=128, inputs=784, hidden=784, outputs=10, layers=2)
TINY = Shape.of(batch=100, inputs=3, hidden=10, outputs=2, layers=2)
DEEP = Shape.of(batch=64, inputs=48, hidden=96, outputs=10, layers=3)


def mlp(shape):
    """Return the network as its users write it."""
    widths = [shape["inputs"], *[shape["hidden"]] * (shape["layers"] - 1), shape["outputs"]]
    layers = [nn.Linear(fan_in, fan_out) for fan_in, fan_out in pairwise(widths)]
    return nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())][:-1])


def cnn(shape):
    features = shape["filters"] * (shape["size"] // 2) ** 2
    convolution = nn.Conv2d(shape["channels"], shape["filters"], 3, padding=1)
    return nn.Sequential(convolution, nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(features, shape["outputs"]))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        batch, tokens, width = x.shape
        heads = self.qkv(self.norm(x)).reshape(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.out(mixed)
        return x + self.mlp(x)


def transformer(shape):
    width = shape["width"]
    blocks = [Block(width, shape["heads"]) for _ in range(shape["layers"])]
    return nn.Sequential(*blocks, nn.LayerNorm(width), nn.Linear(width, shape["outputs"]))


NETWORKS = {"mlp_step": mlp, "cnn_step": cnn, "transformer_step": transformer}
SHAPES = [
    pytest.param(MLP, DIGITS, id="mlp-784-784-10"),
    pytest.param(MLP, TINY, id="mlp-3-10-2"),
    pytest.param(MLP, DEEP, id="mlp-deep"),
    pytest.param(MLP, Shape.of(batch=7, inputs=5, hidden=3, outputs=4, layers=1), id="mlp-one-layer"),
    pytest.param(CNN, Shape.of(batch=3, channels=2, size=6, filters=5, outputs=7), id="cnn"),
    pytest.param(CNN, Shape.of(batch=8, channels=1, size=28, filters=16, outputs=10), id="cnn-digits"),
    pytest.param(TRANSFORMER, Shape.of(batch=2, tokens=5, width=24, heads=3, layers=2, outputs=7), id="transformer"),
    pytest.param(
        TRANSFORMER, Shape.of(batch=1, tokens=33, width=64, heads=4, layers=1, outputs=65), id="transformer-one-block"
    ),
]


def inputs_of(operation, shape, dtype="fp64"):
    return make_inputs(operation, shape, DTYPES[dtype], "normal")


def transposed(parameter):
    """Return a weight of torch's linear layers as it lies in ours: inputs by outputs."""
    return parameter.T if parameter.ndim == 2 else parameter


def in_torch(operation, shape):
    """Return the output by torch's modules and autograd in fp64, with FLOPs of forward, and of all."""
    batch, targets, *parameters = map(torch.from_numpy, inputs_of(operation, shape))
    network = NETWORKS[operation.name](shape).double()
    with torch.no_grad():
        for own, given in zip(network.parameters(), parameters, strict=True):
            transposed(own).copy_(given.reshape(transposed(own).shape))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as forward:
        network(batch)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as whole:
        logits = network(batch).flatten(0, -2)
        loss = nn.functional.cross_entropy(logits, targets.flatten(0, -2))
        loss.backward()
    out = flat(loss.item(), [transposed(own.grad).numpy() for own in network.parameters()])
    return out, forward.get_total_flops(), whole.get_total_flops()


@pytest.mark.parametrize(("operation", "shape"), SHAPES)
def test_torch_counts_the_same_flops_and_finds_the_same_gradients(operation, shape):
    out, forward, flop_count = in_torch(operation, shape)

    assert operation.phases["forward"](shape) == forward
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
    if name == "transposed":
        gradients[0] = gradients[0].T.reshape(gradients[0].shape)
    if name == "sum for mean":
        loss *= len(batch)
    if name == "one sample's loss":
        loss, _ = cross_entropy((h @ second + second_bias)[:1], targets[:1])
    return flat(loss, gradients)


MISTAKES = [
    "no ReLU mask",
    "another sample's targets",
    "one sample's loss",
    "transposed",
    "sum for mean",
]


@pytest.mark.parametrize(
    ("shape", "dtype"), [*((TINY, dtype) for dtype in DTYPES), (DIGITS, "bf16")], ids=lambda value: str(value)[:9]
)
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
    forward, backward, optimizer = (flop_count(shape) for flop_count in operation.phases.values())

    assert forward + backward == operation.flop_count(shape)
    assert optimizer == 2 * (operation.output(shape)[0] - 1)  # a multiply-add for each parameter, after the whole


SMALL = [case.values for case in SHAPES if "digits" not in case.id and "784" not in case.id]


@pytest.mark.parametrize(
    ("operation", "shape", "name"),
    [
        pytest.param(operation, shape, name, id=f"{operation.name}-{name}")
        for operation, shape in (SMALL[1], SMALL[3], SMALL[4])
        for name in ("numpy", "numba-cpu", "torch", "torch-checkpoint")
        if any(implementation.name == name for implementation in operation.implementations)
    ],
)
def test_phases_one_after_the_other_compute_the_whole_also_again_and_again(operation, shape, name):
    implementation, dtype = operation.implementation_named(name), DTYPES["fp64"]
    backend, inputs = load_backend(implementation.backend), inputs_of(operation, shape)
    out = backend.empty(operation.output(shape), dtype, "cpu")
    step = load_build(operation, implementation)([backend.to_device(a, dtype, "cpu") for a in inputs], out, dtype)
    backend.poison(out)
    for call in step.phases.values():
        call()
        call()

    assert list(step.phases) == list(operation.phases)
    np.testing.assert_allclose(
        dtype.widen(backend.stored(out, dtype)), operation.reference(*inputs), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("dtype", ["fp64", "fp32", "bf16", "fp16"])
@pytest.mark.parametrize(("operation", "shape"), SMALL)
def test_any_quantity_with_a_wrong_sign_or_scale_is_seen(operation, shape, dtype):
    row = DTYPES[dtype]
    reference = Reference(operation, row, inputs_of(operation, shape, dtype))
    wide = tuple(map(row.widen, reference.inputs))
    right, allowed = operation.reference(*wide), tolerance(operation, shape, row)
    missed = []
    for (part, expected), factor in product(reference.parts, (-1, 1.5)):
        out = right.copy()
        out[part] = factor * expected
        if np.any(expected) and check(out, reference.parts, allowed, reference.leeways).within:
            missed.append((part, factor))

    assert missed == []


@pytest.mark.parametrize("arrays", [1, 2, 3])
def test_optimizer_does_what_torchs_own_does(arrays):
    """The tenth step of torch.optim, from weights, gradients and moments of ours."""
    shape = Shape.of(n=50, arrays=arrays)
    gradients, old = (torch.from_numpy(array) for array in inputs_of(OPTIMIZER, shape))
    weights = nn.Parameter(old[0].clone())
    weights.grad = gradients.clone()
    if arrays < 3:
        optimizer = torch.optim.SGD([weights], RATE, momentum=MOMENTUM if arrays == 2 else 0)
        optimizer.state[weights] = {"momentum_buffer": old[1].clone()} if arrays == 2 else {}
        names = ["momentum_buffer"][: arrays - 1]
    else:
        optimizer = torch.optim.AdamW([weights], RATE, (FIRST, SECOND), EPSILON, DECAY)
        state = {"step": torch.tensor(9.0), "exp_avg": old[1].clone(), "exp_avg_sq": old[2].clone()}
        optimizer.state[weights] = state
        names = ["exp_avg", "exp_avg_sq"]
    optimizer.step()
    found = [weights.detach(), *(optimizer.state[weights][name] for name in names)]

    np.testing.assert_allclose(OPTIMIZER.reference(gradients.numpy(), old.numpy()), torch.stack(found), atol=1e-12)


def test_adamw_moves_seven_thirds_of_the_bytes_of_sgd():
    bytes_moved = {preset.name: OPTIMIZER.byte_count(preset.shape, DTYPES["fp32"]) for preset in OPTIMIZER.presets}

    assert bytes_moved == {"sgd": 7_479_480, "momentum": 12_465_800, "adamw": 17_452_120}
    assert shape_label(OPTIMIZER.presets[2].shape) == "n = 623,290, arrays = 3"


def test_optimizer_of_the_phases_writes_sgd_beside_the_weights():
    weights, gradient = np.array([[1.0, 2.0]]), np.array([[8.0, -8.0]])
    by_numpy, by_torch = np.empty_like(weights), torch.empty(1, 2, dtype=torch.float64)
    parameter = torch.from_numpy(weights.copy()).requires_grad_()
    training.sgd_of([weights], [gradient], [by_numpy])()
    torch_steps.sgd_of([parameter], [torch.from_numpy(gradient)], [by_torch])()

    assert by_numpy.tolist() == by_torch.tolist() == [[0.0, 3.0]]
    assert weights.tolist() == parameter.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_network_whose_bias_is_added_to_rounded_sums_is_right(dtype):
    """torch adds it by itself on a GPU, where units near zero then pass their gradient on or not: 1.5 times too far."""
    row, shape, shares, without = DTYPES[dtype], Shape.of(batch=5, channels=3, size=10, filters=17, outputs=3), [], []
    allowed = tolerance(CNN, shape, row)
    for seed in range(20):
        reference = Reference(CNN, row, make_inputs(CNN, shape, row, "normal", seed=seed))
        wide = tuple(row.widen(array) for array in reference.inputs)
        loss, (batch, sums, *others) = cnn_step.forward(*wide)
        bias = wide[3][:, None, None]
        rounded = row.widen(row.round(sums - bias)) + bias
        out = row.widen(row.round(flat(loss, cnn_step.backward((batch, rounded, *others)))))
        shares.append(check(out, reference.parts, allowed, reference.leeways).share)
        without.append(check(out, reference.parts, allowed, [0.0] * len(reference.parts)).share)

    assert max(shares) <= 1
    assert max(without) > 1  # so that it matters
