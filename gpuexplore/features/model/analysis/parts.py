"""Operations of a model with their shapes: what one GPU computes in a step, equal ones counted together.

Products of one input are one product, as queries, keys and values are in servers and compiled code. FLOPs count a
multiply-add as 2; those of attention with a causal mask count the pairs it leaves.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, prod
from typing import Literal

from gpuexplore.core import InvalidInput, Shape
from gpuexplore.features.model.analysis import ITEMSIZES, OPTIMIZERS, SERVED, Training
from gpuexplore.features.model.analysis.models import LayeredModel, tape_of
from gpuexplore.features.model.analysis.plan import ModelPlan
from gpuexplore.features.model.analysis.tape import NOTHING, Tape, TapeStep, Work
from gpuexplore.operations import operation_named

Group = Literal["products", "attention", "elementwise", "optimizer"]
BACKWARD: Mapping[str, float] = {  # times of the forward pass
    "attention": 2.5,  # five products instead of two, with the scores computed again
    "elementwise": 1.5,  # a gradient and what was kept are read, a gradient is written
}
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
        widest: features of the widest result of a dense product.
        passed_bytes: of what one block hands to the next.
    """

    parts: tuple[Part, ...]
    steps: int
    reduced_bytes: tuple[tuple[float, int], ...]
    layers: int
    weights: int
    widest: int = 0
    passed_bytes: float = 0.0


def itemsize_of(dtype: str) -> float:
    """Return the bytes of a number of a dtype that products or servers use."""
    return {"tf32": 4.0}.get(dtype) or SERVED.get(dtype) or float(ITEMSIZES[dtype])


def tokens_of(model: LayeredModel, plan: ModelPlan) -> int:
    """Return the tokens of a sequence, or of a prompt; 0 for a model that reads none.

    Raises:
        InvalidInput: the model generates no tokens, and is asked for some.
    """
    if not model.generates and plan.task not in {"train", "prefill"}:
        raise InvalidInput.of("task", plan.task, f"train and prefill: {model.title} generates no tokens")
    if plan.tokens and not (model.tokens or model.is_own):
        raise InvalidInput.of("tokens", plan.tokens, f"none: {model.title} does not read tokens")
    return plan.tokens * bool(model.tokens) or (model.tokens if plan.is_trained else model.prompt)


@lru_cache(maxsize=1024)
def forward_pass(model: LayeredModel, plan: ModelPlan, *, context: int = 0) -> Pass:
    """Return what a forward pass computes on one GPU: of whole sequences, or of one token with a `context`.

    Raises:
        InvalidInput: a layer or a setting cannot be; names it.
    """
    tokens = 1 if context else tokens_of(model, plan)
    dtype = "fp32" if plan.dtype in ("fp32", "tf32") else "fp16" if plan.dtype == "fp16" else "bf16"
    counts = step_counts(
        model,
        Training(dtype, tokens=tokens),
        context,
        (plan.tensor_parallel, plan.is_trained, plan.fused_attention),
    )
    itemsize = ITEMSIZES[dtype]
    works = {work: count for work, count in counts.items() if isinstance(work, Work)}
    linears = [work for work in works if work.kind == "linear"]
    head = linears[-1] if model.tokens and linears else None  # logits stay in 16 bits
    parts = [
        replace(part, count=count)
        for work, count in works.items()
        for part in _product(work, plan, (itemsize, context, work == head))
    ]
    moved = (counts["fixed"] + plan.batch * counts["per sample"]) * (1.0 if plan.execution == "eager" else FUSED)
    moves = counts["moves"]
    if moves:  # above a launch a copy's time is a straight line, so all of them take as long as so many mean ones
        parts.append(replace(elements_part(moved / moves, itemsize), count=moves))
    return Pass(
        tuple(parts),
        moves + sum(works.values()),
        tuple(
            (work.reduced_count * plan.batch * itemsize, count) for work, count in works.items() if work.reduced_count
        ),
        max(1, sum(count for work, count in works.items() if work.kind in ("attention", "conv2d"))),
        counts["weights"],
        max((key[1] for key in counts if isinstance(key, tuple)), default=0),
        plan.batch * max(1, tokens) * next((layer.sizes[-1] for layer in model.layers if layer.sizes), 0) * itemsize,
    )


