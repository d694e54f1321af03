"""The steps of a forward pass: the buffers each one makes, what it keeps for its backward, its weights.

As in PyTorch, a step keeps what its derivative needs: a product its inputs, a ReLU its output, a sum nothing. Under
autocast products get copies of their inputs and weights in the narrow dtype; norms, softmax and the loss are in fp32.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes as a straight line over the batch: `fixed` ones, and `per_sample` ones for each sample of it.

    Everything a training step allocates is one or the other, so a peak is the largest of some lines, and the largest
    batch that fits follows without trying batches.
    """

    fixed: int = 0
    per_sample: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(self.fixed + other.fixed, self.per_sample + other.per_sample)

    def __sub__(self, other: "Size") -> "Size":
        return Size(self.fixed - other.fixed, self.per_sample - other.per_sample)

    def at(self, batch: int) -> int:
        """Return the bytes of `batch` samples."""
        return self.fixed + batch * self.per_sample

    def largest_batch(self, capacity_bytes: int) -> int | None:
        """Return the largest batch within `capacity_bytes`, 0 where none is; None where every batch is."""
        if self.fixed > capacity_bytes:
            return 0
        return (capacity_bytes - self.fixed) // self.per_sample if self.per_sample else None


NOTHING = Size()
FULL_BYTES = 4  # of fp32


@dataclass(frozen=True, slots=True)
class Work:
    """Matrix products of a step, for one sample, on one of the GPUs that share them.

    Attributes:
        kind: "linear": rows, terms, columns; "experts": rows, terms, columns, experts, and those that a token goes to;
            "conv2d": channels, height and width of the result, kernels, kernel size, and 0; "attention": heads,
            queries, keys, width of a head, and 1 with a causal mask; "products": products, rows, terms, columns.
        sizes: the numbers that `kind` names.
        reduced_count: elements of a result that several GPUs have to add up.
        cached_count: elements of a token's keys and values that attention reads, and a server keeps.
    """

    kind: Literal["linear", "experts", "conv2d", "attention", "products"]
    sizes: tuple[int, ...]
    reduced_count: int = 0
    cached_count: int = 0


@dataclass(frozen=True, slots=True)
class TapeStep:
    """One kernel of the forward pass, and what its backward needs.

    Attributes:
        layer: index of its layer in the tape's `layers`.
        inputs: buffers it reads.
        outputs: buffers it makes: the result first, then masks and statistics.
        kept: buffers that stay until its backward.
        weights: indices of weights whose gradients its backward makes.
        copies_weights: under autocast: a product, which computes with narrow copies of its weights.
        keeps_copies: whether its backward needs them: that of a dense layer only for the gradient of its input.
        scratch: further memory while it runs, in either direction.
        passes_gradient: its backward hands its gradient on: no further buffer.
        in_place: the result takes the memory of the input.
        work: its matrix products; None for a step that computes element by element.
    """

    layer: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    kept: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()
    copies_weights: bool = False
    keeps_copies: bool = True
    scratch: Size = NOTHING
    passes_gradient: bool = False
    in_place: bool = False
    work: Work | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor on its way through the layers: its buffer, its shape without the batch, the bytes of an element.

    `is_shared`: each GPU of a tensor-parallel group has its share of the last axis.
    """

    buffer: int
    shape: tuple[int, ...]
    itemsize: int
    is_shared: bool = False

    @property
    def element_count(self) -> int:
        """Elements of one sample."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class How:
    """The options of a step.

    Attributes:
        keeps: what its backward needs.
        extras: buffers of masks and statistics it makes and keeps.
        weights: indices of its weights.
        is_product: autocast computes it in the narrow dtype.
        keeps_weights: as a convolution does, even where its input has no gradient.
        itemsize: bytes of an element of the result; None for the widest of the inputs.
        scratch_elements: of the result's dtype, per sample, in use while it runs.
        is_shared: whether each GPU makes a share of the result's last axis; None: as the inputs.
        passes_gradient, in_place, work: as of `TapeStep`.
    """

    keeps: Literal["inputs", "output", "both", "nothing"] = "nothing"
    extras: Sequence[int] = ()
    weights: Sequence[int] = ()
    is_product: bool = False
    keeps_weights: bool = False
    itemsize: int | None = None
    scratch_elements: int = 0
    is_shared: bool | None = None
    passes_gradient: bool = False
    in_place: bool = False
    work: Work | None = None


