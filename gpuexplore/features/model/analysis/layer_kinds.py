"""Kinds of layers: how each is typed, what it computes, and what PyTorch keeps of it for the backward pass.

A closed set: each has a row in KINDS, whose `build` records its steps on a tape.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, prod
from types import MappingProxyType

from gpuexplore.features.model.analysis.tape import FULL_BYTES, How, Size, Tape, Value, Work

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
    work = Work("conv2d", (channels // groups, height, width, out, kernel))
    how = How(keeps="inputs", weights=[weight, *biases], is_product=True, keeps_weights=True, work=work)
    return tape.record([narrow], (out, height, width), how)


def _linear_to(tape: Tape, value: Value, features: int, *, bias: bool, tied: bool = False) -> Value:
    """Record a product with weights; GPUs that share it have its columns, or its terms where its input is shared."""
    narrow = tape.cast(value, "narrow")
    *rest, last = value.shape
    columns = features if value.is_shared else ceil(features / tape.parallel)
    weight = 0 if tied else tape.weight(columns * last)
    biases = [tape.weight(columns)] if bias else []
    work = Work(
        "linear",
        (prod(rest), last, columns),
        reduced_count=prod(rest) * features if value.is_shared else 0,
    )
    how = How(
        keeps="inputs",
        weights=[weight, *biases],
        is_product=True,
        is_shared=tape.parallel > 1 and not value.is_shared,
        work=work,
    )
    return tape.record([narrow], (*rest, columns), how)


def _linear(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    tied = bool(layer.settings["tied"])
    if tied and ceil(layer.sizes[0] / tape.parallel) * value.shape[-1] not in tape.weights:
        raise WrongShape("tied=no, or as many features as the embedding has entries")
    if layer.settings["whole"]:
        return _whole(tape, value, layer.sizes[0], bias=bool(layer.settings["bias"]))
    return _linear_to(tape, value, layer.sizes[0], bias=bool(layer.settings["bias"]), tied=tied)


def _max_pool(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    channels, _, _ = _map_of(value)
    shape = (channels, *_window(layer, value, layer.sizes[0]))
    return tape.record([value], shape, How(keeps="inputs", extras=[tape.extra(Size(0, prod(shape) * INDEX_BYTES))]))


def _avg_pool(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    channels, _, _ = _map_of(value)
    (size,) = layer.sizes
    return tape.record([value], (channels, size, size), How(keeps="nothing" if size == 1 else "inputs"))


def _same_shape(how: How) -> Build:
    """Return what records a step from each element to one of the result."""
    return lambda tape, _, value: tape.record([value], value.shape, how)


def _dropout(tape: Tape, _: ModelLayer, value: Value) -> Value:
    # a mask, on a GPU of bool: a byte each
    return tape.record([value], value.shape, How(extras=[tape.extra(Size(0, value.element_count))]))


def _batch_norm(tape: Tape, _: ModelLayer, value: Value) -> Value:
    channels = value.shape[0]
    statistics = tape.extra(Size(2 * channels * FULL_BYTES))
    tape.running_count += 2 * channels
    weights = [tape.weight(channels) for _ in range(2)]
    return tape.record([value], value.shape, How(keeps="inputs", extras=[statistics], weights=weights))


def _normed(tape: Tape, value: Value, *, weight_count: int, width: int = 0) -> Value:
    """Record a norm of rows, or of `width` numbers each; it has a scale, a scale and a shift, or none of both."""
    *rest, last = value.shape
    full = tape.cast(value, "full")
    per_row = (weight_count or 2) * last // (width or last)  # a mean and a deviation, or one of them
    statistics = tape.extra(Size(0, per_row * prod(rest) * FULL_BYTES))
    weights = [tape.weight(width or last) for _ in range(weight_count)]
    return tape.record([full], value.shape, How(keeps="inputs", extras=[statistics], weights=weights))


def _embedding(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    (width,) = layer.sizes
    positions = layer.settings["positions"]
    if len(value.shape) != 1 or value.itemsize != INDEX_BYTES:
        raise WrongShape("tokens, from a first line like `input tokens=1024`")
    tokens = value.shape[0]
    if positions and tokens > positions:
        raise WrongShape(f"at most {positions:,} tokens: the embedding has no more positions")
    table = tape.weight(ceil(layer.settings["vocabulary"] / tape.parallel) * width)
    result = tape.record([value], (tokens, width), How(keeps="inputs", weights=[table], itemsize=tape.itemsize))
    if not positions:
        return result
    return _learned(tape, result, (positions + layer.settings["types"]) * width)


def _learned(tape: Tape, value: Value, element_count: int) -> Value:
    """Add some of so many learned numbers to each element: positions, or a label's row of a table."""
    return tape.record([value], value.shape, How(weights=[tape.weight(element_count)], passes_gradient=True))