@lru_cache(maxsize=512)
def step_counts(
    model: LayeredModel, setup: Training, context: int = 0, how: tuple[int, bool, bool] = (1, False, True)
) -> Counter[Work | str | tuple[str, int]]:
    """Return how often each work is in a pass, and the bytes of element-wise steps, of fixed size and per sample.

    What repeats is recorded two and three times, and counted as often as it is there.

    Args:
        how: GPUs that share each layer, whether it is trained, and whether attention is fused.
    """
    layers = model.layers
    parallel, is_trained, is_fused = how
    if not is_fused:
        layers = tuple(replace(layer, settings={**layer.settings, "fused": 0}) for layer in layers)
    start, period, times = _repeated(model)
    found = []
    for kept in (2, 3) if times > 3 else (times,):
        some = replace(model, layers=layers[: start + kept * period] + layers[start + times * period :])
        found.append(_counted(tape_of.__wrapped__(some, setup, parallel, context), model, is_trained=is_trained))
    counts = Counter({key: count + (times - 3) * (count - found[0][key]) for key, count in found[-1].items()})
    if counts["weights"] >= 10**13:  # tape_of names the first layer that is too much
        tape_of(model, setup)
    return counts


@lru_cache(maxsize=64)
def _repeated(model: LayeredModel) -> tuple[int, int, int]:
    """Return where the longest repeated layers begin, how many they are, and how often they are there."""
    layers = model.layers
    found = [(0, 0, 1)]
    first: dict[int, int] = {}
    for at, layer in enumerate(layers):
        start = first.setdefault(layer.line, at)
        period = at - start
        if period and layer.line <= layers[at - 1].line and period != found[-1][1]:
            times = 1
            while layers[at + (times - 1) * period : at + times * period] == layers[start:at]:
                times += 1
            found.append((start, period, times))
    return max(found, key=lambda each: each[1] * (each[2] - 1))


def _counted(tape: Tape, model: LayeredModel, *, is_trained: bool) -> Counter[Work | str | tuple[str, int]]:
    head = next((step for step in reversed(tape.steps) if step.work and step.work.kind == "linear"), tape.steps[0])
    tables = sum(tape.weights[index] for index in {0, *head.weights})  # embedding and logits, which may be one table
    counts: Counter[Work | str | tuple[str, int]] = Counter({"weights": sum(tape.weights), "tables": tables})
    counts.update(("width", step.work.sizes[2]) for step in tape.steps if step.work and step.work.kind == "linear")
    for step in _needed(tape, model, is_trained=is_trained):
        if step.work:
            counts[step.work] += 1
            continue
        size = sum((tape.buffers[buffer] for buffer in (*step.inputs, *step.outputs)), NOTHING)
        counts.update({"moves": 1, "fixed": size.fixed, "per sample": size.per_sample})
    return counts


def _needed(tape: Tape, model: LayeredModel, *, is_trained: bool) -> list[TapeStep]:
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
    if is_trained:
        return merged
    last = max((at for at, step in enumerate(merged) if step.work and step.work.kind == "linear"), default=-1)
    kept = merged[: last + 1]
    head = kept[last].work if kept else None
    if model.tokens and head:
        kept[last] = replace(kept[last], work=replace(head, sizes=(1, *head.sizes[1:])))
    return kept


def elements_part(moved: float, itemsize: int, group: Group = "elementwise", name: str = "element-wise") -> Part:
    """Return the part that moves so many bytes: as long as a copy that does."""
    dtype = "bf16" if itemsize == 2 else "fp32"
    limit = operation_named("copy").limits["n"]
    wanted = max(1, ceil(moved / 2 / itemsize))
    calls = max(1.0, wanted / limit)
    return Part(name, group, "copy", Shape.of(n=min(wanted, limit)), dtype, 1, calls, 0.0, float(moved))


