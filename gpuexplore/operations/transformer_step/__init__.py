"""A training step of a transformer: pre-norm blocks of attention and an MLP, a linear head, cross-entropy per token.

A block is x + attention(norm(x)) W_o, then x + GELU(norm(x) W_1) W_2, 12·width² weights; the head makes `outputs`
logits from the norm of x. The input is activations: an embedding is a look-up, without FLOPs. Attention has no mask, as
in the operation `attention`. With T = batch·tokens, forward is layers·(24·T·width² + 4·T·tokens·width) +
2·T·width·outputs FLOPs and backward twice as many, for the first norm's gains need the gradient of what leaves it.
GELU is that by a tangent (https://arxiv.org/abs/1606.08415); it, norms, softmax and the loss are not counted, as torch
does not.
On the roofline: products decide for wide blocks; the steps between them are memory-bound, and count where width is
small.
"""

from gpuexplore.core.model import Shape
from gpuexplore.operations.contract import Array, Arrays, Example, Operation, Preset, Product
from gpuexplore.operations.implementation import row, torch_variants
from gpuexplore.operations.training import (
    MOST_FLOPS,
    TOO_LARGE,
    backward_of,
    flat,
    flat_length,
    gradient_scale,
    multiplied,
    one_hot,
    optimizer_flop_count,
    quantities,
    weight_scale,
)
from gpuexplore.operations.transformer_step.numpy import backward, forward

EXPANSION = 4  # of the MLP
LEAST_WIDTH = 16


