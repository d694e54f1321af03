"""Memory and speed of one's own `nn.Module`, and `gx.predict_model`, which takes one or the name of a model."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpuexplore.backends import load_backend
from gpuexplore.core import UNKNOWN, Device, GpuExploreError, InvalidInput, format_gigabytes, in_any_case, require
from gpuexplore.features.model.analysis import OPTIMIZERS, Optimizer, prediction
from gpuexplore.features.model.analysis.fits import DEFAULT_RESERVE, gpus_named
from gpuexplore.features.model.analysis.layer_kinds import ModelLayer
from gpuexplore.features.model.analysis.models import LayeredModel, model_asked
from gpuexplore.features.model.analysis.parts import Pass, optimizer_part
from gpuexplore.features.model.analysis.plan import ModelPlan, plan_of
from gpuexplore.features.model.analysis.prediction import ModelPrediction, peak_of, phase_of, usable_bytes_of
from gpuexplore.features.model.analysis.step_time import terms_of
from gpuexplore.hardware import discover, readings, target_named
from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.shapes import split

USUAL_GPU = "h100"

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
    _check_module(module, inputs, loss)
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
                None
                if gpu.memory_bytes is None
                else peak_bytes <= DEFAULT_RESERVE.usable_bytes(gpu.memory_bytes, gpu.memory_type)
            )
            for gpu in wanted
        },
    )


def _check_module(module: Any, inputs: object, loss: object, *, is_trained: bool = True) -> None:
    """Refuse what no step can be taken of.

    Raises:
        InvalidInput: naming it, and what is accepted.
    """
    require(isinstance(module, import_module("torch").nn.Module), "module", module, "a torch.nn.Module")
    if is_trained and all(not weight.requires_grad for weight in module.parameters()):
        raise InvalidInput.of("module", type(module).__name__, "a module with trainable parameters")
    require(loss is None or callable(loss), "loss", loss, "None, or a function of the module's output")
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


def predict_module(
    module: "torch.nn.Module",
    inputs: Any,
    plan: ModelPlan,
    devices: Sequence[Device],
    *,
    loss: Callable[..., Any] | None = None,
) -> tuple[ModelPrediction, ...]:
    """Return how fast a module trains, or passes its inputs forward, on each device; nothing of it is allocated.

    Args:
        module: any `nn.Module`, also on the meta device; it is not changed.
        inputs: a tensor, or a sequence of what the module is called with: a batch.
        plan: its task, dtype, optimizer and execution count.
        devices: one of each prediction.
        loss: of what the module returns; None: the sum of it.

    Raises:
        InvalidInput: it is no module, or the plan is not of one device; names what is accepted.
        GpuExploreError: torch is missing, or the module failed; the text says how.
    """
    _check_plan(plan)
    traced = tracer()
    _check_module(module, inputs, loss, is_trained=plan.is_trained)
    given: Sequence[Any] = inputs if isinstance(inputs, list | tuple) else (inputs,)
    try:
        found = traced.traced_step(module, given, loss=loss, plan=plan)
    except Exception as error:  # of the module or its loss
        raise GpuExploreError(f"{type(module).__name__} failed on its inputs: {describe_error(error)}") from error
    batch, tokens = traced.batch_of(given)
    memory_bytes = found.peak_bytes
    parts = list(found.parts)
    if plan.is_trained:
        with traced.casting(module, plan):
            memory_bytes = memory_of(module, inputs, loss=loss, optimizer=plan.optimizer).peak_bytes
        parts.append(optimizer_part(found.weights, plan))
    step = Pass(tuple(parts), found.kernels, (), 1, found.weights)
    plan = ModelPlan(
        plan.task, batch=batch, tokens=tokens, dtype=plan.dtype, optimizer=plan.optimizer, execution=plan.execution
    )
    name = type(module).__name__
    own = LayeredModel(name, name, (ModelLayer(1, "input", (), {"tokens": tokens}),), batch)
    return tuple(
        _prediction(own, plan, step, device=device, memory_bytes=memory_bytes, unknown=found.unknown)
        for device in devices
    )


def _prediction(own: LayeredModel, plan: ModelPlan, step: Pass, *, device: Device, **counted: Any) -> ModelPrediction:
    terms = terms_of(step, plan, device)
    # the time to issue a step is known of a layer's, of five calls; those of a module are counted one by one
    phase = phase_of(replace(terms, issue_s=terms.issue_s / 5), own, plan)
    flop_count = sum(part.flop_count * part.count for part in step.parts)
    return ModelPrediction(
        own,
        plan,
        device,
        phase if plan.is_trained else None,
        None if plan.is_trained else phase,
        None,
        counted["memory_bytes"],
        usable_bytes_of(device),
        flop_count,
        sum(part.flop_count * part.count for part in step.parts if part.group == "products"),
        sum(part.whole_flop_count * part.count for part in step.parts),
        flop_count,
        peak_of(device, plan.dtype),
        None,
        step.weights,
        step.weights,
        counted["unknown"],
    )


def predict_model(
    model: Any, inputs: Any = None, *, gpu: str = USUAL_GPU, loss: Callable[..., Any] | None = None, **plan: Any
) -> ModelPrediction:
    """Return how fast a model is on a GPU, with an interval, and the memory that each GPU needs.

    Args:
        model: a name like ``llama-3-8b`` or ``gpt2``, a `config.json`, a text file of layers, or an `nn.Module`, which
            is trained or passes forward; nothing of it is allocated.
        inputs: of a module: a tensor, or a sequence of what it is called with.
        loss: of what a module returns; None: the sum of it.
        gpu: a name of `gx.specs`, or the id of a device of this machine.
        plan: task (train, prefill, decode, serve), gpus, tensor_parallel, pipeline, shard, batch, tokens, answer,
            dtype, weights, cache, checkpoint, accumulation, optimizer, execution, network_gbs.

    Raises:
        InvalidInput: names the value and what is accepted.
    """
    typed = {name: _text(value) for name, value in plan.items()}
    device = target_named(gpu, discover())
    if not isinstance(model, str):
        (found,) = predict_module(model, inputs, plan_of(typed), (device,), loss=loss)
        return found
    if inputs is not None or loss is not None:
        raise InvalidInput("inputs and loss are those of a module: leave them out with the name of a model")
    named = model_asked(model)
    return prediction.predict_model(named, plan_of(typed, heads=named.sharing_heads), device)


def _text(value: object) -> str:
    return {True: "yes", False: "", None: ""}.get(value, str(value)) if isinstance(value, bool | None) else str(value)


def tracer() -> Any:
    """Return the module that records operations, which loads torch.

    Raises:
        GpuExploreError: torch is missing.
    """
    if not load_backend("torch").is_available():
        raise GpuExploreError("a module needs torch, which is not installed: pip install 'gpuexplore[torch]'")
    return import_module("gpuexplore.features.model.measure.traced")  # loads torch


def _check_plan(plan: ModelPlan) -> None:
    """Refuse what only layers say how to do.

    Raises:
        InvalidInput: names it.
    """
    require(plan.task in ("train", "prefill"), "task", plan.task, "train and prefill, the forward pass, of a module")
    if plan.gpus * plan.accumulation > 1 or plan.checkpoint or plan.weights or plan.cache:
        raise InvalidInput(
            "a module is predicted on one GPU, by one batch, as it is: leave out gpus, accumulation, checkpoint, "
            "weights and cache"
        )
