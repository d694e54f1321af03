"""Arguments of a training: what to train and how, each checked before anything runs. Loads no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import log, prod

import psutil

from gpuexplore.core import (
    Device,
    InvalidInput,
    Shape,
    TooLarge,
    check_known,
    in_any_case,
    read_number,
    read_whole,
    require,
    whole_typed,
)
from gpuexplore.operations import Operation, operation_named

PARTS = 4  # of a batch whose gradients are accumulated
DATA: Mapping[str, str] = {
    "rule": "each class has a pattern, and a sample is the pattern of its class plus noise",
    "random": "random labels, as in the notebook: nothing to learn",
}
OPTIMIZERS: Mapping[str, float] = {"sgd": 0.05, "momentum": 0.01, "adamw": 0.001}  # learning rates


@dataclass(frozen=True, slots=True)
class _Mode:
    """A way to train.

    Attributes:
        dtype: of the products, which decides the peak.
        autocast: products in `dtype`, weights in fp32.
        scaled: the loss is multiplied by a GradScaler's scale.
        checkpoints: activations are computed again in backward.
        parts: of the batch, one after the other, whose gradients are added.
    """

    dtype: str
    about: str
    autocast: bool = False
    scaled: bool = False
    checkpoints: bool = False
    parts: int = 1


MODES: Mapping[str, _Mode] = {
    "fp32": _Mode("fp32", "everything in fp32"),
    "bf16": _Mode("bf16", "torch.autocast: products in bf16, weights in fp32", autocast=True),
    "fp16": _Mode("fp16", "torch.autocast in fp16 with GradScaler", autocast=True, scaled=True),
    "fp16-unscaled": _Mode("fp16", "torch.autocast in fp16, without loss scaling", autocast=True),
    "checkpoint": _Mode("fp32", "fp32, activations recomputed in backward", checkpoints=True),
    "accumulate": _Mode("fp32", f"fp32, the batch in {PARTS} parts, one after the other", parts=PARTS),
}


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A model that can be trained.

    Attributes:
        name: what users type.
        operation: the training step it is.
        axes: its lengths but the batch.
        batch: the usual one.
    """

    name: str
    operation: str
    axes: tuple[tuple[str, int], ...]
    batch: int
    about: str

    def shape(self, batch: int) -> Shape:
        """Return the shape of its step."""
        return Shape((("batch", batch), *self.axes))

    @property
    def contract(self) -> Operation:
        """Its training step."""
        return operation_named(self.operation)

    @property
    def parameters(self) -> int:
        """The number of trainable parameters."""
        return sum(prod(lengths) for lengths in self.contract.inputs(self.shape(1))[2:])

    @property
    def classes(self) -> int:
        """The number of classes."""
        return dict(self.axes)["outputs"]


def _mlp(name: str, widths: tuple[int, ...], batch: int = 128, about: str = "linear layers with ReLU") -> TrainedModel:
    inputs, hidden, *_, outputs = widths
    axes = (("inputs", inputs), ("hidden", hidden), ("outputs", outputs), ("layers", len(widths) - 1))
    return TrainedModel(name, "mlp_step", axes, batch, about)


