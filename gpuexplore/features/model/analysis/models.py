"""Models by name, or from layers as text, one a line; and the tape that training them records.

::

    input 3x224x224
    conv 64 kernel=3 padding=1
    repeat 2
      relu
    end

``split``, ``shortcut`` and ``add`` make a residual block: what stands between ``shortcut`` and ``add`` is on the
shortcut; ``#`` begins a comment, and ``;`` ends a line as well.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from gpuexplore.core import LONGEST_LIST, InvalidInput, check_text, once, read_whole, require
from gpuexplore.features.model.analysis import ITEMSIZES, Training
from gpuexplore.features.model.analysis.config import LARGEST_FILE, layers_of, layers_of_text
from gpuexplore.features.model.analysis.layer_kinds import INDEX_BYTES, KINDS, LayerKind, ModelLayer, WrongShape
from gpuexplore.features.model.analysis.tape import How, Tape, Value

MLP_BATCH = 128
PASTED_BATCH = 32
MOST: Mapping[str, int] = {
    "layers": 5000,  # after `repeat`
    "depth": 4,  # of one `repeat` within another
    "number": 1_000_000_000,
}
_Line = tuple[int, list[str]]  # its number from 1, and its words


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
    layers: tuple[ModelLayer, ...] = field(repr=False, hash=False)
    batch: int = PASTED_BATCH
    about: str = ""
    source: str = ""
    also: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens of a sequence it was made for; 0 where it does not read tokens."""
        return self.layers[0].settings.get("tokens", 0)

    @property
    def prompt(self) -> int:
        """Tokens of a usual prompt: few where an encoder reads what it is about, half of learned positions, if any."""
        is_limited = self.generates and any(layer.settings.get("positions") for layer in self.layers)
        most = self.tokens // 2 if is_limited else self.tokens  # the answer has positions, too
        return min(most, 4 if any(layer.kind == "encode" for layer in self.layers) else 1024)

    @property
    @lru_cache(maxsize=128)  # noqa: B019 a bounded cache of values
    def generates(self) -> bool:
        """A decoder: it reads tokens, attends to none that come later, and so makes one after another."""
        start = max((index for index, layer in enumerate(self.layers) if layer.kind == "decode"), default=0)
        return bool(self.tokens) and all(
            layer.settings.get("causal", 1) or layer.settings.get("cross") for layer in self.layers[start:]
        )

    @property
    def sharing_heads(self) -> int:
        """Heads of its attention, which GPUs of a server can share among them; 1 of a model that generates nothing."""
        return next(
            (layer.settings["heads"] for layer in self.layers if self.generates and "heads" in layer.settings), 1
        )

    @property
    def tasks(self) -> tuple[str, str]:
        """Tasks that a prediction can be of, the usual one first."""
        if self.generates:
            return "serve", "train"
        # a model with a joint block makes images
        return ("prefill", "train") if any(layer.kind == "joint" for layer in self.layers) else ("train", "prefill")

    @property
    def is_own(self) -> bool:
        """Whether it is a user's module, of which only the input is known."""
        return len(self.layers) == 1


@once
def models() -> Mapping[str, LayeredModel]:
    """Return the models that come along, by name."""
    text = (files("gpuexplore.analysis") / "data" / "models.toml").read_text(encoding="utf-8")
    found = {}
    for row in tomllib.loads(text)["model"]:
        config = row.pop("config", None)
        layers = _parse_layers(layers_of(config, row["name"]) if config else row["layers"], source=row["name"])
        found[row["name"]] = LayeredModel(**{**row, "layers": layers, "also": tuple(row.get("also", ()))})
    return found


def usual_model(name: str) -> LayeredModel | None:
    """Return the model that comes along and that people call so: Meta-Llama-3-8B-Instruct, llama3:8b; None without.

    The first words of a name are enough where only one begins so.
    """
    for model in models().values():
        if name in (model.name, model.title):
            return model
    same, begun = _known_as(name)
    return same or (begun[0] if len(begun) == 1 else None)