def _parameters(shape: Shape) -> tuple[tuple[int, ...], ...]:
    """Return gains and biases of a norm, then weights and biases of what follows; the heads are in the shapes."""
    width = shape["width"]
    heads = shape["heads"]
    inner = EXPANSION * shape["width"]
    norm = ((width,), (width,))
    block = (
        *norm,
        (width, 3, heads, width // heads),
        (3, heads, width // heads),
        (width, width),
        (width,),
        *norm,
        (width, inner),
        (inner,),
        (inner, width),
        (width,),
    )
    return block * shape["layers"] + (*norm, (width, shape["outputs"]), (shape["outputs"],))


def _prepared(arrays: Arrays) -> Arrays:
    """Return gains near 1, weights near √(1 / terms), small biases, and targets of one class each."""
    batch, targets, *parameters = arrays
    scaled: list[Array] = []
    for i in range(0, len(parameters), 2):
        weights, bias = parameters[i : i + 2]
        is_gain = weights.ndim == 1
        scale = 0.125 if is_gain else weight_scale(2 * len(weights))
        scaled += [is_gain + weights * scale, bias * 0.125]
    return (batch, one_hot(targets), *scaled)


def _reference(*inputs: Array) -> Array:
    loss, kept = forward(*inputs)
    return flat(loss, backward(kept))


def _forward(shape: Shape) -> tuple[Product, ...]:
    tokens = shape["batch"] * shape["tokens"]
    width = shape["width"]
    length = shape["tokens"]
    heads = shape["batch"] * shape["heads"]
    depth = width // shape["heads"]
    inner = EXPANSION * width
    block = (
        Product(1, tokens, 3 * width, width),
        Product(heads, length, length, depth),
        Product(heads, length, depth, length),
        Product(1, tokens, width, width),
        Product(1, tokens, inner, width),
        Product(1, tokens, width, inner),
    )
    return block * shape["layers"] + (Product(1, tokens, shape["outputs"], width),)


def _products(shape: Shape) -> tuple[Product, ...]:
    made = _forward(shape)
    return made + tuple(gradient for product in made for gradient in backward_of(product))


def _terms(shape: Shape) -> int:
    """Return the terms of the sums that follow one another: through all blocks, back again, and over the tokens."""
    block = (3 + EXPANSION) * shape["width"] + shape["width"] // shape["heads"] + shape["tokens"]
    return 2 * (shape["layers"] * block + shape["width"]) + shape["outputs"] + shape["batch"] * shape["tokens"]


def _problem(shape: Shape) -> str | None:
    if shape["width"] % shape["heads"]:
        return "width is a multiple of heads"
    if shape["width"] < LEAST_WIDTH:
        return f"width is {LEAST_WIDTH} or more: norms of a few numbers amplify rounding errors"
    if shape["outputs"] < 2:
        return "outputs is 2 or more, so that there are classes to distinguish"
    return None if multiplied(_products(shape)) <= MOST_FLOPS else TOO_LARGE


def _halved(shape: Shape) -> Shape:
    """Return the shape with half the batch and tokens, and half the width while heads divide it."""
    width = shape["width"] // 2
    smaller = {name: max(1, shape[name] // 2) for name in ("batch", "tokens", "outputs")}
    smaller["outputs"] = max(2, smaller["outputs"])
    if width >= LEAST_WIDTH and width % shape["heads"] == 0:
        smaller["width"] = width
    return Shape.of(**dict(shape.axes) | smaller)


OPERATION = Operation(
    name="transformer_step",
    title="Training step of a transformer",
    formula="loss and gradients of softmax(norm(blocks(x)) W + b), x (batch, tokens, width)",
    about="Pre-norm blocks of attention and an MLP, forward and backward: three times the matmuls of forward.",
    axes=("batch", "tokens", "width", "heads", "layers", "outputs"),
    limits={"batch": 1024, "tokens": 2**17, "width": 2**16, "heads": 1024, "layers": 256, "outputs": 2**18},
    default_sizes=(64, 128, 192, 256),
    shape_of_size=lambda size: Shape.of(
        batch=4, tokens=64, width=-(-max(LEAST_WIDTH, size) // 4) * 4, heads=4, layers=1, outputs=64
    ),
    inputs=lambda shape: (
        (shape["batch"], shape["tokens"], shape["width"]),
        (shape["batch"], shape["tokens"], shape["outputs"]),
        *_parameters(shape),
    ),
    output=lambda shape: flat_length(_parameters(shape)),
    flop_count=lambda shape: multiplied(_products(shape)),
    reference=_reference,
    reduction_length=_terms,
    implementations=(
        row(
            "numpy",
            "numpy.matmul and ufuncs, each result newly allocated, 16-bit formats widened to fp32",
            unit="matrix",
        ),
        *torch_variants(),
    ),
    examples=(
        Example(
            Shape.of(batch=2, tokens=3, width=4, heads=2, layers=1, outputs=5),
            flop_count=3 * (24 * 6 * 16 + 4 * 6 * 3 * 4 + 2 * 6 * 4 * 5),
            fp32_bytes=4 * (24 + 30 + 1 + 2 * (8 + 48 + 12 + 16 + 4 + 8 + 64 + 16 + 64 + 4 + 8 + 20 + 5)),
            terms=2 * (7 * 4 + 2 + 3 + 4) + 5 + 6,
        ),
    ),
    products=_products,
    presets=(
        Preset(
            "nanogpt-cpu",
            Shape.of(batch=12, tokens=64, width=128, heads=4, layers=4, outputs=65),
            "nanoGPT's model of Shakespeare's characters for a CPU, 0.8 million parameters, without its causal mask",
        ),
    ),
    problem=_problem,
    halved=_halved,
    prepared=_prepared,
    scale=gradient_scale(_reference),
    quantities=quantities,
    roundings=lambda shape: 24 * shape["layers"] + 8,  # 12 results of a block and their gradients, and the head's
    phases={
        "forward": lambda shape: multiplied(_forward(shape)),
        "backward": lambda shape: 2 * multiplied(_forward(shape)),
        "optimizer": lambda shape: optimizer_flop_count(shape, _parameters),
    },
    calls=lambda shape: (
        33 * shape["layers"] + 12
    ),  # 18 products, 4 sums for biases, 3 × 2 of norms, softmax, GELU, sums
    awkward=((1, 1, 16, 1, 1, 2), (2, 3, 24, 3, 2, 5), (3, 9, 20, 2, 1, 11)),
    simulated=((1, 1, 16, 1, 1, 2),),
)
