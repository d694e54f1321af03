"""Models by name, or from pasted layers: their layers, and the tape that training them records."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.once import once
from gpuexplore.features.memory.analysis.layer_kinds import INDEX_BYTES, KINDS, ModelLayer, WrongShape
from gpuexplore.features.memory.analysis.layer_text import parse_layers
from gpuexplore.features.memory.analysis.setup import ITEMSIZES, Training
from gpuexplore.features.memory.analysis.tape import How, Tape, Value

MOST_PARAMETERS = 10**12
MLP_BATCH, PASTED_BATCH = 128, 32
PASTED = "layers"  # what messages call them
WIDTHS = re.compile(r"[0-9]{1,9}(-[0-9]{1,9}){1,40}")  # of a perceptron: 784-512-10
SAME_LAYERS = re.compile(r"meta|instruct|chat|base|hf|it|model|torchvision")  # words of names


@dataclass(frozen=True, slots=True)
class LayeredModel:
    """A model as its layers.

    Attributes:
        name: a key of `models`, widths like ``784-512-10``, or where pasted layers are from.
        title: what a reader sees.
        layers: the first is its input.
        batch: a usual one.
        about: what a reader should know of it.
        source: where its layers are from.
        also: what else people call it, or a model with the same layers.
    """

    name: str
    title: str
    layers: tuple[ModelLayer, ...] = field(repr=False)
    batch: int = PASTED_BATCH
    about: str = ""
    source: str = ""
    also: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens of a sequence it was made for; 0 where it does not read tokens."""
        return self.layers[0].settings.get("tokens", 0)


@once
def models() -> Mapping[str, LayeredModel]:
    """Return the models that come along, by name."""
    text = (files("gpuexplore.analysis") / "data" / "models.toml").read_text(encoding="utf-8")
    return {row["name"]: _model(row) for row in tomllib.loads(text)["model"]}


def _model(row: Mapping[str, Any]) -> LayeredModel:
    layers = parse_layers(row["layers"], source=row["name"])
    return LayeredModel(**{**row, "layers": layers, "also": tuple(row.get("also", ()))})


def usual_model(name: str) -> LayeredModel | None:
    """Return the model that comes along and that people call so: Meta-Llama-3-8B-Instruct, llama3:8b; None without."""
    return next((model for model in models().values() if name in (model.name, model.title)), None) or next(
        (
            model
            for model in models().values()
            if _bare(name) in map(_bare, (model.name, model.title, *model.also)) and _bare(name)
        ),
        None,
    )


def _bare(name: str) -> str:
    """Return a name without its owner, its signs, and what does not change the layers; versions may change them."""
    words = re.findall(r"[a-z0-9.]+", name.casefold().rpartition("/")[2])
    return "".join(word for word in words if not SAME_LAYERS.fullmatch(word))


def model_reading(name: str) -> str | None:
    """Return how a name was read that is not exactly a model's: ``Llama3.1-8B read as Llama 3 8B``."""
    model = usual_model(name)
    return None if model is None or name in (model.name, model.title) else f"{name} read as {model.title}"


def model_named(name: str) -> LayeredModel:
    """Return a model that comes along, or a perceptron by its widths, like ``784-512-10``.

    Raises:
        InvalidInput: there is none; names those there are.
    """
    if (model := usual_model(name)) is not None:
        return model
    if not WIDTHS.fullmatch(name):
        accepted = f"{', '.join(models())}, or widths of an MLP like 784-512-10"
        raise InvalidInput.of("model", name, accepted)
    first, *hidden, last = name.split("-")
    text = ";".join([f"input {first}", *(f"linear {width};relu" for width in hidden), f"linear {last}"])
    return LayeredModel(name, f"MLP {name}", parse_layers(text, source=name), batch=MLP_BATCH)


def model_of_text(text: str, source: str = PASTED) -> LayeredModel:
    """Return the model of pasted layers.

    Raises:
        InvalidInput: a line is no layer; names it and what is accepted.
    """
    return LayeredModel(source, "Pasted layers", parse_layers(text, source=source))


@lru_cache(maxsize=64)
def tape_of(model: LayeredModel, setup: Training) -> Tape:
    """Return what a training step of `model` computes, up to the loss.

    Raises:
        InvalidInput: a layer cannot follow the one before it, or there are too many parameters; names its line.
    """
    narrow = None if setup.mixed == "none" else ITEMSIZES[setup.mixed]
    tape = Tape(ITEMSIZES[setup.dtype], narrow)
    value = _source(tape, model, setup)
    open_blocks: list[list[Value]] = []
    for layer in model.layers[1:]:
        if not open_blocks:
            tape.begin_item()
        tape.begin(f"{layer.label} (layer {len(tape.layers)})")
        try:
            value = _residual(tape, layer.kind, value, open_blocks)
            value = KINDS[layer.kind].build(tape, layer, value)
        except WrongShape as error:
            raise _error(model, layer, str(error)) from error
        _check_parameters(model, layer, tape)
    if open_blocks:
        raise _error(model, model.layers[-1], "an `add` for each `split`")
    if not tape.weights:
        raise _error(model, model.layers[-1], "at least one layer with parameters, like `linear 10`")
    _loss(tape, value)
    return tape


def _error(model: LayeredModel, layer: ModelLayer, accepted: str) -> InvalidInput:
    return InvalidInput.of(f"{model.name}, line {layer.line}:", layer.label, accepted)


def _source(tape: Tape, model: LayeredModel, setup: Training) -> Value:
    first = model.layers[0]
    tape.begin("batch")
    tokens = first.settings["tokens"]
    if not tokens and not first.sizes:
        raise _error(model, first, "`input 3x224x224`, `input 784` or `input tokens=1024`")
    if setup.tokens and not tokens:
        raise InvalidInput.of("tokens", setup.tokens, f"none: {model.title} does not read tokens")
    if not tokens:
        return tape.source(first.sizes)
    if first.sizes:  # vectors in a sequence
        return tape.source((setup.tokens or tokens, *first.sizes))
    return tape.source((setup.tokens or tokens,), INDEX_BYTES)


def _residual(tape: Tape, kind: str, value: Value, open_blocks: list[list[Value]]) -> Value:
    """Follow `split`, `shortcut` and `add`; every other layer takes the value as it is."""
    if kind not in ("split", "shortcut", "add"):
        return value
    if kind == "split":
        open_blocks.append([value])
        return value
    if not open_blocks or (kind == "shortcut" and len(open_blocks[-1]) == 2):
        raise WrongShape("a `split` before it, and one `shortcut` at most")
    if kind == "shortcut":
        open_blocks[-1].append(value)
        return open_blocks[-1][0]
    start, *main = open_blocks.pop()
    left, right = (main[0], value) if main else (value, start)
    if left.shape != right.shape:
        raise WrongShape(f"two maps of one shape; here they are {left.shape} and {right.shape}")
    return tape.record([left, right], left.shape, How(passes_gradient=True))


def _check_parameters(model: LayeredModel, layer: ModelLayer, tape: Tape) -> None:
    if sum(tape.weights) >= MOST_PARAMETERS:
        raise _error(model, layer, f"fewer than {MOST_PARAMETERS:,} parameters in all; with it there are more")


def _loss(tape: Tape, value: Value) -> None:
    """Record the cross entropy: a log-softmax that keeps its output, and the choice of one entry a row."""
    tape.begin("loss")
    tape.label_count = value.element_count // value.shape[0 if len(value.shape) == 3 else -1]
    full = tape.cast(value, "full")
    logarithms = tape.record([full], full.shape, How(keeps="output"))
    tape.record([logarithms], (1,), How(keeps="inputs"))
