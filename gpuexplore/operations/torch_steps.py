"""Training steps in torch: autograd's gradients of a network's loss, with each technique of training.

A network is its layers: functions of what goes in and of some parameters. Only implementations import this module.

Autograd allocates each gradient anew, as it does in training where `zero_grad` drops the old ones; they are then copied
into the output, which is timed. Backward on its own keeps what forward left, to be called again. TF32 is
allowed for tf32 and for nothing else.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.operations.contract import Phased
from gpuexplore.operations.training import RATE, loss_scale, views

Tensor = torch.Tensor
Layers = Sequence[tuple[Callable[..., Tensor], int]]  # each with the number of its parameters
Network = Callable[[Sequence[Tensor]], Layers]  # from the parameters
Loss = Callable[..., Tensor]  # of batch, targets and parameters
Build = Callable[[Sequence[Any], Any, DType], Callable[[], object]]
PARTS = 4  # of a batch whose gradients are accumulated


def eager(network: Network) -> Build:
    """Return the builder of a step as torch runs it by itself."""

    def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
        return _step(inputs, out, _loss(network(inputs[2:]), dtype), dtype)

    return build


def autocast(network: Network) -> Build:
    """Return the builder of a step with weights in fp32 and products in the case's dtype.

    The weights come in the case's dtype: a call begins by widening them, which takes 6 bytes of traffic for each.
    """

    def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
        batch, targets, *parameters = inputs
        loss = _loss(network(parameters), dtype)
        weights = [parameter.to(torch.float32, copy=True) for parameter in parameters]

        def cast(*tensors: Tensor) -> Tensor:
            with torch.autocast(out.device.type, dtype=getattr(torch, dtype.array_name)):
                return loss(*tensors)

        @torch.no_grad()
        def widen() -> None:
            for weight, parameter in zip(weights, parameters, strict=True):
                weight.copy_(parameter)

        return _after(widen, _step((batch, targets, *weights), out, cast, dtype))

    return build


def _after(begin: Callable[[], None], step: Phased) -> Phased:
    """Return a step whose call, and whose forward, begins with `begin`."""

    def run() -> None:
        begin()
        step.run()

    def forward() -> None:
        begin()
        step.phases["forward"]()

    return Phased(run, {**step.phases, "forward": forward})


def checkpointed(network: Network) -> Build:
    """Return the builder of a step that keeps what goes into a layer, and computes the rest again in backward."""
    import_module("torch._dynamo")  # for seconds, which the first checkpoint would take and a step does not

    def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
        layers = [(_checkpointed(layer), count) for layer, count in network(inputs[2:])]
        return _step(inputs, out, _loss(layers, dtype), dtype)

    return build


def accumulated(network: Network) -> Build:
    """Return the builder of a step over parts of the batch, whose gradients are added."""

    def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
        batch, targets, *parameters = inputs
        loss = _loss(network(parameters), dtype)
        parts = list(zip(batch.chunk(PARTS), targets.chunk(PARTS), strict=True))
        shares = [len(samples) / len(batch) for samples, _ in parts]
        sums = torch.zeros(out.shape, dtype=_wide(dtype), device=out.device)
        steps = [
            _step((*part, *parameters), sums, loss, dtype, share=share)
            for part, share in zip(parts, shares, strict=True)
        ]

        def run() -> None:
            sums.zero_()
            for step in steps:
                step()
            out.copy_(sums)

        return run

    return build


def through_compiler(network: Network) -> Build:
    """Return the builder of a step whose forward and backward torch.compile makes."""
    from gpuexplore.backends.inductor import compiled

    def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
        return _step(inputs, out, compiled(_loss(network(inputs[2:]), dtype)), dtype).run  # backward cannot be repeated

    return build


def _step(inputs: Sequence[Tensor], out: Tensor, loss: Loss, dtype: DType, *, share: float | None = None) -> Phased:
    """Return the call that writes the loss and its gradients to `out`, or adds its `share` of them to it."""
    batch, targets, *parameters = inputs
    out_views = views(out, [tuple(parameter.shape) for parameter in parameters])
    scale = loss_scale(len(targets)) if dtype.largest else 1.0
    weight = (1.0 if share is None else share) / scale
    allow_tf32(dtype)
    for parameter in parameters:
        parameter.requires_grad_()

    updated = [torch.empty_like(parameter, requires_grad=False) for parameter in parameters]
    last_loss: list[Tensor] = []  # the loss of the last forward, and with it what backward needs

    def forward() -> None:
        last_loss[:] = [loss(batch, targets, *parameters) * scale]

    def backward(*, again: bool = True) -> None:
        found = (last_loss[0].detach().reshape(1), *torch.autograd.grad(last_loss[0], parameters, retain_graph=again))
        for view, quantity in zip(out_views, found, strict=True):
            if share is not None:
                view.add_(quantity, alpha=weight)
            elif scale == 1:
                view.copy_(quantity)
            else:
                torch.mul(quantity, weight, out=view)

    def run() -> None:
        forward()
        backward(again=False)

    return Phased(
        run, {"forward": forward, "backward": backward, "optimizer": sgd_of(parameters, out_views[1:], updated)}
    )


def sgd_of(parameters: Sequence[Tensor], gradients: Sequence[Tensor], updated: Sequence[Tensor]) -> Callable[[], None]:
    """Return SGD by torch on `parameters` by `gradients`, written to `updated`."""

    @torch.no_grad()
    def update() -> None:
        for parameter, gradient, result in zip(parameters, gradients, updated, strict=True):
            torch.add(parameter, gradient, alpha=-RATE, out=result)

    return update


def _loss(layers: Layers, dtype: DType) -> Loss:
    """Return the mean cross-entropy of a network; the softmax is in the format sums are kept in."""
    kind = _wide(dtype)

    def loss(batch: Tensor, targets: Tensor, *parameters: Tensor) -> Tensor:
        values = batch
        rest = iter(parameters)
        for layer, count in layers:
            values = layer(values, *islice(rest, count))
        return cross_entropy(values.flatten(0, -2).to(kind), targets.flatten(0, -2).to(kind))

    return loss


def _checkpointed(layer: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(*tensors: Tensor) -> Tensor:
        return checkpoint(layer, *tensors, use_reentrant=False, preserve_rng_state=False)

    return call


def _wide(dtype: DType) -> torch.dtype:
    return getattr(torch, DTYPES[dtype.accumulate].array_name)


def allow_tf32(dtype: DType) -> None:
    """Allow TF32 for tf32 alone, and sums of products in fp32 only."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = dtype.matrix_only
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
