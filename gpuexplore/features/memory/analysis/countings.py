"""Row C4 of the notebooks says AlexNet needs 1.1 GB at batch 128 and VGG-16 about 14: what one may have counted.

The notebook does not say what it counted, so no row here is claimed to be its way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuexplore.features.memory.analysis.layers.tape import Tape, TapeStep
from gpuexplore.features.memory.analysis.models import LayeredModel, model_named, tape_of
from gpuexplore.features.memory.analysis.setup import OPTIMIZERS, Training
from gpuexplore.features.memory.analysis.training import training_memory

BATCH = 128
MODELS = ("alexnet-2012", "alexnet", "vgg-16")
SAID_BYTES = {"alexnet-2012": 1.1e9, "alexnet": 1.1e9, "vgg-16": 14e9}
DISCLAIMER = "The notebook does not say what it counted: none of these is claimed to be its way."
PUBLISHED = (
    "vDNN (arXiv 1602.08124) has 28 GB for VGG-16 at batch 256: half of that is 14 GB at 128, if all of it went with "
    "the batch."
)


@dataclass(frozen=True, slots=True)
class Counting:
    """One way to count the memory of a training step at batch 128 in fp32.

    Attributes:
        rule: what is counted.
        bytes_by_model: by name of the model.
    """

    rule: str
    bytes_by_model: dict[str, int]


def countings() -> tuple[Counting, ...]:
    """Return the ways to count, those of a training step's peak first."""
    peaks = [_peak(optimizer) for optimizer in ("sgd", "momentum", "adamw")]
    return (*peaks, *(Counting(rule, _by_model(terms)) for rule, terms in RULES))


def _peak(optimizer: str) -> Counting:
    found = {name: training_memory(name, BATCH, Training(optimizer=optimizer)).total_bytes for name in MODELS}
    return Counting(f"peak of a training step with {OPTIMIZERS[optimizer].title}, as PyTorch allocates", found)


@dataclass(frozen=True, slots=True)
class _Terms:
    """Bytes to add up: parameters, outputs of layers with ReLU in place, ReLU's outputs, the largest output."""

    parameters: int
    outputs: int
    relu_outputs: int
    largest_output: int


def _terms(model: LayeredModel) -> _Terms:
    tape = tape_of(model, Training())
    sizes = [_output_bytes(tape, step) for step in _layer_steps(tape)]
    relu = sum(_output_bytes(tape, step) for step in tape.steps if step.in_place)
    return _Terms(sum(tape.weights) * tape.itemsize, sum(sizes), relu, max(sizes))


def _layer_steps(tape: Tape) -> Sequence[TapeStep]:
    """Return the steps whose results are maps of their own: products and pools, not what works in place."""
    return [step for step in tape.steps if step.weights or tape.layers[step.layer].startswith("max pool")]


def _output_bytes(tape: Tape, step: TapeStep) -> int:
    return tape.buffers[step.outputs[0]].size.at(BATCH)


RULES = (
    ("outputs of convolutions, pools and dense layers, once", ("outputs",)),
    ("the same, with parameters and gradients", ("outputs", "parameters", "parameters")),
    (
        "the same, with two gradient maps of the largest output",
        ("outputs", "parameters", "parameters", "largest_output", "largest_output"),
    ),
    (
        "outputs and separate ReLU outputs, parameters, gradients",
        ("outputs", "relu_outputs", "parameters", "parameters"),
    ),
    ("every map and parameter twice: value and gradient", ("outputs", "outputs", "parameters", "parameters")),
)


def _by_model(terms: Sequence[str]) -> dict[str, int]:
    return {name: sum(getattr(_terms(model_named(name)), term) for term in terms) for name in MODELS}