def _known_as(name: str) -> tuple[LayeredModel | None, list[LayeredModel]]:
    """Return the model that is called so, and those whose names begin with its words."""
    typed = _words(name)
    begun = []
    for model in models().values() if typed else ():
        known = [_words(each) for each in (model.name, model.title, *model.also)]
        if "".join(typed) in map("".join, known):
            return model, []
        if typed in [words[: len(typed)] for words in known]:
            begun.append(model)
    return None, begun


def _words(name: str) -> list[str]:
    """Return the words of a name without its owner and what does not change the layers; versions may change them."""
    changing_nothing = ("meta", "instruct", "chat", "base", "hf", "it", "pt", "model", "torchvision")
    return [
        word for word in re.findall(r"[a-z0-9.]+", name.casefold().rpartition("/")[2]) if word not in changing_nothing
    ]


def model_reading(name: str) -> str | None:
    """Return how a name was read that is not exactly a model's: ``Llama3.1-8B read as Llama 3 8B``."""
    model = usual_model(name)
    return None if model is None or name in (model.name, model.title) else f"{name} read as {model.title}"


def model_named(name: str, further: str = "") -> LayeredModel:
    """Return a model that comes along, or a perceptron by its widths, like ``784-512-10``.

    Args:
        further: what else is accepted, for the message.

    Raises:
        InvalidInput: there is none; names those that are near, or some.
    """
    if (model := usual_model(name)) is not None:
        return model
    if not re.fullmatch(r"[0-9]{1,9}(-[0-9]{1,9}){1,40}", name):
        known = {"".join(_words(each)): model.name for model in models().values() for each in (model.name, *model.also)}
        close = (known[each] for each in get_close_matches("".join(_words(name)), known, n=6, cutoff=0.6))
        near = dict.fromkeys((*(model.name for model in _known_as(name)[1]), *close))
        some = f"{len(models())} in `gpuexplore model --help`, such as gpt2, llama-3-8b, resnet-50, whisper-tiny"
        said = "a known model (" + ("near: " + ", ".join(near) if near else some) + ")"
        raise InvalidInput.of("model", name, f"{said}{further}, or widths of an MLP like 784-512-10")
    first, *hidden, last = name.split("-")
    text = ";".join([f"input {first}", *(f"linear {width};relu" for width in hidden), f"linear {last}"])
    return LayeredModel(name, f"MLP {name}", _parse_layers(text, source=name), batch=MLP_BATCH)


def model_asked(name: str) -> LayeredModel:
    """Return the model of a name, or of a file that describes it.

    Raises:
        InvalidInput: there is none; says what is accepted.
    """
    if name.endswith((".json", ".txt")):
        return _of_layers(name, name.rpartition("/")[2], read_layers_file(name))
    return model_named(name, ", a config.json")


def model_of_text(text: str) -> LayeredModel:
    """Return the model of pasted layers.

    Raises:
        InvalidInput: a line is no layer; names it and what is accepted.
    """
    return _of_layers("layers", "Pasted layers", _parse_layers(text))


def _of_layers(name: str, title: str, layers: tuple[ModelLayer, ...]) -> LayeredModel:
    return LayeredModel(name, title, layers, 1 if layers[0].settings["tokens"] else PASTED_BATCH)


def read_layers_file(path: str) -> tuple[ModelLayer, ...]:
    """Return the layers of a text file, or of a `config.json`.

    Raises:
        InvalidInput: it cannot be read, is too long, or a line is no layer; says which line of which file.
    """
    try:
        with Path(path).open(encoding="utf-8-sig") as file:
            text = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput.of("file", path, f"readable files of layers; this one: {reason}") from error
    if text.lstrip().startswith(("{", "[")):
        return _parse_layers(layers_of_text(text, path), source=path)
    return _parse_layers(text, source=path)


