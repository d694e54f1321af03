"""Models as torch runs them: the memory and the operations of a module on fake tensors, and measured steps.

`perform` is what the queue calls for activities of the kind `model`; arguments are texts: ``model`` and fields of
`ModelPlan`. It reports seconds of each step, and last the object of `steps.measured`. This module loads no torch.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from gpuexplore.activity import LONGEST_S, Activity, of_kind
from gpuexplore.backends import Clock
from gpuexplore.core import Device, InvalidInput, require
from gpuexplore.features.model.analysis.models import LayeredModel, model_asked
from gpuexplore.features.model.analysis.parts import forward_pass
from gpuexplore.features.model.analysis.plan import ModelPlan, plan_of
from gpuexplore.features.model.analysis.prediction import memory_of_each
from gpuexplore.hardware import check_measured_on, cpu_lost_share, read_cpu_times
from gpuexplore.measure.check.group import check_memory
from gpuexplore.measure.conditions.environment import free_bytes
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks

DTYPES = ("fp32", "bf16", "fp16")
# of layers that are predicted, without a module of torch in `built`
UNBUILT = ("encode", "decode", "conv1d", "positions", "labels", "adaptive_norm", "joint", "join", "latent", "experts")


def perform(
    arguments: Mapping[str, str],
    device: Device,
    *,
    clock: Clock,
    isolation: Isolation,
    progress: ProgressHooks,
) -> None:
    """Measure steps as `arguments` say on `device`.

    Raises:
        InvalidInput, TooLarge: arguments that cannot be used; nothing ran.
        Cancelled: the user asked to stop.
    """
    asked = _asked(arguments, device)
    check_memory(memory_of_each(*asked), free_bytes(device), device)
    before = read_cpu_times()
    steps: Any = import_module("gpuexplore.features.model.measure.steps")
    found = steps.measured(asked, device, clock=clock, isolation=isolation, progress=progress)
    progress.report(found | {"lost_cpu_share": cpu_lost_share(before, read_cpu_times())})


def activity_of(arguments: Mapping[str, str], device: Device) -> Activity:
    """Return the measurement that `arguments` ask for, checked, as work for the queue.

    Raises:
        InvalidInput, TooLarge: arguments that cannot be used, or more memory than is free.
    """
    given = {name: text for name, text in arguments.items() if text}
    model, plan = _asked(given, device)
    check_memory(memory_of_each(model, plan), free_bytes(device), device)
    flop_count = sum(part.flop_count * part.count for part in forward_pass(model, plan).parts)
    step_s = flop_count * (3 if plan.is_trained else 1) / (5e12 if device.kind == "cuda" else 5e10)
    return of_kind(
        "model", given, device=device.id, expected_s=min(LONGEST_S, 30.0 + 40 * step_s)
    )  # of steps with those that warm up


def _asked(arguments: Mapping[str, str], device: Device) -> tuple[LayeredModel, ModelPlan]:
    check_measured_on(device.id, "measuring a model")
    typed = dict(arguments)
    model = model_asked(typed.pop("model", ""))
    plan = plan_of(typed)
    unbuilt = [
        layer.label
        for layer in model.layers
        if layer.kind in UNBUILT
        or layer.settings.get("sinks")
        or 0 < layer.settings.get("window", 0) < (plan.tokens or model.tokens)
    ]
    if unbuilt:
        measured = (
            "models with attention to all tokens, and no encoder: gpt2, llama-3.2-1b, bert-base, vit-b-16, resnet-50"
        )
        raise InvalidInput.of("model", model.name, f"{measured}; `{unbuilt[0]}` is predicted, and not built in torch")
    require(plan.task != "serve", "task", plan.task, "train, prefill and decode to be measured")
    require(plan.dtype in DTYPES, "dtype", plan.dtype, DTYPES)
    if plan.gpus > 1 or plan.checkpoint or plan.accumulation > 1:
        raise InvalidInput("a model is measured on one device, by one batch: leave out gpus, checkpoint, accumulate")
    return model, plan
