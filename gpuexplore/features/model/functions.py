"""`gx.predict_model`: the speed and memory of a whole model, from the texts that people type."""

from typing import Any

from gpuexplore.features.model.analysis.models import LayeredModel, model_named, read_layers_file
from gpuexplore.features.model.analysis.plan import plan_of
from gpuexplore.features.model.analysis.prediction import ModelPrediction
from gpuexplore.features.model.analysis.prediction import predict_model as predicted
from gpuexplore.hardware import target_named
from gpuexplore.hardware.discovery import discover

USUAL_GPU = "h100"


def predict_model(model: str, *, gpu: str = USUAL_GPU, **plan: Any) -> ModelPrediction:
    """Return how fast a model is on a GPU, with an interval, and the memory that each GPU needs.

    Args:
        model: a name like ``llama-3-8b`` or ``gpt2``, a `config.json`, or a text file of layers.
        gpu: a name of `gx.specs`, or the id of a device of this machine.
        plan: task (train, prefill, decode, serve), gpus, tensor_parallel, shard, batch, tokens, answer, dtype, weights,
            cache, checkpoint, accumulation, optimizer, execution, network_gbs.

    Raises:
        InvalidInput: names the value and what is accepted.
    """
    return predicted(
        model_asked(model), plan_of({name: _text(value) for name, value in plan.items()}), target_named(gpu, discover())
    )


def model_asked(name: str) -> LayeredModel:
    """Return the model of a name, or of a file that describes it.

    Raises:
        InvalidInput: there is none; says what is accepted.
    """
    if name.endswith((".json", ".txt")):
        return LayeredModel(name, name.rpartition("/")[2], read_layers_file(name))
    return model_named(name)


def _text(value: object) -> str:
    return {True: "yes", False: "", None: ""}.get(value, str(value)) if isinstance(value, bool | None) else str(value)
