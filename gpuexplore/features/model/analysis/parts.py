"""Operations of a model with their shapes: what one GPU computes in a step, equal ones counted together.

Products of one input are one product, as queries, keys and values are in servers and compiled code. FLOPs count a
multiply-add as 2; those of attention with a causal mask count the pairs it leaves.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import Literal

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Shape
from gpuexplore.features.model.analysis import ITEMSIZES, OPTIMIZERS, SERVED, Training
from gpuexplore.features.model.analysis.models import LayeredModel, tape_of
from gpuexplore.features.model.analysis.plan import ModelPlan
from gpuexplore.features.model.analysis.tape import Tape, TapeStep, Work
from gpuexplore.operations import operation_named

Group = Literal["products", "attention", "elementwise", "optimizer"]
BACKWARD_OF_ATTENTION = 2.5  # of its forward pass: five products instead of two, with the scores computed again
BACKWARD_OF_ELEMENTS = 1.5  # a gradient and what was kept are read, a gradient is written
ROWS_OF_AN_EXPERT = 128  # fewer rows and its weights are read for longer than they are computed with
FUSED = 0.5  # of the bytes of element-wise operations, which fused kernels need not move


@dataclass(frozen=True, slots=True)
class Part:
    """Equal operations of a step on one GPU.

    Attributes:
        name: for readers, e.g. ``linear 4096 → 14336``.
        group: what its time is added to.
        operation: the call whose time it is predicted by.
        shape: axes of that call.
        dtype: of its products, or of its elements.
        count: how many of them there are in a step.
        calls: how many times that call takes as long as one of them.
        flop_count: of one.
        byte_count: that one has to move, at least.
        weight_bytes: of them those of weights, as they are stored.
        saved_bytes: of weights, that are not moved as they are stored in fewer bits than computed with.
    """

    name: str
    group: Group
    operation: str
    shape: Shape
    dtype: str
    count: int
    calls: float
    flop_count: float
    byte_count: float
    weight_bytes: float = 0.0
    saved_bytes: float = 0.0

    @property
    def whole_flop_count(self) -> float:
        """FLOPs of one, with attention to all tokens also where a causal mask leaves less."""
        axes = dict(self.shape.axes)
        is_causal = self.operation == "attention" and axes.get("causal")
        return self.flop_count * (2 * axes["s"] / (axes["s"] + 1) if is_causal else 1.0)


@dataclass(frozen=True, slots=True)
class Pass:
    """One way through a model on one GPU: its parts, and what is not in them.

    Attributes:
        parts: the operations.
        steps: kernels that a host launches, in eager mode.
        reduced_bytes: of each result that tensor-parallel GPUs add up, with how many there are.
        layers: blocks of attention or convolutions, that sharded weights are gathered for.
        weights: numbers of weights on this GPU.
        token_count: tokens, or samples of a model that reads none.
    """

    parts: tuple[Part, ...]
    steps: int
    reduced_bytes: tuple[tuple[float, int], ...]
    layers: int
    weights: int
    token_count: int


def itemsize_of(dtype: str) -> float:
    """Return the bytes of a number of a dtype that products or servers use."""
    return {"tf32": 4.0}.get(dtype) or SERVED.get(dtype) or float(ITEMSIZES[dtype])


def tokens_of(model: LayeredModel, plan: ModelPlan) -> int:
    """Return the tokens of a sequence, or of a prompt; 0 for a model that reads none.

    Raises:
        InvalidInput: the model reads no tokens, and is asked to generate some.
    """
    if not model.tokens:
        if plan.task not in {"train", "prefill"}:
            raise InvalidInput.of("task", plan.task, f"train and prefill: {model.title} reads no tokens")
        return 0
    return plan.tokens or min(model.tokens, 1024 if not plan.is_trained else model.tokens)


def forward_pass(model: LayeredModel, plan: ModelPlan, *, context: int = 0) -> Pass:
    """Return what a forward pass computes on one GPU: of whole sequences, or of one token with a `context`.

    Raises:
        InvalidInput: a layer or a setting cannot be; names it.
    """
    tokens = 1 if context else tokens_of(model, plan)
    tape = _tape(model, plan, tokens, context)
    steps = _needed(tape, model, plan)
    works = Counter(step.work for step in steps if step.work)  # most layers are alike
    parts = [replace(part, count=count) for work, count in works.items() for part in _product(tape, work, plan)]
    moved = [_moved_bytes(tape, step, plan) for step in steps if step.work is None]
    if moved:  # above a launch a copy's time is a straight line, so all of them take as long as so many mean ones
        parts.append(replace(elements_part(sum(moved) / len(moved), tape.itemsize), count=len(moved)))
    reduced = Counter(step.work.reduced_count for step in steps if step.work and step.work.reduced_count)
    return Pass(
        tuple(parts),
        len(steps),
        tuple((elements * plan.batch * tape.itemsize, count) for elements, count in reduced.items()),
        max(1, sum(1 for step in steps if step.work and step.work.kind in ("attention", "conv2d"))),
        sum(tape.weights),
        plan.batch * max(1, tokens),
    )


def _tape(model: LayeredModel, plan: ModelPlan, tokens: int, context: int) -> Tape:
    itemsize = "fp32" if plan.dtype in ("fp32", "tf32") else "fp16" if plan.dtype == "fp16" else "bf16"
    setup = Training(itemsize, tokens=tokens)
    if not plan.fused_attention:
        layers = tuple(replace(layer, settings={**layer.settings, "fused": 0}) for layer in model.layers)
        model = replace(model, name=f"{model.name}, unfused", layers=layers)
    return tape_of(model, setup, plan.tensor_parallel, context)


def _needed(tape: Tape, model: LayeredModel, plan: ModelPlan) -> list[TapeStep]:
    """Return the steps of a pass, products of one input merged; a server computes no loss, and logits of one token."""
    merged: list[TapeStep] = []
    readers: dict[int, int] = {}
    for step in tape.steps:
        work = step.work
        if work is None or work.kind != "linear":
            merged.append(step)
            continue
        at = readers.get(step.inputs[0])
        other = merged[at].work if at is not None else None
        if at is None or other is None or other.sizes[:2] != work.sizes[:2]:
            readers[step.inputs[0]] = len(merged)
            merged.append(step)
            continue
        sizes = (*work.sizes[:2], other.sizes[2] + work.sizes[2])
        outputs = (*merged[at].outputs, *step.outputs)
        merged[at] = replace(merged[at], work=replace(other, sizes=sizes), outputs=outputs)
    if plan.is_trained:
        return merged
    last = max((at for at, step in enumerate(merged) if step.work and step.work.kind == "linear"), default=-1)
    kept = merged[: last + 1]
    head = kept[last].work if kept else None
    if model.tokens and head:
        kept[last] = replace(kept[last], work=replace(head, sizes=(1, *head.sizes[1:])))
    return kept


def _moved_bytes(tape: Tape, step: TapeStep, plan: ModelPlan) -> float:
    """Return the bytes that an element-wise operation moves, for the whole batch."""
    moved = sum(tape.buffers[buffer].at(plan.batch) for buffer in (*step.inputs, *step.outputs))
    return moved if plan.execution == "eager" else FUSED * moved


def elements_part(moved: float, itemsize: int, group: Group = "elementwise", name: str = "element-wise") -> Part:
    """Return the part that moves so many bytes: as long as a copy that does."""
    dtype = "bf16" if itemsize == 2 else "fp32"
    limit = operation_named("copy").limits["n"]
    wanted = max(1, ceil(moved / 2 / itemsize))
    calls = max(1.0, wanted / limit)
    return Part(name, group, "copy", Shape.of(n=min(wanted, limit)), dtype, 1, calls, 0.0, float(moved))


def _product(tape: Tape, work: Work, plan: ModelPlan) -> Iterator[Part]:
    batch = plan.batch
    if work.kind == "attention":
        yield _attention(tape, work, plan)
        return
    if work.kind == "products":
        count, rows, terms, columns = work.sizes
        shape = Shape.of(outer=batch, inner=count, m=rows, k=terms, n=columns, right=batch * count)
        moved = batch * count * (rows * terms + terms * columns + rows * columns) * tape.itemsize
        flop_count = 2.0 * batch * count * rows * terms * columns
        yield Part("attention", "attention", "batched_matmul", shape, _own(plan), 1, 1.0, flop_count, moved)
        return
    if work.kind == "conv2d":
        channels, height, width, kernels, kernel = work.sizes
        shape = Shape.of(b=batch, c=channels, h=height, w=width, o=kernels, r=kernel)
        weight_count = channels * kernels * kernel**2
        flop_count = 2.0 * batch * height * width * weight_count
        moved = (batch * height * width * (channels + kernels) + weight_count) * tape.itemsize
        name = f"conv {kernel} × {kernel}, {channels} → {kernels}"
        yield Part(
            name, "products", "conv2d", shape, _own(plan), 1, 1.0, flop_count, moved, weight_count * tape.itemsize
        )
        return
    yield _linear(tape, work, plan)


def _own(plan: ModelPlan) -> str:
    """Return the dtype of products that fp8 is not used for."""
    return "bf16" if plan.dtype == "fp8" else plan.dtype


def _linear(tape: Tape, work: Work, plan: ModelPlan) -> Part:
    rows, terms, columns, *experts = work.sizes
    rows *= plan.batch
    is_head = columns * plan.tensor_parallel >= 30_000 and columns > 4 * terms  # logits stay in 16 bits
    dtype = _own(plan) if is_head else plan.dtype
    own = itemsize_of(dtype)
    stored = own if plan.is_trained or is_head else min(own, itemsize_of(plan.weight_dtype))
    # of the experts, those that a token of the batch goes to
    used = 1.0
    if experts:
        count, active = experts
        used = count * (1 - (1 - active / count) ** (rows / active))
    weight_count = terms * columns * used
    moved = rows * (terms + columns) * tape.itemsize + weight_count * stored
    name = f"{'experts' if experts else 'linear'} {terms} → {columns}"
    if experts and rows < ROWS_OF_AN_EXPERT * used:  # each reads its weights for a few rows
        part = elements_part(moved, tape.itemsize, "products", name)
        return replace(part, flop_count=2.0 * rows * terms * columns, weight_bytes=weight_count * stored)
    part = product_part((rows, terms, columns), dtype, moved)
    return replace(part, name=name, weight_bytes=weight_count * stored, saved_bytes=weight_count * (own - stored))


def product_part(lengths: tuple[int, int, int], dtype: str, moved: float) -> Part:
    """Return the part of a product of `lengths`, rows, terms and columns, that moves so many bytes."""
    rows, terms, columns = lengths
    calls, shape = within_limits("linear", Shape.of(b=rows, d=terms, k=columns))
    name = f"linear {terms} → {columns}"
    return Part(name, "products", "linear", shape, dtype, 1, calls, 2.0 * rows * terms * columns, moved)


def _attention(tape: Tape, work: Work, plan: ModelPlan) -> Part:
    heads, queries, keys, head, is_causal = work.sizes
    flop_count = 4.0 * plan.batch * heads * queries * keys * head
    if tape.context:
        moved = plan.batch * keys * work.cached_count * itemsize_of(plan.cache_dtype)
        part = elements_part(moved, tape.itemsize, "attention", "attention to the KV cache")
        return replace(part, flop_count=flop_count)
    limits = operation_named("attention").limits
    length = max(1, round(queries * plan.longest**0.5))  # few long prompts take longer than equal ones
    shorter = min(length, limits["s"])
    calls = (length / shorter) ** 2 / plan.longest**0.5
    axes = {"b": plan.batch, "h": heads, "s": shorter, "d": min(head, limits["d"])}
    shape = Shape.of(**axes, causal=1) if is_causal else Shape.of(**axes)
    if is_causal:
        flop_count *= (queries + 1) / (2 * queries)
    moved = 4.0 * plan.batch * heads * queries * head * tape.itemsize
    return Part("attention", "attention", "attention", shape, _own(plan), 1, calls, flop_count, moved)


def within_limits(operation: str, shape: Shape) -> tuple[float, Shape]:
    """Return a shape that the operation takes, and how many times its call takes as long as that of `shape`."""
    limits = operation_named(operation).limits
    within = Shape(tuple((axis, min(length, limits.get(axis, length))) for axis, length in shape.axes))
    return prod(shape) / prod(within), within


def backward_parts(forward: Sequence[Part]) -> Iterator[Part]:
    """Yield what the backward pass computes: two products for each, attention again, and the gradients' bytes."""
    for part in forward:
        name = f"{part.name}, backward"
        if part.operation == "linear":
            rows, terms, columns = part.shape
            # the gradients of its input and of its weights
            for axes in ((rows, columns, terms), (terms, rows, columns)):
                calls, shape = within_limits("linear", Shape(tuple(zip("bdk", axes, strict=True))))
                yield replace(part, name=name, shape=shape, calls=part.calls * calls)
        elif part.operation == "attention":
            yield replace(part, name=name, calls=part.calls * BACKWARD_OF_ATTENTION, flop_count=2 * part.flop_count)
        elif part.group == "elementwise":
            yield replace(part, name=name, calls=part.calls * BACKWARD_OF_ELEMENTS)
        else:
            yield replace(part, name=name, count=2 * part.count)


def optimizer_part(weights: float, plan: ModelPlan) -> Part:
    """Return the optimizer's step on one GPU, which reads and writes weights, gradients and state in fp32.

    With 16-bit products it writes a copy of the weights in 16 bits as well.
    """
    states = OPTIMIZERS[plan.optimizer].state_count
    copies = 0.5 if plan.dtype in ("bf16", "fp16", "fp8") else 0.0
    return elements_part(
        weights * 4 * (3 + 2 * states + copies), 4, "optimizer", f"{OPTIMIZERS[plan.optimizer].title} step"
    )
