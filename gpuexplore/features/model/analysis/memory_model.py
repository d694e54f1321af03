"""PyTorch's memory during a training step: who allocates when, and when it is let go.

Forward: a step allocates its result; an input goes with its last reader unless a backward keeps it. Backward, in the
reverse order: a step gets the gradient of its result, allocates those of its inputs and weights, then lets go what it
kept and the gradient it got. https://docs.pytorch.org/docs/stable/notes/autograd.html
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpuexplore.core.errors import require
from gpuexplore.features.model.analysis import Optimizer, Training
from gpuexplore.features.model.analysis.tape import FULL_BYTES, NOTHING, Size, Tape, TapeStep

KINDS_OF_MEMORY = (
    "parameters",
    "optimizer state",
    "gradients",
    "batch",
    "activations",
    "weight copies",
    "temporary",
)


@dataclass(frozen=True, slots=True)
class Moment:
    """The memory contents while a step runs, by kind, for any batch."""

    phase: str
    layer_index: int
    layer: str
    sizes: Mapping[str, Size] = field(hash=False)
    total: Size


@dataclass(slots=True)
class _Gradient:
    """Memory of a gradient on its way; several buffers may have the same."""

    size: Size
    references: int = 1


def moments_of(tape: Tape, setup: Training, optimizer: Optimizer) -> Iterator[Moment]:
    """Yield the moments of a training step in their order: forward, backward, the optimizer's step."""
    step = _TrainingStep(tape, accumulates=setup.accumulation > 1)
    weights = Size(sum(tape.weights) * tape.itemsize)
    step.take("parameters", weights + Size(tape.running_count * max(FULL_BYTES, tape.itemsize)))
    step.take("optimizer state", Size(weights.fixed * optimizer.state_count))
    step.take("batch", tape.buffers[0] + Size(0, tape.label_count * 8))  # labels are int64
    if setup.accumulation > 1:  # of the micro-batches before
        step.take("gradients", weights)
    segments = _segments(tape, setup.checkpoints)
    yield from step.forward(segments)
    for start, stop, is_checkpointed in reversed(segments):
        if is_checkpointed:
            yield from step.recompute(start, stop)
        yield from step.backward(start, stop)
    # what the optimizer's step needs for a moment comes on top of its state
    yield step.moment("optimizer step", -1, Size(weights.fixed * optimizer.scratch_count))


