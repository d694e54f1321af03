"""Kinds of layers: how each is typed, what it computes, and what PyTorch keeps of it for the backward pass.

A closed set: each has a row in KINDS, whose `build` records its steps on a tape.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType

from gpuexplore.features.memory.analysis.tape import FULL_BYTES, How, Size, Tape, Value

INDEX_BYTES = 8  # PyTorch's indices are int64


@dataclass(frozen=True, slots=True)
class ModelLayer:
    """One layer as it was typed.

    Attributes:
        line: its number in the text, from 1.
        kind: a key of KINDS.
        sizes: the numbers behind its name, e.g. ``3x224x224``.
        settings: by name, with the defaults of its kind.
    """

    line: int
    kind: str
    sizes: tuple[int, ...] = ()
    settings: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def label(self) -> str:
        """Its name in tables and charts, e.g. ``conv 64``."""
        return f"{self.kind} {'x'.join(map(str, self.sizes))}".strip().replace("_", " ")


class WrongShape(Exception):
    """The layer cannot follow the one before it; the text says what it needs."""


Build = Callable[[Tape, ModelLayer, Value], Value]


@dataclass(frozen=True, slots=True)
class LayerKind:
    """The syntax and the rules of a kind of layer.

    Attributes:
        syntax: an example of a line.
        keeps: what stays until the backward pass, in words.
        build: records its steps and returns its result.
        size_counts: how many numbers may follow its name.
        settings: the defaults of what may be set; None where it must be.
    """

    syntax: str
    keeps: str
    build: Build
    size_counts: tuple[int, ...] = (0,)
    settings: Mapping[str, int | None] = field(default_factory=dict, hash=False)


def _map_of(value: Value) -> tuple[int, int, int]:
    if len(value.shape) != 3:
        raise WrongShape(f"an input of channels x height x width; here it is {_shown(value)}")
    channels, height, width = value.shape
    return channels, height, width


def _shown(value: Value) -> str:
    return "x".join(map(str, value.shape))


def _window(layer: ModelLayer, value: Value, kernel: int) -> tuple[int, int]:
    _, height, width = _map_of(value)
    stride = layer.settings["stride"] or kernel
    padding = layer.settings["padding"]
    if min(height, width) + 2 * padding < kernel or kernel < 1:
        raise WrongShape(f"a kernel from 1 to the size of the map; here the map is {_shown(value)}")
    return (height + 2 * padding - kernel) // stride + 1, (width + 2 * padding - kernel) // stride + 1


def _conv(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    channels, _, _ = _map_of(value)
    (out,) = layer.sizes
    kernel = layer.settings["kernel"]
    groups = layer.settings["groups"]
    if not layer.settings["stride"]:
        raise WrongShape("a stride from 1")
    height, width = _window(layer, value, kernel)
    if not groups or channels % groups or out % groups:
        raise WrongShape(f"groups that divide {channels} and {out}")
    weight = tape.weight(out * channels // groups * kernel**2)
    biases = [tape.weight(out)] if layer.settings["bias"] else []
    narrow = tape.cast(value, "narrow")
    how = How(keeps="inputs", weights=[weight, *biases], is_product=True, keeps_weights=True)
    return tape.record([narrow], (out, height, width), how)


def _linear_to(tape: Tape, value: Value, features: int, *, bias: bool, tied: bool = False) -> Value:
    narrow = tape.cast(value, "narrow")
    *rest, last = value.shape
    weight = 0 if tied else tape.weight(features * last)
    biases = [tape.weight(features)] if bias else []
    return tape.record([narrow], (*rest, features), How(keeps="inputs", weights=[weight, *biases], is_product=True))


def _linear(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    tied = bool(layer.settings["tied"])
    if tied and (not tape.weights or tape.weights[0] != layer.sizes[0] * value.shape[-1]):
        raise WrongShape("tied=no, or as many features as the embedding has entries")
    return _linear_to(tape, value, layer.sizes[0], bias=bool(layer.settings["bias"]), tied=tied)


def _max_pool(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    channels, _, _ = _map_of(value)
    shape = (channels, *_window(layer, value, layer.sizes[0]))
    return tape.record([value], shape, How(keeps="inputs", extras=[tape.extra(Size(0, prod(shape) * INDEX_BYTES))]))


def _avg_pool(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    channels, _, _ = _map_of(value)
    shape = (channels, layer.sizes[0], layer.sizes[0])
    return tape.record([value], shape, How(keeps="nothing" if layer.sizes[0] == 1 else "inputs"))


def _same_shape(how: How) -> Build:
    """Return what records a step from each element to one of the result."""
    return lambda tape, _, value: tape.record([value], value.shape, how)


def _dropout(tape: Tape, _: ModelLayer, value: Value) -> Value:
    mask = tape.extra(Size(0, value.element_count))  # on a GPU it is bool: a byte each
    return tape.record([value], value.shape, How(extras=[mask]))


def _batch_norm(tape: Tape, _: ModelLayer, value: Value) -> Value:
    channels = value.shape[0]
    statistics = tape.extra(Size(2 * channels * FULL_BYTES))
    tape.running_count += 2 * channels
    weights = [tape.weight(channels) for _ in range(2)]
    return tape.record([value], value.shape, How(keeps="inputs", extras=[statistics], weights=weights))


def _normed(tape: Tape, value: Value, *, weight_count: int) -> Value:
    *rest, width = value.shape
    full = tape.cast(value, "full")
    statistics = tape.extra(Size(0, weight_count * prod(rest) * FULL_BYTES))  # a mean and a deviation, or one of them
    weights = [tape.weight(width) for _ in range(weight_count)]
    return tape.record([full], value.shape, How(keeps="inputs", extras=[statistics], weights=weights))


def _embedding(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    (width,) = layer.sizes
    positions = layer.settings["positions"]
    if len(value.shape) != 1 or value.itemsize != INDEX_BYTES:
        raise WrongShape("tokens, from a first line like `input tokens=1024`")
    tokens = value.shape[0]
    if positions and tokens > positions:
        raise WrongShape(f"at most {positions:,} tokens: the embedding has no more positions")
    table = tape.weight(layer.settings["vocabulary"] * width)
    result = tape.record([value], (tokens, width), How(keeps="inputs", weights=[table], itemsize=tape.itemsize))
    if not positions:
        return result
    return tape.record([result], result.shape, How(weights=[tape.weight(positions * width)], passes_gradient=True))


def _attention(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    if len(value.shape) != 2:
        raise WrongShape(f"an input of tokens x width; here it is {_shown(value)}")
    tokens, width = value.shape
    heads = layer.settings["heads"]
    groups = layer.settings["kv"] or heads
    has_bias = bool(layer.settings["bias"])
    head = layer.settings["head"] or width // max(1, heads)
    if not heads or heads % groups or (not layer.settings["head"] and width % heads):
        raise WrongShape(f"heads that divide the width {width}, and kv heads that divide the heads")
    query = _linear_to(tape, value, heads * head, bias=has_bias)
    key, values = (_linear_to(tape, value, groups * head, bias=has_bias) for _ in range(2))
    if layer.settings["rotary"]:
        query, key = (_rotate(tape, rotated) for rotated in (query, key))
    mixed = (_fused if layer.settings["fused"] else _by_products)(tape, (query, key, values), heads, tokens)
    return _linear_to(tape, mixed, width, bias=bool(layer.settings["bias"] and layer.settings["out_bias"]))


def _rotate(tape: Tape, value: Value) -> Value:
    """Rotate queries or keys by their positions: sums of products with constants, which keep nothing."""
    full = tape.cast(value, "full")
    return tape.cast(tape.record([full], value.shape, How(scratch_elements=2 * value.element_count)), "narrow")


def _fused(tape: Tape, parts: tuple[Value, Value, Value], heads: int, tokens: int) -> Value:
    """As FlashAttention does it: the matrix of scores is never stored, only a number for each of its rows."""
    statistics = tape.extra(Size(0, heads * tokens * FULL_BYTES))
    narrow = [tape.cast(part, "narrow") for part in parts]
    return tape.record(narrow, narrow[0].shape, How(keeps="both", extras=[statistics]))


def _by_products(tape: Tape, parts: tuple[Value, Value, Value], heads: int, tokens: int) -> Value:
    """Store the scores: a product, a softmax that keeps its output, a product; of operands copied head by head.

    Until it returns, Python's names refer to what was copied and the scores before their softmax.
    """
    narrow = [tape.cast(part, "narrow") for part in parts]
    query, key, values = (tape.record([part], part.shape) for part in narrow)
    scores = tape.record([query, key], (heads, tokens, tokens), How(keeps="inputs"))
    scaled = tape.record([scores], scores.shape)  # divided by the root of the head's width, masked
    shares = tape.record([tape.cast(scaled, "full")], scores.shape, How(keeps="output"))
    mixed = tape.record([tape.cast(shares, "narrow"), values], query.shape, How(keeps="inputs"))
    scratch = sum(part.element_count for part in narrow) + scores.element_count * shares.itemsize // mixed.itemsize
    return tape.record([mixed], mixed.shape, How(scratch_elements=scratch))


def _gated(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    """The SwiGLU block of Llama: silu(gate) x up, then back to the width."""
    (features,) = layer.sizes
    has_bias = bool(layer.settings["bias"])
    gate = _linear_to(tape, value, features, bias=has_bias)
    active = tape.record([gate], gate.shape, How(keeps="inputs"))
    up = _linear_to(tape, value, features, bias=has_bias)
    return _linear_to(tape, tape.record([active, up], up.shape, How(keeps="inputs")), value.shape[-1], bias=has_bias)


_keeping_output = _same_shape(How(keeps="output", in_place=True))
_keeping_input = _same_shape(How(keeps="inputs"))


def _passed_on(_: Tape, __: ModelLayer, value: Value) -> Value:
    return value


KINDS: Mapping[str, LayerKind] = MappingProxyType(
    {
        "input": LayerKind("input 3x224x224, or input tokens=1024", "itself", _passed_on, (0, 1, 3), {"tokens": 0}),
        "conv": LayerKind(
            "conv 64 kernel=3 stride=1 padding=1 groups=1 bias=yes",
            "its input",
            _conv,
            (1,),
            {"kernel": None, "stride": 1, "padding": 0, "groups": 1, "bias": 1},
        ),
        "linear": LayerKind("linear 4096 bias=yes tied=no", "its input", _linear, (1,), {"bias": 1, "tied": 0}),
        "relu": LayerKind("relu", "its output", _keeping_output),
        "sigmoid": LayerKind("sigmoid", "its output", _keeping_output),
        "tanh": LayerKind("tanh", "its output", _keeping_output),
        "gelu": LayerKind("gelu", "its input", _keeping_input),
        "silu": LayerKind("silu", "its input", _keeping_input),
        "softmax": LayerKind(
            "softmax",
            "its output",
            lambda tape, _, value: tape.record([tape.cast(value, "full")], value.shape, How(keeps="output")),
        ),
        "dropout": LayerKind("dropout", "a mask of one byte per element", _dropout),
        "max_pool": LayerKind(
            "max_pool 3 stride=2 padding=0",
            "its input and the index of each maximum",
            _max_pool,
            (1,),
            {"stride": 0, "padding": 0},
        ),
        "avg_pool": LayerKind(
            "avg_pool 1 (the size of the result)",
            "its input; nothing for a result of size 1, which is a mean",
            _avg_pool,
            (1,),
        ),
        "flatten": LayerKind(
            "flatten", "nothing", lambda _, __, value: Value(value.buffer, (value.element_count,), value.itemsize)
        ),
        "batch_norm": LayerKind("batch_norm", "its input, a mean and a standard deviation per channel", _batch_norm),
        "layer_norm": LayerKind(
            "layer_norm",
            "its input, a mean and a standard deviation per row",
            lambda tape, _, value: _normed(tape, value, weight_count=2),
        ),
        "rms_norm": LayerKind(
            "rms_norm", "its input and a scale per row", lambda tape, _, value: _normed(tape, value, weight_count=1)
        ),
        "embedding": LayerKind(
            "embedding 768 vocabulary=50257 positions=1024",
            "the tokens",
            _embedding,
            (1,),
            {"vocabulary": None, "positions": 0},
        ),
        "attention": LayerKind(
            "attention heads=12 kv=12 bias=yes rotary=no fused=yes",
            "its input, queries, keys, values and result; with fused=no also the scores",
            _attention,
            (0,),
            {"heads": None, "kv": 0, "head": 0, "bias": 0, "out_bias": 1, "rotary": 0, "fused": 1},
        ),
        "gated": LayerKind(
            "gated 14336 bias=no", "its input, and four intermediate tensors", _gated, (1,), {"bias": 0}
        ),
        "split": LayerKind("split", "nothing: the residual block begins", _passed_on),
        "shortcut": LayerKind("shortcut", "nothing: what follows is on the shortcut", _passed_on),
        "add": LayerKind("add", "nothing", _passed_on),
    }
)
