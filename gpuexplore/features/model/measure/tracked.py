"""Memory of a training step of any `nn.Module`, by torch's MemTracker; none of its tensors is allocated.

The module is copied onto fake tensors, which have a shape, a dtype and a device but no numbers, and takes two steps.
The second is tracked, in which the optimizer's state is there from the start, as in every later one. What torch
allocates apart from its tensors (a context, workspaces of libraries, gaps between blocks) is not counted.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.utils._pytree import tree_leaves, tree_map

KINDS: Mapping[str, str] = {  # torch's words for the kinds of memory, and ours
    "Parameter": "parameters",
    "Gradient": "gradients",
    "Optstate": "optimizer state",
    "Activation": "activations",
    "Temp": "workspace",
    "Buffer": "buffers",
    "Other": "inputs and others",
}
OPTIMIZERS_OF_TORCH: Mapping[str, "Optimizer"] = {  # as `gpuexplore memory` names them
    "sgd": partial(torch.optim.SGD, lr=0.01),
    "momentum": partial(torch.optim.SGD, lr=0.01, momentum=0.9),
    "adamw": torch.optim.AdamW,
    "adam": torch.optim.Adam,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
}

Loss = Callable[..., Any]
Optimizer = Callable[[Any], Any]


def tracked_step(
    module: torch.nn.Module, inputs: Sequence[Any], *, loss: Loss | None, optimizer: Optimizer
) -> tuple[str, dict[str, int]]:
    """Return the phase in which a step's peak is, and the bytes by kind at it, on the device that has most.

    A step is `loss(module(*inputs)).backward()`, then the optimizer's; its phases: forward, backward, optimizer.

    Args:
        module: as it is trained; it is not changed.
        inputs: what it is called with; tensors, and anything else.
        loss: of what the module returns; None: the sum of its numbers.
        optimizer: returns an optimizer of parameters, e.g. `torch.optim.AdamW`.
    """
    module = getattr(module, "_orig_mod", module)  # of torch.compile
    gradients = [(weight, weight.grad) for weight in module.parameters()]
    try:
        with torch.inference_mode(False), torch.enable_grad():
            return _tracked(module, inputs, loss=loss, optimizer=optimizer)
    finally:
        for weight, gradient in gradients:  # a loss may have reached for the module itself
            weight.grad = gradient


def _tracked(
    module: torch.nn.Module, inputs: Sequence[Any], *, loss: Loss | None, optimizer: Optimizer
) -> tuple[str, dict[str, int]]:
    mode = FakeTensorMode(allow_non_fake_inputs=True)  # what a loss brings along is taken as it is
    copied = fake_copy(module, mode)
    arguments = tuple(tree_map(partial(fake_tensor, mode), value) for value in inputs)
    if not copied.training:  # a part may be kept from it on purpose: frozen batch normalization
        copied.train()
    attributes = _attributes(copied)
    with mode:
        stepping = optimizer(list(copied.parameters()))
        step = partial(_phases, copied, arguments, stepping, loss or sum_of)
        deque(step(), maxlen=0)  # from now on the optimizer has its state
        tracker = MemTracker()
        given_tensors = [leaf for leaf in tree_leaves(arguments) if torch.is_tensor(leaf)]
        kept = [leaf.grad for leaf in given_tensors if leaf.grad is not None]  # as is what a forward pass remembers
        kept += [value for key, value in _attributes(copied).items() if key not in attributes]
        tracker.track_external(copied, stepping, *given_tensors, *kept)
        with tracker:
            totals = {phase: peak_of(tracker)["Total"] for phase in step()}
        peak = peak_of(tracker)
    frozen_bytes = sum(weight.nbytes for weight in module.parameters() if not weight.requires_grad)
    found = {kind: peak.get(kind, 0) for kind in KINDS}
    there_bytes = min(frozen_bytes, found["Buffer"])  # of the peak's device
    found["Parameter"] += there_bytes
    found["Buffer"] -= there_bytes
    phase = next(phase for phase, total in totals.items() if total == peak["Total"])
    return phase, {ours: found[theirs] for theirs, ours in KINDS.items() if found[theirs]}


def _attributes(module: torch.nn.Module) -> dict[int, torch.Tensor]:
    """Return the tensors that are plain attributes of a module, by their identity."""
    values = (value for part in module.modules() for value in vars(part).values())
    return {id(value): value for value in values if torch.is_tensor(value)}


def _phases(module: torch.nn.Module, arguments: Sequence[Any], optimizer: Any, loss: Loss) -> Iterator[str]:
    """Take a step; yield the name of each phase when it is over."""
    found = loss(module(*arguments))
    yield "forward"
    found.backward()
    yield "backward"
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    yield "optimizer"


def peak_of(tracker: MemTracker) -> dict[str, int]:
    """Return the bytes of each kind at the peak, on the device that has most."""
    snapshots = tracker.get_tracker_snapshot("peak").values()
    largest: Mapping[Any, int] = max(snapshots, key=lambda each: each["Total"])
    return {getattr(kind, "value", kind): int(size) for kind, size in largest.items()}


def fake_copy(module: torch.nn.Module, mode: FakeTensorMode, dtype: torch.dtype | None = None) -> torch.nn.Module:
    """Return a copy of a module whose tensors have no numbers, cast to a dtype; what it shares, the copy shares.

    Frozen parameters become buffers: the tracker would wait for their gradients, which torch refuses. Hooks of a
    gradient go along: those that mask a part of it allocate another.
    """
    known: dict[int, Any] = {}
    for weight in module.parameters():
        made = fake_tensor(mode, weight.detach(), dtype)
        known[id(weight)] = torch.nn.Parameter(made) if weight.requires_grad else made
        for hook in (weight._backward_hooks or {}).values():
            known[id(weight)].register_hook(hook)
    for tensor in (*module.buffers(), *_attributes(module).values()):
        known[id(tensor)] = fake_tensor(mode, tensor, dtype)
    copied = deepcopy(module, known)
    for part in copied.modules():
        for name, parameter in list(part._parameters.items()):
            if parameter is not None and not parameter.requires_grad:
                del part._parameters[name]
                part.register_buffer(name, parameter)
    return copied


def fake_tensor(mode: FakeTensorMode, value: Any, dtype: torch.dtype | None = None) -> Any:
    """Return a tensor of this layout without numbers, on a CPU where it is on no device yet; anything else as it is.

    Args:
        dtype: that floating-point tensors are cast to; None: their own.
    """
    if not torch.is_tensor(value):
        return value
    is_cast = dtype is not None and value.is_floating_point() and value.dtype != dtype
    if value.device.type != "meta" and not is_cast:
        return mode.from_tensor(value)
    with mode:
        made = torch.empty_strided(
            value.size(),
            value.stride(),
            dtype=dtype if is_cast else value.dtype,
            device="cpu" if value.device.type == "meta" else value.device,
        )
        return made.requires_grad_(value.requires_grad)


def sum_of(output: Any) -> Any:
    """Return the sum of all numbers with a gradient, the loss of a module that has none."""
    numbers = [leaf for leaf in tree_leaves(output) if torch.is_tensor(leaf) and leaf.requires_grad]
    if not numbers:
        raise TypeError(f"its output, {type(output).__name__}, has no tensor with a gradient: give a loss")
    return torch.stack([leaf.sum() for leaf in numbers]).sum() if len(numbers) > 1 else numbers[0].sum()