def _product(work: Work, plan: ModelPlan, how: tuple[int, int, bool]) -> Iterator[Part]:
    """Yield the parts of a work; `how`: bytes of an element, cached tokens, whether it makes the logits."""
    itemsize, context, is_head = how
    batch = plan.batch
    if work.kind == "attention":
        yield _attention(work, plan, itemsize, context)
        return
    if work.kind == "products":
        count, rows, terms, columns = work.sizes
        shape = Shape.of(outer=batch, inner=count, m=rows, k=terms, n=columns, right=batch * count)
        moved = batch * count * (rows * terms + terms * columns + rows * columns) * itemsize
        flop_count = 2.0 * batch * count * rows * terms * columns
        yield Part("attention", "attention", "batched_matmul", shape, _own(plan), 1, 1.0, flop_count, moved)
        return
    if work.kind == "conv2d":
        channels, height, width, kernels, kernel = work.sizes
        shape = Shape.of(b=batch, c=channels, h=height, w=width, o=kernels, r=kernel)
        weight_count = channels * kernels * kernel**2
        flop_count = 2.0 * batch * height * width * weight_count
        moved = (batch * height * width * (channels + kernels) + weight_count) * itemsize
        name = f"conv {kernel} × {kernel}, {channels} → {kernels}"
        yield Part(name, "products", "conv2d", shape, _own(plan), 1, 1.0, flop_count, moved, weight_count * itemsize)
        return
    yield _linear(work, plan, itemsize, is_head=is_head)


def _own(plan: ModelPlan) -> str:
    """Return the dtype of products that fp8 is not used for."""
    return "bf16" if plan.dtype == "fp8" else plan.dtype


def _linear(work: Work, plan: ModelPlan, itemsize: int, *, is_head: bool) -> Part:
    rows, terms, columns, *experts = work.sizes
    rows *= plan.batch
    dtype = _own(plan) if is_head else plan.dtype
    own = itemsize_of(dtype)
    stored = own if plan.is_trained or is_head else min(own, itemsize_of(plan.weight_dtype))
    # of the experts, those that a token of the batch goes to
    used = 1.0
    if experts:
        count, active = experts
        used = count * (1 - (1 - active / count) ** (rows / active))
    weight_count = terms * columns * used
    moved = rows * (terms + columns) * itemsize + weight_count * stored
    name = f"{'experts' if experts else 'linear'} {terms} → {columns}"
    if experts and rows < 128 * used:  # each reads its weights for longer than it computes with them
        part = elements_part(moved, itemsize, "products", name)
        return replace(part, flop_count=2.0 * rows * terms * columns, weight_bytes=weight_count * stored)
    part = product_part((rows, terms, columns), dtype, moved)
    return replace(part, name=name, weight_bytes=weight_count * stored, saved_bytes=weight_count * (own - stored))


def product_part(lengths: tuple[int, int, int], dtype: str, moved: float) -> Part:
    """Return the part of a product of `lengths`, rows, terms and columns, that moves so many bytes."""
    rows, terms, columns = lengths
    calls, shape = within_limits("linear", Shape.of(b=rows, d=terms, k=columns))
    name = f"linear {terms} → {columns}"
    return Part(name, "products", "linear", shape, dtype, 1, calls, 2.0 * rows * terms * columns, moved)


def _attention(work: Work, plan: ModelPlan, itemsize: int, context: int) -> Part:
    heads, queries, keys, head, is_causal = work.sizes
    flop_count = 4.0 * plan.batch * heads * queries * keys * head
    if context:
        moved = plan.batch * keys * work.cached_count * itemsize_of(plan.cache_dtype)
        part = elements_part(moved, itemsize, "attention", "attention to the KV cache")
        return replace(part, flop_count=flop_count)
    limits = operation_named("attention").limits
    # of others' tokens as long as a square of as many pairs; a window leaves a share of those before it
    side = queries if is_causal else (queries * keys) ** 0.5
    length = max(1, round(side * plan.longest**0.5))  # few long prompts take longer than equal ones
    shorter = min(length, limits["s"])
    calls = (length / shorter) ** 2 / plan.longest**0.5
    axes = {"b": plan.batch, "h": heads, "s": shorter, "d": min(head, limits["d"])}
    shape = Shape.of(**axes, causal=1) if is_causal else Shape.of(**axes)
    if is_causal:
        pairs = keys * (keys + 1) / 2 + (queries - keys) * keys
        flop_count *= pairs / (queries * keys)
        calls *= pairs / (queries * (queries + 1) / 2)
    moved = 4.0 * plan.batch * heads * queries * head * itemsize
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
            yield replace(part, name=name, calls=part.calls * BACKWARD["attention"], flop_count=2 * part.flop_count)
        elif part.group == "elementwise":
            yield replace(part, name=name, calls=part.calls * BACKWARD["elementwise"])
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
