"""`gx.predict_model`: the speed and memory of a whole model, from the texts that people type."""

from collections.abc import Callable
from typing import Any

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.analysis.models import model_asked
from gpuexplore.features.model.analysis.own_module import predict_module
from gpuexplore.features.model.analysis.plan import plan_of
from gpuexplore.features.model.analysis.prediction import ModelPrediction
from gpuexplore.features.model.analysis.prediction import predict_model as predicted
from gpuexplore.hardware import target_named
from gpuexplore.hardware.discovery import discover

USUAL_GPU = "h100"


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
    asked = plan_of({name: _text(value) for name, value in plan.items()})
    device = target_named(gpu, discover())
    if not isinstance(model, str):
        (found,) = predict_module(model, inputs, asked, (device,), loss=loss)
        return found
    if inputs is not None or loss is not None:
        raise InvalidInput("inputs and loss are those of a module: leave them out with the name of a model")
    return predicted(model_asked(model), asked, device)


def _text(value: object) -> str:
    return {True: "yes", False: "", None: ""}.get(value, str(value)) if isinstance(value, bool | None) else str(value)