def _parse_layers(text: str, *, source: str = "layers") -> tuple[ModelLayer, ...]:
    """Return the layers of a text, with what `repeat` repeats as often as it says.

    Args:
        source: the name of the text in messages.

    Raises:
        InvalidInput: too long, or a line is no layer; names the line and what is accepted.
    """
    require(len(text) <= LONGEST_LIST, source, f"more than {LONGEST_LIST:,} characters", f"at most {LONGEST_LIST:,}")
    check_text(source, text, "\n;")
    rows = enumerate(text.replace(";", "\n").splitlines(), 1)
    lines = [(number, words) for number, row in rows if (words := row.partition("#")[0].split())]
    layers: list[ModelLayer] = []
    read: dict[int, ModelLayer] = {}  # a repeated line is read once
    for line in _repeated(iter(lines), source, MOST["depth"]):
        if len(layers) == MOST["layers"]:
            raise _no_layer(source, line, f"at most {MOST['layers']:,} layers, repeated ones counted each time")
        if id(line) not in read:
            read[id(line)] = _layer(line, source)
        layers.append(read[id(line)])
    if not layers or layers[0].kind != "input":
        start = lines[0] if lines else (1, [])
        raise _no_layer(source, start, "a first line like `input 3x224x224`, `input 784` or `input tokens=1024`")
    return tuple(layers)


