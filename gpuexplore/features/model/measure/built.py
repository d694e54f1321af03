"""Models in torch, built from their layers; attention keeps keys and values where one token more is computed."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, cast

import torch
from torch import nn

from gpuexplore.features.model.analysis.layer_kinds import ModelLayer
from gpuexplore.features.model.analysis.models import LayeredModel

PLAIN: Mapping[str, Callable[[tuple[int, ...]], nn.Module]] = {  # layers of the shape that they get
    "relu": lambda _: nn.ReLU(),
    "sigmoid": lambda _: nn.Sigmoid(),
    "tanh": lambda _: nn.Tanh(),
    "gelu": lambda _: nn.GELU(),
    "silu": lambda _: nn.SiLU(),
    "softmax": lambda _: nn.Softmax(-1),
    "dropout": lambda _: nn.Dropout(0.1),
    "batch_norm": lambda shape: nn.BatchNorm2d(shape[0]),
    "layer_norm": lambda shape: nn.LayerNorm(shape[-1]),
    "rms_norm": lambda shape: nn.RMSNorm(shape[-1]),
}


class Embedding(nn.Module):
    """Rows of a table, with learned positions where there are any."""

    def __init__(self, width: int, vocabulary: int, positions: int, context: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(positions, width) if positions else None
        self._context = context

    def forward(self, tokens: Any) -> Any:
        """Look tokens up."""
        found = self.table(tokens)
        if self.places is None:
            return found
        return found + self.places(torch.arange(tokens.shape[1], device=tokens.device) + self._context)


class AttentionModule(nn.Module):
    """AttentionModule by torch's fused function; with a context, of one token to what is cached."""

    def __init__(self, width: int, context: int, *, settings: Any) -> None:
        super().__init__()
        self._heads = settings["heads"]
        self._kv = settings["kv"] or self._heads
        self._head = settings["head"] or width // self._heads
        self._rotary = settings["rotary"]
        self._causal = bool(settings["causal"])
        self._context = context
        bias = bool(settings["bias"])
        self.query = nn.Linear(width, self._heads * self._head, bias=bias)
        self.key = nn.Linear(width, self._kv * self._head, bias=bias)
        self.value = nn.Linear(width, self._kv * self._head, bias=bias)
        self.out = nn.Linear(self._heads * self._head, width, bias=bias and bool(settings["out_bias"]))
        self.norms = nn.ModuleList(nn.RMSNorm(self._head) for _ in range(2 * bool(settings.get("qk_norm", 0))))
        self._cache: list[Any] = []

    def _rotated(self, x: Any) -> Any:
        half = x.shape[-1] // 2
        places = torch.arange(x.shape[-2], device=x.device) + self._context
        angles = places[:, None] / 10_000 ** (torch.arange(half, device=x.device) / half)
        angles = torch.cat((angles, angles), -1).to(x.dtype)
        return x * angles.cos() + torch.cat((-x[..., half:], x[..., :half]), -1) * angles.sin()

    def forward(self, x: Any) -> Any:
        """Mix the values of tokens."""
        batch, tokens, _ = x.shape
        query, key, value = (
            part(x).view(batch, tokens, -1, self._head).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        if len(self.norms):
            query, key = (norm(part) for norm, part in zip(self.norms, (query, key), strict=True))
        if self._rotary:
            query, key = (self._rotated(part) for part in (query, key))
        if self._context:
            key, value = (self._with_cached(at, new) for at, new in enumerate((key, value)))
        mixed = nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=self._causal and not self._context, enable_gqa=self._kv < self._heads
        )
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, -1))

    def _with_cached(self, at: int, new: Any) -> Any:
        if len(self._cache) <= at:
            batch, heads, _, head = new.shape
            self._cache.append(torch.randn(batch, heads, self._context, head, dtype=new.dtype, device=new.device))
        self._cache[at][:, :, -1:] = new
        return self._cache[at]


class _Gated(nn.Module):
    """The SwiGLU block of Llama."""

    def __init__(self, width: int, features: int, bias: bool) -> None:
        super().__init__()
        self.gate = nn.Linear(width, features, bias=bias)
        self.up = nn.Linear(width, features, bias=bias)
        self.down = nn.Linear(features, width, bias=bias)

    def forward(self, x: Any) -> Any:
        """Compute down(silu(gate(x)) * up(x))."""
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Residual(nn.Module):
    """The sum of two branches of one input."""

    def __init__(self, main: Sequence[nn.Module], shortcut: Sequence[nn.Module]) -> None:
        super().__init__()
        self.main = nn.Sequential(*main)
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x: Any) -> Any:
        """Add both."""
        return self.main(x) + self.shortcut(x)


