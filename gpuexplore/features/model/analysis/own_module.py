"""The memory of a training step of one's own `nn.Module`: what torch tracks, and what follows from its parameters."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpuexplore.backends import load_backend
from gpuexplore.core.errors import GpuExploreError, InvalidInput
from gpuexplore.core.typed_text import in_any_case
from gpuexplore.core.units import UNKNOWN, format_gigabytes
from gpuexplore.features.model.analysis import OPTIMIZERS, Optimizer
from gpuexplore.features.model.analysis.fits import DEFAULT_RESERVE, gpus_named
from gpuexplore.hardware import readings
from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.shapes import split

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, repr=False)
class ModuleMemory:
    """Memory of a training step of a module at its peak, in bytes by kind.

    Attributes:
        name: of the module's class.
        optimizer: as it was named, or the name of its class.
        parameter_count: numbers of all parameters.
        phase: in which the peak is: forward, backward or optimizer.
        tracked: by torch's MemTracker, at the peak, on the device that has most.
        arithmetic: what parameters alone decide, without an optimizer's scratch, which torch counts as state; None: the
            optimizer is not in the table.
        fits: whether the peak is within what tensors can have of each GPU; None: its memory is unknown.
    """

    name: str
    optimizer: str
    parameter_count: int
    phase: str
    tracked: Mapping[str, int]
    arithmetic: Mapping[str, int | None]
    fits: Mapping[str, bool | None]

    @property
    def peak_bytes(self) -> int:
        """All kinds together, at the peak."""
        return sum(self.tracked.values())

    def __repr__(self) -> str:
        """Return a headline, a table of kinds and what fits where."""
        title = f"{self.name}: {self.parameter_count:,} parameters, {self.optimizer}"
        lines = [title, f"Peak: {format_gigabytes(self.peak_bytes)}, in: {self.phase}", ""]
        lines.append(f"{'':20} {'tracked at the peak':>20} {'by arithmetic':>20}")
        for kind in dict.fromkeys((*self.tracked, *self.arithmetic)):
            size = self.tracked.get(kind, 0)
            most = self.arithmetic.get(kind)
            lines.append(f"{kind:20} {format_gigabytes(size):>20} {'' if most is None else format_gigabytes(most):>20}")
        words = {True: "fits", False: "does not fit", None: UNKNOWN}
        lines += ["", *(f"{gpu}: {words[fits]}" for gpu, fits in self.fits.items())] if self.fits else []
        return "\n".join(lines)


def memory_of(
    module: "torch.nn.Module",
    inputs: Any,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: str | Callable[[Any], Any] = "sgd",
    gpus: str | Iterable[str] = (),
) -> ModuleMemory:
    """Return the memory of a training step of `module`; nothing is allocated and nothing computed.

    Args:
        module: any `nn.Module`; it is not changed.
        inputs: a tensor, or a sequence of what the module is called with. Their shapes, dtypes and devices count.
        loss: of what the module returns, e.g. `lambda logits: cross_entropy(logits, labels)`; None: the sum of it.
        optimizer: a name of `gpuexplore memory --optimizer`, or what returns a torch optimizer of parameters.
        gpus: names of `gx.specs`, or sizes like ``24GB``: whether the peak fits what tensors can have there.

    Raises:
        InvalidInput: it is no module, or no such optimizer or GPU.
        GpuExploreError: torch is missing, or the step failed; the text says how.
    """
    if not load_backend("torch").is_available():
        raise GpuExploreError("memory_of needs torch, which is not installed: pip install 'gpuexplore[torch]'")
    tracker = import_module("gpuexplore.features.model.measure.tracked")  # loads torch
    check_module(module, inputs, loss)
    wanted = gpus_named(_names(gpus)) if gpus else ()
    for reading in readings(_names(gpus) if gpus else ()):
        warnings.warn(reading, stacklevel=2)
    row, title, making = _optimizer(optimizer, tracker)
    given: Sequence[Any] = inputs if isinstance(inputs, list | tuple) else (inputs,)
    try:
        phase, tracked = tracker.tracked_step(module, given, loss=loss, optimizer=making)
    except Exception as error:  # of the module, its loss or its optimizer
        raise GpuExploreError(f"a step of {type(module).__name__} failed: {describe_error(error)}") from error
    peak_bytes = sum(tracked.values())
    weights = list(module.parameters())
    trained_bytes = sum(weight.nbytes for weight in weights if weight.requires_grad)
    arithmetic = {
        "parameters": sum(weight.nbytes for weight in weights),
        "gradients": trained_bytes,
        "optimizer state": row.state_count * trained_bytes if row else None,
    }
    return ModuleMemory(
        name=type(module).__name__,
        optimizer=title,
        parameter_count=sum(weight.numel() for weight in weights),
        phase=phase,
        tracked=tracked,
        arithmetic=arithmetic,
        fits={
            gpu.name: (
                None if gpu.memory_bytes is None else peak_bytes <= DEFAULT_RESERVE.usable_bytes(gpu.memory_bytes)
            )
            for gpu in wanted
        },
    )


def check_module(module: Any, inputs: object, loss: object, *, is_trained: bool = True) -> None:
    """Refuse what no step can be taken of.

    Raises:
        InvalidInput: naming it, and what is accepted.
    """
    if not isinstance(module, import_module("torch").nn.Module):
        raise InvalidInput.of("module", module, "a torch.nn.Module")
    if is_trained and all(not weight.requires_grad for weight in module.parameters()):
        raise InvalidInput.of("module", type(module).__name__, "a module with trainable parameters")
    if not (loss is None or callable(loss)):
        raise InvalidInput.of("loss", loss, "None, or a function of the module's output")
    if isinstance(inputs, Mapping | Iterator):
        raise InvalidInput.of("inputs", type(inputs).__name__, "a tensor, or a list or tuple of the module's inputs")


def _names(gpus: object) -> list[str]:
    given: Any = [gpus] if isinstance(gpus, str) or not isinstance(gpus, Iterable) else gpus
    names = [] if isinstance(gpus, bytes) else list(given)
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidInput.of("gpus", gpus, "names of `gx.specs` or sizes like 24GB, as text")
    return [each for name in names for each in split(name)]


def _optimizer(asked: str | Callable[[Any], Any], tracker: Any) -> tuple[Optimizer | None, str, Callable[[Any], Any]]:
    """Return an optimizer's row of the table, where it is in it, its name and what makes it."""
    if isinstance(asked, str) and (name := in_any_case(asked, OPTIMIZERS)) in OPTIMIZERS:
        return OPTIMIZERS[name], OPTIMIZERS[name].title, tracker.OPTIMIZERS_OF_TORCH[name]
    if isinstance(asked, str) or not callable(asked):
        raise InvalidInput.of(
            "optimizer", asked, f"{', '.join(OPTIMIZERS)}, or a function that returns a torch optimizer"
        )
    return None, getattr(asked, "__name__", type(asked).__name__), asked
