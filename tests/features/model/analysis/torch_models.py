"""Models in torch from the same layers, and the peak that torch's MemTracker finds for a training step of them.

Tensors are fake and on the CPU, whose kernels keep more than a GPU's in a few places: dropout and RMS norm are called
as a GPU computes them, and what autocast computes in fp32 on a GPU is cast by hand.
"""

from contextlib import ExitStack
from itertools import accumulate
from unittest import mock

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint_sequential
from torch.utils.flop_counter import FlopCounterMode

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "fp64": torch.float64}
OPTIMIZERS = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.1, foreach=True),
    "momentum": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9, foreach=True),
    "adamw": lambda weights: torch.optim.AdamW(weights, foreach=True),
    "adam": lambda weights: torch.optim.Adam(weights, foreach=True),
    "rmsprop": lambda weights: torch.optim.RMSprop(weights, foreach=True),
    "adagrad": lambda weights: torch.optim.Adagrad(weights, foreach=True),
}
INITIALIZERS = ("kaiming_uniform_", "uniform_", "normal_", "ones_", "zeros_", "xavier_uniform_")


class Dropout(nn.Module):
    def forward(self, x):
        return torch.native_dropout(x, 0.5, True)[0]


class LayerNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.float() if torch.is_autocast_enabled("cpu") else x)


class FusedRMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        statistics = x.new_empty((*x.shape[:-1], 1), dtype=torch.float32)
        ctx.save_for_backward(x, weight, statistics)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, _):
        x, weight, _ = ctx.saved_tensors
        return torch.empty_like(x), torch.empty_like(weight)


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x):
        return FusedRMSNorm.apply(x.float() if torch.is_autocast_enabled("cpu") else x, self.weight)


class Embedding(nn.Module):
    def __init__(self, width, vocabulary, positions):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(positions, width) if positions else None

    def forward(self, tokens):
        found = self.table(tokens)
        return found if self.places is None else found + self.places(torch.arange(tokens.shape[1]))


class Attention(nn.Module):
    def __init__(self, width, heads, kv, head, bias, out_bias, rotary, fused, causal, **_):
        super().__init__()
        self.causal = bool(causal)
        self.heads, self.kv, self.head = heads, kv or heads, head or width // heads
        self.rotary, self.fused = rotary, fused
        self.q = nn.Linear(width, self.heads * self.head, bias=bool(bias))
        self.k, self.v = (nn.Linear(width, self.kv * self.head, bias=bool(bias)) for _ in range(2))
        self.out = nn.Linear(self.heads * self.head, width, bias=bool(bias and out_bias))

    def _rotated(self, x):
        half = x.shape[-1] // 2
        constant = torch.empty(x.shape[-2:], dtype=torch.float32 if torch.is_autocast_enabled("cpu") else x.dtype)
        turned = x * constant + torch.cat((-x[..., half:], x[..., :half]), -1) * constant
        return turned.to(x.dtype)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (part(x).view(batch, tokens, -1, self.head).transpose(1, 2) for part in (self.q, self.k, self.v))
        if self.rotary:
            q, k = self._rotated(q), self._rotated(k)
        if self.fused:
            mixed = nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=self.causal, enable_gqa=self.kv < self.heads
            )
        else:
            scores = (q @ k.transpose(-2, -1)) * 0.1
            scores = scores.float() if torch.is_autocast_enabled("cpu") else scores
            mixed = scores.softmax(-1).to(v.dtype) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, -1))


class First(nn.Module):
    def forward(self, x):
        return x[:, 0]


class Patches(nn.Module):
    def __init__(self, channels, width, size, tokens):
        super().__init__()
        self.cut = nn.Conv2d(channels, width, size, size)
        self.extra = nn.Parameter(torch.empty(tokens, width))

    def forward(self, x):
        found = self.cut(x).flatten(2).transpose(1, 2)
        extra = self.extra[: len(self.extra) - found.shape[1]].expand(len(x), -1, -1)
        return torch.cat((extra, found), 1) + self.extra