def _segments(tape: Tape, count: int) -> list[tuple[int, int, bool]]:
    """Cut the steps as `checkpoint_sequential` does: all segments but the last are recomputed."""
    steps = len(tape.steps)
    if not count:
        return [(0, steps, False)]
    most = len(tape.items)
    require(count <= most, "checkpoints", count, f"whole numbers from 0 to {most}, the layers to cut between")
    cuts = [tape.items[segment * (most // count)] for segment in range(count)]
    return [(start, stop, stop != steps) for start, stop in zip(cuts, [*cuts[1:], steps], strict=True)]


class _TrainingStep:
    """Memory while the steps of a tape run."""

    def __init__(self, tape: Tape, *, accumulates: bool) -> None:
        self._tape = tape
        self._sizes: dict[str, Size] = dict.fromkeys(KINDS_OF_MEMORY, NOTHING)
        self._readers = Counter(buffer for step in tape.steps for buffer in step.inputs)
        self._references: Counter[int] = Counter()
        self._gradients: dict[int, _Gradient] = {}
        self._copies: set[int] = set()
        self._has_gradient: set[int] = set(range(len(tape.weights))) if accumulates else set()
        self._uses_left = Counter(weight for step in tape.steps for weight in step.weights)
        self._summed: dict[int, bool] = {}  # weights that several steps use: whether their sum so far is a view

    def take(self, kind: str, size: Size) -> None:
        self._sizes[kind] += size

    def moment(self, phase: str, layer_index: int, further: Size = NOTHING) -> Moment:
        sizes = {**self._sizes, "temporary": self._sizes["temporary"] + further}
        layer = self._tape.layers[layer_index] if layer_index >= 0 else ""
        return Moment(phase, layer_index, layer, sizes, sum(sizes.values(), NOTHING))

    def forward(self, segments: Sequence[tuple[int, int, bool]]) -> Iterator[Moment]:
        """Run every step; of a checkpointed segment only the input stays."""
        for start, stop, is_checkpointed in segments:
            if is_checkpointed:
                self._references[self._tape.steps[start].inputs[0]] += 1
            yield from self._run("forward", start, stop, keeps=not is_checkpointed)
        self._forget_copies()  # autocast ends with the forward pass

    def recompute(self, start: int, stop: int) -> Iterator[Moment]:
        """Run a checkpointed segment again, as far as its backward needs it, and keep what that is.

        PyTorch stops as soon as all is there: `set_checkpoint_early_stop` of torch.utils.checkpoint.
        """
        last = max((index for index in range(start, stop) if self._tape.steps[index].kept), default=None)
        if last is not None:
            yield from self._run_again(start, last)
        self._forget_copies()
        self._release(self._tape.steps[start].inputs[0])

    def _run_again(self, start: int, last: int) -> Iterator[Moment]:
        """Run the steps before `last`, and that one too where what it keeps is a result of its own."""
        step = self._tape.steps[last]
        is_run = bool({*step.kept} & {*step.outputs})
        stop = last + is_run
        self._readers.update(buffer for again in self._tape.steps[start:stop] for buffer in again.inputs)
        if not is_run:
            self._references.update(step.kept)
        yield from self._run("recomputation", start, stop, keeps=True)
        if not is_run:
            self._copy(step)
            self._references.update(_kept_copies(step))

    def _run(self, phase: str, start: int, stop: int, *, keeps: bool) -> Iterator[Moment]:
        for step in self._tape.steps[start:stop]:
            yield self._forward_step(phase, step, keeps=keeps)

    def _forward_step(self, phase: str, step: TapeStep, *, keeps: bool) -> Moment:
        self._copy(step)
        source = step.inputs[0]
        takes_over = step.in_place and self._readers[source] + self._references[source] == 1  # its last reader
        if takes_over:
            self._read(step)
        result, *extras = step.outputs
        kept = [extra for extra in extras if keeps and extra in step.kept]
        for buffer in (result, *kept):
            self.take("activations", self._tape.buffers[buffer])
        if keeps:
            self._references.update(step.kept)
            self._references.update(_kept_copies(step))
        # masks and statistics that nothing needs go when the step is done
        unneeded = sum((self._tape.buffers[extra] for extra in extras if extra not in kept), NOTHING)
        moment = self.moment(phase, step.layer, step.scratch + unneeded)
        if not takes_over:
            self._read(step)
        self._free_if_unused(result)
        return moment

    def _read(self, step: TapeStep) -> None:
        for buffer in step.inputs:
            self._readers[buffer] -= 1
            self._free_if_unused(buffer)

    def _release(self, buffer: int) -> None:
        self._references[buffer] -= 1
        self._free_if_unused(buffer)

    def _free_if_unused(self, buffer: int) -> None:
        if self._readers[buffer] <= 0 and self._references[buffer] <= 0 and buffer:  # the batch stays
            self._sizes["activations"] -= self._tape.buffers[buffer]

    def _copy(self, step: TapeStep) -> None:
        """Copy a step's weights into the narrow dtype, once in each forward pass: autocast remembers the copies."""
        for copy in {*_copies_of(step)} - self._copies:
            self._copies.add(copy)
            self._references[copy] += 1
            self.take("weight copies", self._narrow(copy))

    def _narrow(self, copy: int) -> Size:
        return Size(self._tape.weights[-1 - copy] * (self._tape.narrow_itemsize or 0))

    def _forget_copies(self) -> None:
        for copy in self._copies:
            self._release_copy(copy)
        self._copies.clear()

    def _release_copy(self, copy: int) -> None:
        self._references[copy] -= 1
        if self._references[copy] == 0:
            self._sizes["weight copies"] -= self._narrow(copy)

    def backward(self, start: int, stop: int) -> Iterator[Moment]:
        """Run the steps backward, the last one first."""
        for step in reversed(self._tape.steps[start:stop]):
            if step.outputs[0] in self._tape.differentiable:
                yield from self._backward_step(step)

    def _backward_step(self, step: TapeStep) -> Iterator[Moment]:
        got = self._gradients.pop(step.outputs[0], _Gradient(NOTHING))
        added = self._input_gradients(step, got)
        narrow = sum((self._narrow(copy) for copy in _copies_of(step)), NOTHING)
        fresh = NOTHING if step.copies_weights else self._weight_gradients(step)
        yield self.moment("backward", step.layer, step.scratch + narrow + fresh)
        for gradient in (*added, got):
            gradient.references -= 1
            if gradient.references == 0:
                self._sizes["temporary"] -= gradient.size
        for buffer in step.kept:
            self._release(buffer)
        for copy in _kept_copies(step):
            self._release_copy(copy)
        if step.copies_weights:
            yield self.moment("backward", step.layer, narrow + self._weight_gradients(step))

    def _input_gradients(self, step: TapeStep, got: _Gradient) -> list[_Gradient]:
        """Make the gradients of a step's inputs, and return those that are only added to what came before."""
        added = []
        for buffer in step.inputs:
            size = self._tape.buffers[buffer]
            if buffer not in self._tape.differentiable:
                continue
            if step.passes_gradient and got.size == size:
                got.references += 1
                gradient = got
            else:
                gradient = _Gradient(size)
                self.take("temporary", size)
            if buffer in self._gradients:
                added.append(gradient)
            else:
                self._gradients[buffer] = gradient
        return added

    def _weight_gradients(self, step: TapeStep) -> Size:
        """Take the gradients of a step's weights; return what is only added to gradients that were there."""
        added = NOTHING
        for weight in step.weights:
            size = Size(self._tape.weights[weight] * self._tape.itemsize)
            self._uses_left[weight] -= 1
            if weight in self._summed or self._uses_left[weight]:
                added += self._sum_up(weight, size, is_view=not step.copies_weights)
            if self._uses_left[weight]:
                continue
            if weight in self._has_gradient:
                added += size
            else:
                self._has_gradient.add(weight)
                self.take("gradients", size)
        return added

    def _sum_up(self, weight: int, size: Size, *, is_view: bool) -> Size:
        """Add a gradient to the sum for a weight that several steps use; return what that takes for a moment.

        The first one waits for the others. That of a product is transposed, a view: no sum is made in it
        (`can_accumulate_inplace` in torch/csrc/autograd/input_buffer.cpp), but in a third tensor.
        """
        if weight not in self._summed:
            self._summed[weight] = is_view
            self.take("temporary", size)
            return NOTHING
        added = size + size if self._summed[weight] else size
        self._summed[weight] = False
        if not self._uses_left[weight]:
            self._sizes["temporary"] -= size
        return added


def _copies_of(step: TapeStep) -> tuple[int, ...]:
    """Return the keys of the copies of weights among the references: buffers count from 0, copies from -1 down."""
    return tuple(-1 - weight for weight in step.weights) if step.copies_weights else ()


def _kept_copies(step: TapeStep) -> tuple[int, ...]:
    return _copies_of(step) if step.keeps_copies else ()