def _repeated(lines: Iterator[_Line], source: str, depth: int, opening: _Line | None = None) -> list[_Line]:
    """Return the lines up to the end of `opening`, or all: of too many repeated ones more than are accepted."""
    found: list[_Line] = []
    for line in lines:
        words = line[1]
        if words[0] == "end" and opening and found:
            return found
        if words[0] == "end":
            missing = "layers after `repeat`, and an `end` after them" if opening else "`end` after a `repeat`"
            raise _no_layer(source, opening or line, missing)
        if words[0] != "repeat":
            found.append(line)
            continue
        count = read_whole(words[1]) if len(words) == 2 else None
        if not count or count > MOST["layers"] or depth == 0:
            raise _no_layer(
                source, line, f"`repeat N` with N from 1 to {MOST['layers']:,}, at most {MOST['depth']} deep"
            )
        block = _repeated(lines, source, depth - 1, line)
        found += block * min(count, MOST["layers"] // len(block) + 1)
    if opening:
        raise _no_layer(source, opening, "layers after `repeat`, and an `end` after them")
    return found


def _layer(line: _Line, source: str) -> ModelLayer:
    number, (name, *rest) = line
    kind = KINDS.get(name)
    if kind is None:
        raise _no_layer(source, line, f"{', '.join(KINDS)}, repeat, end")
    sizes: tuple[int, ...] = ()
    if rest and "=" not in rest[0]:
        sizes = _sizes(rest.pop(0), line, kind, source)
    given = dict(_setting(word, line, kind, source) for word in rest)
    if len(given) < len(rest) or len(sizes) not in kind.size_counts:
        raise _no_layer(source, line, f"`{kind.syntax}`")
    missing = [setting for setting, value in kind.settings.items() if value is None and setting not in given]
    if missing:
        raise _no_layer(source, line, f"`{kind.syntax}`: {missing[0]} is missing")
    known = {setting: value for setting, value in kind.settings.items() if value is not None}
    return ModelLayer(number, name, sizes, {**known, **given})


def _sizes(word: str, line: _Line, kind: LayerKind, source: str) -> tuple[int, ...]:
    numbers = [read_whole(part) for part in word.split("x")]
    found = tuple(number for number in numbers if number is not None and 1 <= number <= MOST["number"])
    if len(found) < len(numbers):
        raise _no_layer(source, line, f"`{kind.syntax}`, with whole numbers from 1 to {MOST['number']:,}")
    return found


def _setting(word: str, line: _Line, kind: LayerKind, source: str) -> tuple[str, int]:
    name, _, value = word.partition("=")
    number = {"yes": 1, "no": 0}.get(value, read_whole(value))
    if name not in kind.settings or number is None or number > MOST["number"]:
        raise _no_layer(source, line, f"`{kind.syntax}`")
    return name, number


def _no_layer(source: str, line: _Line, accepted: str) -> InvalidInput:
    return InvalidInput.of(f"{source}, line {line[0]}:", " ".join(line[1]), accepted)


@lru_cache(maxsize=64)
def stages_of(model: LayeredModel, count: int) -> tuple[LayeredModel, LayeredModel]:
    """Return the first and the last of `count` stages of a pipeline, of as many blocks each; the last is the slowest.

    Raises:
        InvalidInput: its blocks cannot be shared so; says how many there are.
    """
    depth = 0
    opened = 0
    starts: list[int] = []
    end = 0
    for at, layer in enumerate(model.layers):
        if layer.kind == "split" and not depth:
            opened = at
        depth += {"split": 1, "add": -1}.get(layer.kind, 0)
        end = at + 1 if layer.kind == "add" and not depth else end
        if layer.kind in ("attention", "latent") and opened not in starts:
            starts.append(opened)
    if model.layers[1].kind != "embedding" or not starts:
        raise InvalidInput.of("pipeline", count, f"1: {model.title} has no equal blocks after its embedding")
    if len(starts) % count:
        raise InvalidInput.of("pipeline", count, f"divisors of the {len(starts)} blocks of {model.title}")
    bounds = [*starts, end]
    each = len(starts) // count
    first = ModelLayer(1, "input", model.layers[1].sizes, {"tokens": model.tokens})  # from the stage before
    rest = [
        replace(layer, settings={**layer.settings, "tied": 0}) if layer.settings.get("tied") else layer
        for layer in model.layers[bounds[-1 - each] :]
    ]
    return replace(model, layers=model.layers[: bounds[each]]), replace(model, layers=(first, *rest))


@lru_cache(maxsize=64)
def tape_of(model: LayeredModel, setup: Training, parallel: int = 1, context: int = 0) -> Tape:
    """Return what a training step of `model` computes, up to the loss.

    Args:
        parallel: GPUs that share each layer; what is recorded is what one of them computes.
        context: tokens of keys and values that are there before.

    Raises:
        InvalidInput: a layer cannot follow the one before it, or there are too many parameters; names its line.
    """
    narrow = None if setup.mixed == "none" else ITEMSIZES[setup.mixed]
    tape = Tape(ITEMSIZES[setup.dtype], narrow, parallel, context)
    most_parameters = 10**13
    value = _source(tape, model, setup)
    open_blocks: list[list[Value]] = []
    for layer in model.layers[1:]:
        if not open_blocks:
            tape.items.append(len(tape.steps))
        tape.layers.append(f"{layer.label} (layer {len(tape.layers)})")
        known = len(tape.weights)
        try:
            value = _residual(tape, layer.kind, value, open_blocks)
            value = KINDS[layer.kind].build(tape, layer, value)
        except WrongShape as error:
            raise _error(model, layer, str(error)) from error
        if len(tape.weights) > known and sum(tape.weights) >= most_parameters:
            raise _error(model, layer, f"fewer than {most_parameters:,} parameters in all; with it there are more")
    if open_blocks:
        raise _error(model, model.layers[-1], "an `add` for each `split`")
    if not tape.weights:
        raise _error(model, model.layers[-1], "at least one layer with parameters, like `linear 10`")
    # the cross entropy: a log-softmax that keeps its output, and the choice of one entry a row
    tape.layers.append("loss")
    tape.label_count = value.element_count // value.shape[0 if len(value.shape) == 3 else -1]
    full = tape.cast(value, "full")
    tape.record([tape.record([full], full.shape, How(keeps="output"))], (1,), How(keeps="inputs"))
    return tape


def _error(model: LayeredModel, layer: ModelLayer, accepted: str) -> InvalidInput:
    return InvalidInput.of(f"{model.name}, line {layer.line}:", layer.label, accepted)


def _source(tape: Tape, model: LayeredModel, setup: Training) -> Value:
    first = model.layers[0]
    tape.layers.append("batch")
    tokens = first.settings["tokens"]
    if not tokens and not first.sizes:
        raise _error(model, first, "`input 3x224x224`, `input 784` or `input tokens=1024`")
    if setup.tokens and not tokens:
        raise InvalidInput.of("tokens", setup.tokens, f"none: {model.title} does not read tokens")
    if not tokens:
        return tape.source(first.sizes, tape.itemsize)
    # vectors in a sequence, or indices
    return tape.source((setup.tokens or tokens, *first.sizes), tape.itemsize if first.sizes else INDEX_BYTES)


def _residual(tape: Tape, kind: str, value: Value, open_blocks: list[list[Value]]) -> Value:
    """Follow `split`, `shortcut` and `add`; every other layer takes the value as it is."""
    if kind == "split":
        open_blocks.append([value])
    if kind not in ("shortcut", "add"):
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
