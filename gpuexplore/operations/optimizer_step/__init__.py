"""An optimizer's step on n weights: w' = w - r·g (SGD), with momentum, or AdamW, gradient by gradient.

The shape says which one: `arrays` is how many arrays an update rewrites, 1 of SGD (the weights), 2 with momentum
(m' = μ·m + g, w' = w - r·m'), 3 of AdamW (both moments, m' = β₁·m + (1 - β₁)·g and v' = β₂·v + (1 - β₂)·g², then
w' = (1 - r·λ)·w - r·m̂ / (√v̂ + ε), hats for the bias corrections of step 10). They read n gradients and what they
rewrite: (2·arrays + 1)·n numbers for 2, 4 or 14 FLOPs each. Memory decides: AdamW moves 7/3 of the bytes of SGD.
I. Loshchilov, F. Hutter, "Decoupled Weight Decay Regularization", https://arxiv.org/abs/1711.05101.

The rates are larger than in training, so that 16-bit weights show what was added to them; time does not depend on
them.
"""

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.operations.contract import Array, Arrays, Example, Operation, Preset
from gpuexplore.operations.implementation import EVERY_DTYPE, row
from gpuexplore.operations.training import RATE

MOMENTUM = 0.875
FIRST = 0.875
SECOND = 0.96875  # β₁ and β₂
DECAY = 0.0625  # λ
EPSILON = 1e-3
STEP = 10
STEP_RATE = RATE / (1 - FIRST**STEP)  # with the bias correction of the first moment
CORRECTION = (1 - SECOND**STEP) ** -0.5  # of the root of the second one
FLOPS = (2, 4, 14)  # of an element, by how many arrays are rewritten


def _prepared(arrays: Arrays) -> Arrays:
    """Return second moments that could be means of squares: 1/4 and more."""
    gradients, old = arrays
    if len(old) == len(FLOPS):
        old[2] = old[2] ** 2 + 0.25
    return gradients, old


def _reference(gradients: Array, old: Array) -> Array:
    weights, *moments = old
    if not moments:
        return np.stack([weights - RATE * gradients])
    if len(moments) == 1:
        momentum = MOMENTUM * moments[0] + gradients
        return np.stack([weights - RATE * momentum, momentum])
    first = FIRST * moments[0] + (1 - FIRST) * gradients
    second = SECOND * moments[1] + (1 - SECOND) * gradients**2
    update = STEP_RATE * first / (np.sqrt(second) * CORRECTION + EPSILON)
    return np.stack([(1 - RATE * DECAY) * weights - update, first, second])


def _scale(_: Array, gradients: Array, old: Array) -> Array:
    """Return the sums of the terms' sizes: what comes of terms of which none cancels another."""
    weights, *moments = np.abs(old)
    return np.abs(
        _reference(-np.abs(gradients), np.stack([weights, *(-momentum for momentum in moments[:1]), *moments[1:]]))
    )


OPERATION = Operation(
    name="optimizer_step",
    title="Optimizer step",
    formula="(n), (arrays, n) → (arrays, n): SGD rewrites 1 array, momentum 2, AdamW 3",
    about="A few FLOPs for every number moved: memory-bound; most of the traffic is the optimizer's state.",
    axes=("n", "arrays"),
    limits={"n": 2**30, "arrays": len(FLOPS)},
    default_sizes=(10_000, 100_000, 1_000_000, 4_000_000),
    shape_of_size=lambda size: Shape.of(n=size, arrays=3),
    inputs=lambda shape: ((shape["n"],), (shape["arrays"], shape["n"])),
    output=lambda shape: (shape["arrays"], shape["n"]),
    nominal_flops=lambda shape: shape["arrays"] == len(FLOPS),  # AdamW has a root and a division
    flop_count=lambda shape: FLOPS[shape["arrays"] - 1] * shape["n"],
    reference=_reference,
    reduction_length=lambda _: 2,
    scale=_scale,
    implementations=(
        row(
            "numpy",
            "a NumPy call for each operation, a pass over the arrays each; 16 bits through fp32",
            one_thread=EVERY_DTYPE,
        ),
        row("numba_cpu", "a parallel Numba loop: every array passes through memory once"),
        row("torch", "a torch call for each operation, a kernel each", vendor_library=True),
        row("torch_compile", "torch.compile of all operations, fused into one kernel"),
    ),
    examples=(
        Example(Shape.of(n=5, arrays=1), flop_count=10, fp32_bytes=4 * 15, terms=2),
        Example(Shape.of(n=5, arrays=2), flop_count=20, fp32_bytes=4 * 25, terms=2),
        Example(Shape.of(n=5, arrays=3), flop_count=70, fp32_bytes=4 * 35, terms=2),
    ),
    presets=(
        Preset("sgd", Shape.of(n=623_290, arrays=1), "the 784-784-10 network's weights by SGD: 7.5 MB in fp32"),
        Preset("momentum", Shape.of(n=623_290, arrays=2), "the same with momentum, 12.5 MB: 5/3 of SGD's bytes"),
        Preset("adamw", Shape.of(n=623_290, arrays=3), "the same by AdamW, 17.5 MB: 7/3 of SGD's bytes"),
    ),
    halved=lambda shape: Shape.of(n=max(1, shape["n"] // 2), arrays=shape["arrays"]),
    prepared=_prepared,
    quantities=lambda inputs: tuple(slice(row, row + 1) for row in range(len(inputs[1]))),
    roundings=lambda shape: 2 * shape["arrays"],  # torch rounds what each of its calls stores
    calls=lambda shape: (1, 2, 8)[shape["arrays"] - 1],
    awkward=((1, 1), (255, 1), (257, 2), (1, 3), (257, 3)),
    simulated=((1, 1),),
)