def _attention(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    if len(value.shape) != 2:
        raise WrongShape(f"an input of tokens x width; here it is {_shown(value)}")
    tokens, width = value.shape
    source = tape.encoded.get(2) if layer.settings["cross"] else value
    if source is None:
        raise WrongShape("an encoder of tokens before it: `encode 3000x80`, its layers, `decode`")
    heads = layer.settings["heads"]
    groups = layer.settings["kv"] or heads
    has_bias = bool(layer.settings["bias"])
    head = layer.settings["head"] or width // max(1, heads)
    if not heads or heads % groups or (not layer.settings["head"] and width % heads):
        raise WrongShape(f"heads that divide the width {width}, and kv heads that divide the heads")
    if heads % tape.parallel:
        raise WrongShape(f"tensor-parallel GPUs whose number divides the {heads} heads, not {tape.parallel}")
    # where there are fewer heads of keys than GPUs, several have the same one
    groups = max(groups, tape.parallel)
    query = _linear_to(tape, value, heads * head, bias=has_bias)
    start = len(tape.steps)
    key = _linear_to(tape, source, groups * head, bias=has_bias and bool(layer.settings["key_bias"]))
    values = _linear_to(tape, source, groups * head, bias=has_bias)
    keys = tokens + tape.context
    is_causal = layer.settings["causal"]
    if layer.settings["cross"]:
        keys = source.shape[0]
        is_causal = 0
        del tape.steps[start : len(tape.steps) if tape.context else start]  # computed with the prompt
    elif layer.settings["window"] and (tape.context or layer.settings["fused"]):
        keys = min(keys, layer.settings["window"])
    if layer.settings["qk_norm"]:
        # with weights of a head, which all have in common, or for each of all heads
        query, key = (
            _normed(tape, part, weight_count=1, width=head * (layer.settings["qk_norm"] == 1)) for part in (query, key)
        )
    if layer.settings["rotary"]:
        query, key = (_rotate(tape, rotated) for rotated in (query, key))
    if layer.settings["sinks"]:
        tape.weight(heads)
    sizes = (heads // tape.parallel, tokens, keys, head, is_causal)
    work = Work("attention", sizes, cached_count=2 * ceil(groups / tape.parallel) * head)
    mixed = (_fused if layer.settings["fused"] else _by_products)(tape, (query, key, values), work)
    return _linear_to(tape, mixed, width, bias=bool(layer.settings["bias"] and layer.settings["out_bias"]))


def _rotate(tape: Tape, value: Value) -> Value:
    """Rotate queries or keys by their positions: sums of products with constants, which keep nothing."""
    full = tape.cast(value, "full")
    return tape.cast(tape.record([full], value.shape, How(scratch_elements=2 * value.element_count)), "narrow")


def _fused(tape: Tape, parts: tuple[Value, Value, Value], work: Work) -> Value:
    """As FlashAttention does it: the matrix of scores is never stored, only a number for each of its rows."""
    heads, queries, *_ = work.sizes
    statistics = tape.extra(Size(0, heads * queries * FULL_BYTES))
    narrow = [tape.cast(part, "narrow") for part in parts]
    return tape.record(narrow, narrow[0].shape, How(keeps="both", extras=[statistics], work=work))


def _by_products(tape: Tape, parts: tuple[Value, Value, Value], work: Work) -> Value:
    """Store the scores: a product, a softmax that keeps its output, a product; of operands copied head by head.

    Until it returns, Python's names refer to what was copied and the scores before their softmax.
    """
    heads, queries, keys, head, _ = work.sizes
    scoring = Work("products", (heads, queries, head, keys), cached_count=work.cached_count)
    mixing = Work("products", (heads, queries, keys, head))
    narrow = [tape.cast(part, "narrow") for part in parts]
    query, key, values = (tape.record([part], part.shape) for part in narrow)
    scores = tape.record([query, key], (heads, queries, keys), How(keeps="inputs", work=scoring))
    scaled = tape.record([scores], scores.shape)  # divided by the root of the head's width, masked
    shares = tape.record([tape.cast(scaled, "full")], scores.shape, How(keeps="output"))
    mixed = tape.record([tape.cast(shares, "narrow"), values], query.shape, How(keeps="inputs", work=mixing))
    scratch = sum(part.element_count for part in narrow) + scores.element_count * shares.itemsize // mixed.itemsize
    return tape.record([mixed], mixed.shape, How(scratch_elements=scratch))


def _latent(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    """Multi-head latent attention of DeepSeek-V2: keys and values from one short vector of each token, which is cached.

    A forward pass over many tokens expands it for each head; one that has a context multiplies queries and results
    by the expansion instead, and attends to the short vectors themselves. https://arxiv.org/abs/2405.04434
    """
    tokens, width = value.shape
    settings = layer.settings
    heads, rank, rope = (settings[name] for name in ("heads", "rank", "rope"))
    if not heads or heads % tape.parallel:
        raise WrongShape(f"tensor-parallel GPUs whose number divides the {heads} heads, not {tape.parallel}")
    own = settings["head"] + rope
    query = value
    if settings["query_rank"]:
        query = _normed(tape, _whole(tape, value, settings["query_rank"]), weight_count=1)
    query = _linear_to(tape, query, heads * own, bias=False)
    short = _whole(tape, value, rank + rope)
    normed = _normed(tape, Value(short.buffer, (tokens, rank), short.itemsize), weight_count=1)  # the rest is rotated
    expanded = _linear_to(tape, normed, heads * 2 * settings["head"], bias=False)
    sizes = (heads // tape.parallel, tokens, tokens + tape.context, rank + rope if tape.context else own, 1)
    statistics = tape.extra(Size(0, sizes[0] * tokens * FULL_BYTES))
    how = How(keeps="both", extras=[statistics], work=Work("attention", sizes, cached_count=rank + rope))
    mixed = tape.record([expanded, query], (tokens, heads // tape.parallel * settings["head"]), how)
    return _linear_to(tape, mixed, width, bias=False)


def _whole(tape: Tape, value: Value, features: int, *, bias: bool = False) -> Value:
    """Record a product that every GPU of a group computes as a whole."""
    *rest, last = value.shape
    work = Work("linear", (prod(rest), last, features))
    weights = [tape.weight(features * last), *([tape.weight(features)] if bias else [])]
    how = How(keeps="inputs", weights=weights, is_product=True, is_shared=False, work=work)
    return tape.record([tape.cast(value, "narrow")], (*rest, features), how)


def _experts(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    """Experts: a router sends each token to `active` of `count` gated blocks, and all to the shared one."""
    (features,) = layer.sizes
    tokens, width = value.shape
    count, active = (layer.settings[name] for name in ("count", "active"))
    if not 1 <= active <= count:
        raise WrongShape(f"active=N from 1 to the {count} experts")
    bias = layer.settings["bias"]
    routed = tape.record([_whole(tape, value, count, bias=bool(bias))], (tokens, active), How(keeps="output"))
    columns = ceil(features / tape.parallel)
    rows = tokens * active

    def product(source: Value, terms: int, columns: int, reduced_count: int = 0) -> Value:
        weights = [tape.weight(count * (terms + bias) * columns)]
        work = Work("experts", (rows, terms, columns, count, active), reduced_count=reduced_count)
        is_shared = tape.parallel > 1 and not reduced_count
        how = How(keeps="inputs", weights=weights, is_product=True, is_shared=is_shared, work=work)
        return tape.record([tape.cast(source, "narrow")], (rows, columns), how)

    sent = tape.record([value, routed], (rows, width), How(keeps="inputs"))
    gate, up = (product(sent, width, columns) for _ in range(2))
    blended = tape.record([tape.record([gate], gate.shape, How(keeps="inputs")), up], up.shape, How(keeps="inputs"))
    # the results of a token's experts are added up before those of GPUs are
    result = product(blended, columns, width, tokens * width if tape.parallel > 1 else 0)
    result = tape.record([result, routed], value.shape, How(keeps="inputs"))
    if not layer.settings["shared"]:
        return result
    shared = _gated(tape, ModelLayer(layer.line, "gated", (layer.settings["shared"],), {"bias": 0}), value)
    weighing = [tape.weight(width)] if layer.settings["gated"] else []  # the shared block, token by token
    return tape.record([result, shared], value.shape, How(weights=weighing, passes_gradient=True))


def _patches(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    """Cut an image into squares, each of them a token, and learn where each one is."""
    channels, height, width = _map_of(value)
    size = layer.settings["size"]
    if not size or height % size or width % size:
        raise WrongShape(f"a size of patches that divides the map {_shown(value)}")
    tokens = height // size * (width // size)
    made = _whole(tape, tape.record([value], (tokens, channels * size**2)), layer.sizes[0], bias=True)
    # a token of its own for the class of the image
    extra = layer.settings["extra"]
    learned = How(weights=[tape.weight(extra * layer.sizes[0])] if extra else [])
    whole = tape.record([made], (tokens + extra, layer.sizes[0]), learned)
    if not layer.settings["positions"]:
        return whole
    return tape.record([whole], whole.shape, How(weights=[tape.weight(whole.element_count)], passes_gradient=True))


def _gated(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    """The SwiGLU block of Llama: silu(gate) x up, then back to the width."""
    (features,) = layer.sizes
    has_bias = bool(layer.settings["bias"])
    gate = _linear_to(tape, value, features, bias=has_bias)
    active = tape.record([gate], gate.shape, How(keeps="inputs"))
    up = _linear_to(tape, value, features, bias=has_bias)
    return _linear_to(tape, tape.record([active, up], up.shape, How(keeps="inputs")), value.shape[-1], bias=has_bias)


def _conv1d(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    """A convolution over a sequence that is padded by half of the kernel: a product of each window with the kernels."""
    if len(value.shape) != 2 or not layer.settings["stride"]:
        raise WrongShape(f"an input of tokens x channels, and a stride from 1; here it is {_shown(value)}")
    tokens, channels = value.shape
    rows = (tokens - 1) // layer.settings["stride"] + 1
    windows = tape.record([value], (rows, layer.settings["kernel"] * channels), How(is_shared=False))
    return _whole(tape, windows, layer.sizes[0], bias=True)


def _encode(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    """Begin an encoder, with an input of its own: what comes so far waits for its end."""
    tape.outer.append((value, len(tape.steps)))
    return tape.source(layer.sizes, tape.itemsize)


def _decode(tape: Tape, _: ModelLayer, value: Value) -> Value:
    """End an encoder, which a step with a context does not compute again."""
    if not tape.outer:
        raise WrongShape("an `encode` before it")
    tape.encoded[len(value.shape)] = value
    waiting, start = tape.outer.pop()
    del tape.steps[start : len(tape.steps) if tape.context else start]
    return waiting


def _adaptive_norm(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    """A norm without weights, whose scale and shift, and the gate of its branch, are a product with what is encoded.

    https://arxiv.org/abs/2212.09748
    """
    vector = tape.encoded.get(1)
    if vector is None:
        raise WrongShape("an encoder of a vector before it: `encode 256`, its layers, `decode`")
    active = tape.record([vector], vector.shape, How(keeps="inputs"))
    made = _whole(tape, active, layer.sizes[0] * value.shape[-1], bias=True)
    value = _normed(tape, value, weight_count=0)
    for _ in range(layer.sizes[0] - 1):  # scaled and shifted; and by a gate
        value = tape.record([value, made], value.shape, How(keeps="inputs"))
    return value


def _joint(tape: Tape, layer: ModelLayer, value: Value) -> Value:
    """A block of two streams, of an image and of text, with weights of their own, whose tokens attend to both.

    https://arxiv.org/abs/2403.03206
    """
    text = tape.encoded.get(2)
    heads = layer.settings["heads"]
    *_, width = value.shape
    if text is None or text.shape[1:] != value.shape[1:]:
        raise WrongShape(f"an encoder of tokens before it: `encode 512x4096`, `conv1d {width} kernel=1`, `decode`")
    if not heads or width % heads or heads % tape.parallel:
        raise WrongShape(f"heads that divide the width {width}, and tensor-parallel GPUs that divide the heads")
    head = width // heads
    is_last = layer.settings["last"]  # which leaves the text as it is

    def normed(stream: Value, count: int) -> Value:
        return _adaptive_norm(tape, ModelLayer(layer.line, "adaptive_norm", (count,)), stream)

    def projected(stream: Value, count: int) -> list[Value]:
        source = normed(stream, count)
        parts = [_linear_to(tape, source, width, bias=True) for _ in range(3)]
        if layer.settings["qk_norm"]:
            parts[:2] = [_normed(tape, part, weight_count=1, width=head) for part in parts[:2]]
        return parts

    both = zip(projected(value, 3), projected(text, 2 if is_last else 3), strict=True)
    query, key, values = (_joined(tape, image, words) for image, words in both)
    if layer.settings["rotary"]:
        query, key = (_rotate(tape, rotated) for rotated in (query, key))
    tokens = query.shape[0]
    work = Work("attention", (heads // tape.parallel, tokens, tokens, head, 0))
    mixed = _fused(tape, (query, key, values), work)

    def rest(stream: Value) -> Value:
        part = replace(mixed, shape=(stream.shape[0], *mixed.shape[1:]))
        stream = tape.record(
            [stream, _linear_to(tape, part, width, bias=True)], stream.shape, How(passes_gradient=True)
        )
        hidden = _linear_to(tape, normed(stream, 3), layer.sizes[0], bias=True)
        active = tape.record([hidden], hidden.shape, How(keeps="inputs"))
        return tape.record(
            [stream, _linear_to(tape, active, width, bias=True)], stream.shape, How(passes_gradient=True)
        )

    if not is_last:
        tape.encoded[2] = rest(text)
    return rest(value)


def _joined(tape: Tape, value: Value, others: Value) -> Value:
    """Record a copy of two sequences as one."""
    return tape.record([value, others], (value.shape[0] + others.shape[0], *value.shape[1:]))


def _join(tape: Tape, _: ModelLayer, value: Value) -> Value:
    others = tape.encoded.get(2)
    if others is None or others.shape[1:] != value.shape[1:]:
        raise WrongShape("an encoder of tokens as wide as these before it")
    return _joined(tape, value, others)


_keeping_output = _same_shape(How(keeps="output", in_place=True))
_keeping_input = _same_shape(How(keeps="inputs"))


def _passed_on(_: Tape, __: ModelLayer, value: Value) -> Value:
    return value


def _first(tape: Tape, _: ModelLayer, value: Value) -> Value:
    if len(value.shape) != 2:
        raise WrongShape(f"an input of tokens x width; here it is {_shown(value)}")
    return tape.record([value], value.shape[1:])


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
        "linear": LayerKind(
            "linear 4096 bias=yes tied=no whole=no",  # whole: each of tensor-parallel GPUs computes all of it
            "its input",
            _linear,
            (1,),
            {"bias": 1, "tied": 0, "whole": 0},
        ),
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
            {"vocabulary": None, "positions": 0, "types": 0},
        ),
        "attention": LayerKind(
            "attention heads=12 kv=12 bias=yes rotary=no fused=yes causal=yes window=0 qk_norm=no cross=no",
            "its input, queries, keys, values and result; with fused=no also the scores",
            _attention,
            (0,),
            {"heads": None, "kv": 0, "head": 0, "bias": 0, "out_bias": 1, "key_bias": 1, "rotary": 0, "fused": 1}
            | {"causal": 1, "window": 0, "qk_norm": 0, "sinks": 0, "cross": 0},
        ),
        "latent": LayerKind(
            "latent heads=128 rank=512 query_rank=1536 head=128 rope=64",
            "its input, the short vectors, queries, expanded keys and values, and result",
            _latent,
            (0,),
            {"heads": None, "rank": None, "query_rank": 0, "head": 128, "rope": 64},
        ),
        "experts": LayerKind(
            "experts 14336 count=8 active=2 shared=0 gated=no",
            "its input, a copy of it for each active expert, and four intermediate tensors of each",
            _experts,
            (1,),
            {"count": None, "active": None, "shared": 0, "bias": 0, "gated": 0},
        ),
        "patches": LayerKind(
            "patches 768 size=16 extra=1 positions=yes",
            "its input",
            _patches,
            (1,),
            {"size": None, "extra": 1, "positions": 1},
        ),
        "gated": LayerKind(
            "gated 14336 bias=no", "its input, and four intermediate tensors", _gated, (1,), {"bias": 0}
        ),
        "conv1d": LayerKind("conv1d 384 kernel=3 stride=1", "its input", _conv1d, (1,), {"kernel": None, "stride": 1}),
        "encode": LayerKind("encode 3000x80 (what follows is an encoder of that)", "itself", _encode, (1, 2)),
        "decode": LayerKind("decode (the encoder ends)", "what the encoder made", _decode),
        "positions": LayerKind(
            "positions",
            "nothing",
            lambda tape, _, value: _learned(tape, value, value.element_count),
        ),
        "labels": LayerKind(
            "labels 1001",
            "nothing",
            lambda tape, layer, value: _learned(tape, value, layer.sizes[0] * value.shape[-1]),
            (1,),
        ),
        "adaptive_norm": LayerKind("adaptive_norm 3", "its input, twice or more", _adaptive_norm, (1,)),
        "joint": LayerKind(
            "joint 12288 heads=24 qk_norm=no rotary=no last=no",
            "of two streams what attention and a perceptron keep",
            _joint,
            (1,),
            {"heads": None, "qk_norm": 0, "rotary": 0, "last": 0},
        ),
        "join": LayerKind("join (tokens and those of the encoder, as one sequence)", "nothing", _join),
        "first": LayerKind("first (the first token of each sequence)", "nothing", _first),
        "split": LayerKind("split", "nothing: the residual block begins", _passed_on),
        "shortcut": LayerKind("shortcut", "nothing: what follows is on the shortcut", _passed_on),
        "add": LayerKind("add", "nothing", _passed_on),
    }
)