class Patches(nn.Module):
    """Squares of an image as tokens, with one more for its class, and their positions."""

    def __init__(self, shape: tuple[int, ...], width: int, *, size: int, extra: int, positions: int) -> None:
        super().__init__()
        channels, height, breadth = shape
        self.cut = nn.Conv2d(channels, width, size, size)
        self.more = nn.Parameter(torch.zeros(1, extra, width))
        places = torch.zeros(1, extra + height // size * (breadth // size), width)
        self.places = nn.Parameter(places) if positions else places

    def forward(self, x: Any) -> Any:
        """Cut an image up."""
        tokens = self.cut(x).flatten(2).transpose(1, 2)
        return torch.cat((self.more.expand(len(x), -1, -1), tokens), 1) + self.places


class _First(nn.Module):
    """The first token of each sequence."""

    def forward(self, x: Any) -> Any:
        """Take it."""
        return x[:, 0]


class Builder:
    """Layers as modules, one after the other; `shape` is that of a sample so far.

    Args:
        tokens: of a sequence; 0 for the model's own.
        context: tokens that are cached before the one that is computed; 0 computes whole sequences.
    """

    def __init__(self, model: LayeredModel, *, tokens: int = 0, context: int = 0) -> None:
        first = model.layers[0]
        length = 1 if context else tokens or model.tokens
        self.shape: tuple[int, ...] = (length, *first.sizes) if model.tokens else first.sizes
        self._context = context
        self._table: Embedding | None = None
        self._layers = list(model.layers[1:])

    def modules(self) -> list[nn.Module]:
        """Return the modules up to the end of the model or of a branch."""
        made = []
        while self._layers and self._layers[0].kind not in ("shortcut", "add"):
            layer = self._layers.pop(0)
            made.append(self._residual() if layer.kind == "split" else self._module(layer))
        return made

    def _residual(self) -> nn.Module:
        start = self.shape
        main = self.modules()
        shortcut: list[nn.Module] = []
        if self._layers.pop(0).kind == "shortcut":
            self.shape = start
            shortcut = self.modules()
            self._layers.pop(0)
        return Residual(main, shortcut)

    def _module(self, layer: ModelLayer) -> nn.Module:
        if layer.kind in PLAIN:
            return PLAIN[layer.kind](self.shape)
        return cast("nn.Module", getattr(self, f"_{layer.kind}")(layer, dict(layer.settings), *layer.sizes))

    def _pooled(self, kernel: int, settings: Any) -> tuple[int, ...]:
        stride = settings["stride"] or kernel
        return tuple((side + 2 * settings["padding"] - kernel) // stride + 1 for side in self.shape[1:])

    def _conv(self, _: ModelLayer, settings: Any, out: int) -> nn.Module:
        channels = self.shape[0]
        self.shape = (out, *self._pooled(settings["kernel"], settings))
        return nn.Conv2d(
            channels,
            out,
            settings["kernel"],
            settings["stride"],
            settings["padding"],
            groups=settings["groups"],
            bias=bool(settings["bias"]),
        )

    def _linear(self, _: ModelLayer, settings: Any, features: int) -> nn.Module:
        width = self.shape[-1]
        self.shape = (*self.shape[:-1], features)
        if self._table is None or not settings["tied"]:
            return nn.Linear(width, features, settings["bias"])
        made = nn.Linear(width, features, bias=False, device="meta")
        made.weight = self._table.table.weight
        return made

    def _max_pool(self, _: ModelLayer, settings: Any, kernel: int) -> nn.Module:
        self.shape = (self.shape[0], *self._pooled(kernel, settings))
        return nn.MaxPool2d(kernel, settings["stride"] or kernel, settings["padding"])

    def _avg_pool(self, _: ModelLayer, __: Any, size: int) -> nn.Module:
        self.shape = (self.shape[0], size, size)
        return nn.AdaptiveAvgPool2d(size)

    def _flatten(self, _: ModelLayer, __: Any) -> nn.Module:
        self.shape = (prod(self.shape),)
        return nn.Flatten()

    def _embedding(self, _: ModelLayer, settings: Any, width: int) -> nn.Module:
        # the token that is computed is the last of its context
        before = max(0, self._context - 1)
        self._table = Embedding(width, settings["vocabulary"], settings["positions"], before)
        self.shape = (*self.shape, width)
        return self._table

    def _attention(self, _: ModelLayer, settings: Any) -> nn.Module:
        return AttentionModule(self.shape[-1], self._context, settings=settings)

    def _gated(self, _: ModelLayer, settings: Any, features: int) -> nn.Module:
        return _Gated(self.shape[-1], features, bool(settings["bias"]))

    def _patches(self, _: ModelLayer, settings: Any, width: int) -> nn.Module:
        made = Patches(self.shape, width, **settings)
        self.shape = (made.places.shape[1], width)
        return made

    def _first(self, _: ModelLayer, __: Any) -> nn.Module:
        self.shape = self.shape[1:]
        return _First()