PRESETS: Mapping[str, TrainedModel] = {
    model.name: model
    for model in (
        _mlp("3-10-2", (3, 10, 2), 100, "the notebook's training loop: call overhead is all of its time"),
        _mlp("784-784-10", (784, 784, 10), 128, "the notebook's network for digits"),
        _mlp("1024-1024-1024", (1024, 1024, 1024), 512, "wide layers: matmuls take most of the time"),
        TrainedModel(
            "cnn",
            "cnn_step",
            (("channels", 1), ("size", 28), ("filters", 32), ("outputs", 10)),
            64,
            "a convolution and a linear layer on images of 28 × 28",
        ),
        TrainedModel(
            "transformer",
            "transformer_step",
            (("tokens", 32), ("width", 64), ("heads", 4), ("layers", 2), ("outputs", 64)),
            16,
            "two blocks of attention, 64 wide",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Setup:
    """A training that can be done."""

    model: TrainedModel
    batch: int
    steps: int
    modes: tuple[str, ...]
    optimizer: str
    learning_rate: float
    data: str
    processes: int
    seed: int

    @property
    def shape(self) -> Shape:
        """The shape of one step."""
        return self.model.shape(self.batch)

    @property
    def flop_count(self) -> int:
        """FLOPs of one step, forward and backward."""
        return self.model.contract.flop_count(self.shape)

    @property
    def chance_loss(self) -> float:
        """The cross-entropy of guessing."""
        return log(self.model.classes)


DEFAULTS: Mapping[str, str] = {
    "model": "3-10-2",
    "batch": "",
    "steps": "100",
    "modes": "fp32,bf16",
    "optimizer": "sgd",
    "learning_rate": "",
    "data": "rule",
    "processes": "1",
    "seed": "0",
}


def most_processes(device: Device, gpu_count: int = 16) -> int:
    """Return how many processes can train concurrently: one for each physical core, or for each GPU."""
    if device.kind != "cpu":
        return max(1, gpu_count)
    return device.cores or psutil.cpu_count(logical=False) or 1


def read_setup(arguments: Mapping[str, str], most: int) -> Setup:
    """Return the training that `arguments` ask for; what they leave out is as in `DEFAULTS`.

    Args:
        arguments: by the names in `DEFAULTS`; an empty text is the model's or the optimizer's usual value.
        most: processes at most, see `most_processes`.

    Raises:
        InvalidInput: a value that cannot be used; names it and the accepted ones.
        TooLarge: more parameters or FLOPs than a demonstration should have.
    """
    for name in arguments:
        check_known("argument of a training", name, DEFAULTS)
    texts = {name: arguments.get(name, "").strip() or default for name, default in DEFAULTS.items()}
    model = _model_named(texts["model"])
    optimizer = _one_of("optimizer", texts["optimizer"], OPTIMIZERS)
    learning_rate = read_number(texts["learning_rate"] or str(OPTIMIZERS[optimizer]))
    if learning_rate is None or not 0 < learning_rate <= 100:
        raise InvalidInput.of("learning rate", texts["learning_rate"], "numbers above 0, up to 100")
    setup = Setup(
        model=model,
        batch=whole_typed("batch", texts["batch"] or str(model.batch), model.contract.limits["batch"]),
        steps=whole_typed("steps", texts["steps"], 5000),
        modes=_modes(texts["modes"]),
        optimizer=optimizer,
        learning_rate=learning_rate,
        data=_one_of("data", texts["data"], DATA),
        processes=whole_typed("processes", texts["processes"], most),
        seed=whole_typed("seed", texts["seed"], 2**31 - 1, least=0),
    )
    _check(setup)
    return setup


def _model_named(text: str) -> TrainedModel:
    """Return the preset called `text`, or the MLP of widths like ``784-256-256-10``.

    Raises:
        InvalidInput: neither.
        TooLarge: too many parameters.
    """
    if text in PRESETS:
        return PRESETS[text]
    accepted = f"{', '.join(PRESETS)}, or widths of an MLP like 784-256-256-10, with equal hidden layers"
    widths = tuple(read_whole(word) or 0 for word in text.split("-"))
    if len(widths) < 3 or 0 in widths or len(set(widths[1:-1])) > 1 or widths[-1] < 2:
        raise InvalidInput.of("model", text, accepted)
    parameters = sum((before + 1) * after for before, after in pairwise(widths))
    if parameters > 50_000_000:
        raise TooLarge(f"model {text!r}: {parameters:,} parameters; expected at most 50,000,000")
    model = _mlp(text, widths)
    for axis, length in model.axes:
        require(
            length <= model.contract.limits[axis],
            f"{axis} of model {text}",
            length,
            f"1 to {model.contract.limits[axis]}",
        )
    return model


def _check(setup: Setup) -> None:
    """Refuse what the values cannot be together."""
    if problem := setup.model.contract.problem(setup.shape):
        raise InvalidInput(f"model {setup.model.name}: {problem}")
    if setup.flop_count > 5e11:
        raise TooLarge(
            f"a step of {setup.model.name} at batch {setup.batch} is {setup.flop_count:.2g} FLOPs; "
            "expected at most 5e+11"
        )
    if setup.batch % setup.processes:
        raise InvalidInput.of("batch", setup.batch, f"multiples of {setup.processes}, one part for each process")
    if any(MODES[name].parts > setup.batch // setup.processes for name in setup.modes):
        raise InvalidInput.of("batch", setup.batch, f"from {PARTS * setup.processes} with the mode accumulate")
    if setup.processes > 1 and any(MODES[name].parts > 1 or MODES[name].checkpoints for name in setup.modes):
        raise InvalidInput.of("modes", ",".join(setup.modes), "with several processes: fp32, bf16, fp16, fp16-unscaled")


def _modes(text: str) -> tuple[str, ...]:
    names = tuple(_one_of("mode", word.strip(), MODES) for word in text.split(",") if word.strip())
    if not names or len(set(names)) != len(names):
        raise InvalidInput.of("modes", text, f"each once, of {', '.join(MODES)}")
    return names


def _one_of(what: str, text: str, accepted: Mapping[str, object]) -> str:
    name = in_any_case(text, accepted)
    require(name in accepted, what, text, accepted)
    return name
