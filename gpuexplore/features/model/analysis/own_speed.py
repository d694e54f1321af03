"""The predicted speed and memory of one's own `nn.Module`: its operations as torch calls them, timed as a model's."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpuexplore.backends import load_backend
from gpuexplore.core.errors import GpuExploreError, InvalidInput
from gpuexplore.core.model import Device
from gpuexplore.features.model.analysis.layer_kinds import ModelLayer
from gpuexplore.features.model.analysis.models import LayeredModel
from gpuexplore.features.model.analysis.own_module import check_module, memory_of
from gpuexplore.features.model.analysis.parts import Pass, optimizer_part
from gpuexplore.features.model.analysis.plan import ModelPlan
from gpuexplore.features.model.analysis.prediction import ModelPrediction, peak_of, phase_of, usable_bytes_of
from gpuexplore.features.model.analysis.step_time import terms_of
from gpuexplore.measure.candidates.failure import describe_error

if TYPE_CHECKING:
    import torch


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
    check_module(module, inputs, loss, is_trained=plan.is_trained)
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
    step = Pass(tuple(parts), found.kernels, (), 1, found.weights, batch * max(1, tokens))
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
    phase = phase_of(terms_of(step, plan, device), own, plan)
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
    if plan.task not in ("train", "prefill"):
        raise InvalidInput.of("task", plan.task, "train and prefill, the forward pass, of a module")
    if plan.gpus * plan.accumulation > 1 or plan.checkpoint or plan.weights or plan.cache:
        raise InvalidInput(
            "a module is predicted on one GPU, by one batch, as it is: leave out gpus, accumulation, checkpoint, "
            "weights and cache"
        )