PLAIN = How()


@dataclass(slots=True)
class Tape:
    """Records the steps of a model, layer by layer.

    Attributes:
        itemsize: bytes of a parameter, and of whatever no layer converts.
        narrow_itemsize: bytes of the dtype that autocast uses; None without autocast.
        buffers: the memory of each tensor.
        differentiable: buffers that need a gradient: those that depend on weights.
        weights: how many numbers each trained tensor has.
        layers: the label of each layer; what is recorded is of the last one.
        items: the first step of each layer that a checkpoint can stand before.
        running_count: numbers that are no parameters: running means and variances.
        label_count: labels of a sample.
        parallel: GPUs that share each layer: tensor parallelism.
        context: tokens that are in the cache of keys and values before those that are computed.
        encoded: what encoders made, by its axes: 1 for a vector, as of a time step, 2 for tokens, as of sound or text;
            later layers read it beside their input.
        outer: the value that an open encoder leaves, and the first step of it.
    """

    itemsize: int
    narrow_itemsize: int | None = None
    parallel: int = 1
    context: int = 0
    buffers: list[Size] = field(default_factory=list)
    differentiable: set[int] = field(default_factory=set)
    weights: list[int] = field(default_factory=list)
    steps: list[TapeStep] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)
    items: list[int] = field(default_factory=list)
    running_count: int = 0
    label_count: int = 1
    encoded: dict[int, Value] = field(default_factory=dict)
    outer: list[tuple[Value, int]] = field(default_factory=list)

    def source(self, shape: tuple[int, ...], itemsize: int) -> Value:
        """Return the data of a batch, which nothing computes."""
        return self._value(shape, itemsize, False, needs_gradient=False)

    def weight(self, element_count: int) -> int:
        """Add a trained tensor and return its index."""
        self.weights.append(element_count)
        return len(self.weights) - 1

    def extra(self, size: Size) -> int:
        """Return a buffer for a mask or statistics: it has no gradient."""
        self.buffers.append(size)
        return len(self.buffers) - 1

    def cast(self, value: Value, precision: Literal["narrow", "full"]) -> Value:
        """Return `value` in the dtype that autocast uses for such a step: a copy where it has another."""
        wanted = self.narrow_itemsize and {"narrow": self.narrow_itemsize, "full": FULL_BYTES}[precision]
        if wanted is None or wanted == value.itemsize:
            return value
        copy = self._value(value.shape, wanted, value.is_shared, needs_gradient=value.buffer in self.differentiable)
        self.steps.append(TapeStep(len(self.layers) - 1, (value.buffer,), (copy.buffer,)))
        return copy

    def record(self, inputs: Sequence[Value], shape: Sequence[int], how: How = PLAIN) -> Value:
        """Record a step and return its result.

        Args:
            inputs: what it reads, in the dtype it computes in.
            shape: of the result, without the batch.
            how: what it keeps, its weights, and whether it works in place.
        """
        input_needs = any(value.buffer in self.differentiable for value in inputs)
        needs = bool(how.weights) or input_needs
        itemsize = how.itemsize or max(value.itemsize for value in inputs)
        is_shared = any(value.is_shared for value in inputs) if how.is_shared is None else how.is_shared
        result = self._value(tuple(shape), itemsize, is_shared, needs_gradient=needs)
        read = tuple(value.buffer for value in inputs)
        kept = {"inputs": read, "output": (result.buffer,), "both": (*read, result.buffer), "nothing": ()}[how.keeps]
        self.steps.append(
            TapeStep(
                layer=len(self.layers) - 1,
                inputs=read,
                outputs=(result.buffer, *how.extras),
                kept=(*kept, *how.extras) if needs else (),
                weights=tuple(how.weights),
                copies_weights=how.is_product and self.narrow_itemsize is not None,
                keeps_copies=how.keeps_weights or input_needs,
                scratch=Size(0, how.scratch_elements * itemsize),
                passes_gradient=how.passes_gradient,
                in_place=how.in_place,
                work=how.work,
            )
        )
        return result

    def _value(self, shape: tuple[int, ...], itemsize: int, is_shared: bool, *, needs_gradient: bool) -> Value:
        buffer = self.extra(Size(0, prod(shape) * itemsize))
        if needs_gradient:
            self.differentiable.add(buffer)
        return Value(buffer, shape, itemsize, is_shared)