class Gated(nn.Module):
    def __init__(self, width, features, bias):
        super().__init__()
        self.gate, self.up = (nn.Linear(width, features, bias=bool(bias)) for _ in range(2))
        self.down = nn.Linear(features, width, bias=bool(bias))

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Residual(nn.Module):
    def __init__(self, main, shortcut):
        super().__init__()
        self.main, self.shortcut = nn.Sequential(*main), nn.Sequential(*shortcut)

    def forward(self, x):
        return self.main(x) + self.shortcut(x)


class Tied(nn.Module):
    def __init__(self, embedding):
        super().__init__()
        self.weight = embedding.table.weight

    def forward(self, x):
        return nn.functional.linear(x, self.weight)


class Builder:
    """Turns layers into modules; `shape` is that of the value so far."""

    def __init__(self, layers, *, in_place):
        self.in_place = in_place
        first = layers[0]
        tokens = first.settings["tokens"]
        self.shape = (tokens, *first.sizes) if tokens else first.sizes
        self.table = None
        self.layers = list(layers[1:])

    def modules(self):
        made = []
        while self.layers and self.layers[0].kind not in ("shortcut", "add"):
            layer = self.layers.pop(0)
            made.append(self.residual() if layer.kind == "split" else self.module(layer))
        return made

    def residual(self):
        start = self.shape
        main, shortcut = self.modules(), []
        if self.layers.pop(0).kind == "shortcut":
            self.shape = start
            shortcut = self.modules()
            self.layers.pop(0)
        return Residual(main, shortcut)

    def module(self, layer):
        return getattr(self, layer.kind)(*layer.sizes, **layer.settings)

    def _pooled(self, kernel, stride, padding):
        return tuple((side + 2 * padding - kernel) // stride + 1 for side in self.shape[1:])

    def conv(self, out, kernel, stride, padding, groups, bias):
        channels = self.shape[0]
        self.shape = (out, *self._pooled(kernel, stride, padding))
        return nn.Conv2d(channels, out, kernel, stride, padding, groups=groups, bias=bool(bias))

    def linear(self, features, bias, tied, whole):  # on one GPU each product is a whole one
        width = self.shape[-1]
        self.shape = (*self.shape[:-1], features)
        return Tied(self.table) if tied else nn.Linear(width, features, bias=bool(bias))

    def max_pool(self, kernel, stride, padding):
        self.shape = (self.shape[0], *self._pooled(kernel, stride or kernel, padding))
        return nn.MaxPool2d(kernel, stride or kernel, padding)

    def avg_pool(self, size):
        self.shape = (self.shape[0], size, size)
        return nn.AdaptiveAvgPool2d(size)

    def flatten(self):
        self.shape = (torch.Size(self.shape).numel(),)
        return nn.Flatten()

    def embedding(self, width, vocabulary, positions, types):
        self.table = Embedding(width, vocabulary, positions)
        self.shape = (*self.shape, width)
        return self.table

    def relu(self):
        return nn.ReLU(inplace=self.in_place)

    def sigmoid(self):
        return nn.Sigmoid()

    def tanh(self):
        return nn.Tanh()

    def gelu(self):
        return nn.GELU()

    def silu(self):
        return nn.SiLU()

    def softmax(self):
        return nn.Softmax(-1)

    def dropout(self):
        return Dropout()

    def batch_norm(self):
        return nn.BatchNorm2d(self.shape[0])

    def layer_norm(self):
        return LayerNorm(self.shape[-1])

    def rms_norm(self):
        return RMSNorm(self.shape[-1])

    def attention(self, **settings):
        return Attention(self.shape[-1], **settings)

    def first(self):
        self.shape = self.shape[1:]
        return First()

    def patches(self, width, size, extra, positions):
        assert positions
        made = Patches(self.shape[0], width, size, self.shape[1] * self.shape[2] // size**2 + extra)
        self.shape = (self.shape[1] * self.shape[2] // size**2 + extra, width)
        return made

    def gated(self, features, bias):
        return Gated(self.shape[-1], features, bias)


def counted_flops(model, batch, setup):
    """Return the FLOPs of the products of a training step, by torch's counter: attention counts all pairs."""
    counter = FlopCounterMode(display=False)
    with FakeTensorMode(), ExitStack() as stack:
        for name in INITIALIZERS:
            stack.enter_context(mock.patch(f"torch.nn.init.{name}", lambda tensor, *_, **__: tensor))
        made, data, labels = _model_and_batch(model, batch, setup)
        with counter:
            _step(made, data, labels, OPTIMIZERS["sgd"](made.parameters()), setup)
    return counter.get_total_flops()


def tracked_peak(model, batch, setup):
    """Return the bytes of the peak of the second of two training steps, and the parameters of the model."""
    with FakeTensorMode(), ExitStack() as stack:
        for name in INITIALIZERS:
            stack.enter_context(mock.patch(f"torch.nn.init.{name}", lambda tensor, *_, **__: tensor))
        made, data, labels = _model_and_batch(model, batch, setup)
        optimizer = OPTIMIZERS[setup.optimizer](made.parameters())
        tracker = MemTracker()
        tracker.track_external(made, optimizer, data, labels)
        with tracker:
            for _ in range(2):
                _step(made, data, labels, optimizer, setup, before=tracker.reset_mod_stats)
        peak = next(iter(tracker.get_tracker_snapshot("peak").values()))
        return peak["Total"], sum(weight.numel() for weight in made.parameters()), peak


def allocated_peak(model, batch, setup):
    """Return the bytes of the peak of a training step with real tensors, by the allocations that the profiler sees.

    Products of 16 bits are not oneDNN's: on a processor without units for them it copies their terms, 12 % of a step.
    """
    if "16" in f"{setup.dtype} {setup.mixed}":
        was_enabled, *_ = torch.backends.mkldnn.set_flags(_enabled=False)
        try:
            return _allocated_peak(model, batch, setup)
        finally:
            torch.backends.mkldnn.set_flags(_enabled=was_enabled)
    return _allocated_peak(model, batch, setup)


def _allocated_peak(model, batch, setup):
    made, data, labels = _model_and_batch(model, batch, setup)
    optimizer = OPTIMIZERS[setup.optimizer](made.parameters())
    _step(made, data, labels, optimizer, setup)
    states = [value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    there = sum(tensor.nbytes for tensor in (*made.parameters(), *made.buffers(), *states, data, labels))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        _step(made, data, labels, optimizer, setup)
    events = [event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"]
    allocated = accumulate(event.nbytes() for event in sorted(events, key=lambda event: event.start_ns()))
    return there + max(allocated)


def _model_and_batch(model, batch, setup):
    builder = Builder(model.layers, in_place=not setup.checkpoints)  # no segment may begin in place
    tokens = builder.shape[0] if model.tokens else 0
    if setup.tokens:
        builder.shape, tokens = (setup.tokens, *builder.shape[1:]), setup.tokens
    shape, reads_tokens = builder.shape, len(builder.shape) == 1 and tokens
    made = _made_in(DTYPES[setup.dtype], builder)
    micro = batch // setup.accumulation
    data = torch.zeros(micro, *shape, dtype=torch.long) if reads_tokens else torch.empty(micro, *shape)
    data = data if reads_tokens else data.to(DTYPES[setup.dtype])
    return made, data, torch.zeros((micro, tokens) if tokens else (micro,), dtype=torch.long)


def _step(made, data, labels, optimizer, setup, before=lambda: None):
    for _ in range(setup.accumulation):
        before()
        _loss(made, data, labels, setup).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _made_in(dtype, builder):
    torch.set_default_dtype(dtype)
    try:
        return nn.Sequential(*builder.modules())
    finally:
        torch.set_default_dtype(torch.float32)


def _loss(made, data, labels, setup):
    is_mixed = setup.mixed != "none"
    with torch.autocast("cpu", DTYPES[setup.mixed] if is_mixed else torch.bfloat16, enabled=is_mixed):
        if setup.checkpoints:
            logits = checkpoint_sequential(made, min(setup.checkpoints, len(made)), data, use_reentrant=False)
        else:
            logits = made(data)
        if is_mixed:
            logits = logits.float()
        return nn.functional.cross_entropy(logits.flatten(0, -2) if logits.dim() == 3 else logits, labels.flatten())
