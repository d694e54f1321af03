"""The quantities of the blocks `memory` and `model` of a lesson: what a model needs, what fits, and how fast it is."""

from typing import Any

from gpuexplore.analysis.figure import (
    BANDWIDTH,
    INTENSITY,
    PLAIN,
    RATE,
    SIZE,
    TIME,
    WORK,
    Dimension,
    LessonFigure,
    QuantityRow,
    Style,
    exact,
)
from gpuexplore.analysis.prediction import UncertainValue
from gpuexplore.core import InvalidInput, Origin
from gpuexplore.features.model.analysis import Training
from gpuexplore.features.model.analysis.fits import batch_of, fits_of, gpus_named, reserve_of, setup_of
from gpuexplore.features.model.analysis.memory_model import KINDS_OF_MEMORY
from gpuexplore.features.model.analysis.models import model_named
from gpuexplore.features.model.analysis.own_module import predict_model
from gpuexplore.features.model.analysis.prediction import ModelPrediction
from gpuexplore.features.model.analysis.training import training_memory


def rows(block: Any) -> tuple[QuantityRow, ...]:
    """Return what a training step needs: by kind at most, at the peak, and what fits its GPU; or how fast a model is.

    Raises:
        InvalidInput: no such model, GPU, option or value; says what is accepted.
    """
    if block_name(block) == "model":
        return (_speed_row(block),)
    given = options_of(block)
    model = model_named(block.model)
    setup = setup_of(
        {
            "dtype": block.dtype,
            "optimizer": block.optimizer,
            "mixed": given.get("mixed", ""),
            "checkpoints": given.get("checkpoints", ""),
            "accumulation": given.get("accumulate", ""),
            "tokens": given.get("tokens", ""),
        }
    )
    assert isinstance(setup, Training)
    memory = training_memory(model, batch_of(str(block.batch), model), setup)
    gpus = gpus_named([block.gpu]) if block.gpu else ()
    fit = next(iter(fits_of(model, memory.batch, setup, gpus, reserve=reserve_of(given.get("reserve", "")))), None)
    whole: dict[str, LessonFigure | str] = {"phase": memory.peak.phase, "count": exact(float(memory.parameter_count))}
    if fit and fit.largest_batch is not None:
        whole["batch"] = exact(float(fit.largest_batch))
    # kinds are largest at different moments, so the peak is not their sum
    sizes = {kind.removesuffix(" state"): memory.most(kind) for kind in KINDS_OF_MEMORY} | {"peak": memory.total_bytes}
    if fit and fit.usable_bytes is not None:
        sizes["usable"] = fit.usable_bytes
    return (
        QuantityRow({"of": block.id}, whole),
        *(
            QuantityRow({"of": block.id, "name": name}, {"memory": exact(float(size), SIZE)})
            for name, size in sizes.items()
        ),
    )


def prediction_of(block: Any) -> ModelPrediction:
    """Return the prediction that the block `model` asks for.

    Raises:
        InvalidInput: no such model, GPU, option or value; says what is accepted.
    """
    given = dict(option.partition("=")[::2] for option in block.options)
    return predict_model(block.model, gpu=block.gpu, task=block.task, **given)


def block_name(block: Any) -> str:
    """Return what a lesson calls a block of this feature."""
    return "model" if hasattr(block, "task") else "memory"


def _speed_row(block: Any) -> QuantityRow:
    """Return time and MFU of a step with their intervals, its FLOPs, what it moves, memory, weights, peak and limit."""
    found = prediction_of(block)
    step = found.main
    origin = frozenset({Origin.PREDICTED.label})

    def figure(value: UncertainValue, dimension: Dimension = PLAIN, style: Style = "number") -> LessonFigure:
        return LessonFigure(value.value, value.low, value.high, dimension, style, sources=origin)

    moved = sum(part.byte_count * part.count for part, _ in step.parts)
    figures: dict[str, LessonFigure | str] = {
        "time": figure(step.time_s, TIME),
        "flops": exact(found.flop_count, WORK),
        "bytes": exact(moved, SIZE),
        "intensity": exact(found.flop_count / found.plan.gpus / moved, INTENSITY),
        "count": exact(float(found.weights)),
        "memory": exact(float(found.memory_bytes), SIZE),
        "bound": "compute" if step.limit == "compute" else "memory",
    }
    if found.peak_flop_per_s and (mfu := found.mfu()):
        figures |= {"peak": exact(found.peak_flop_per_s, RATE), "mfu": figure(mfu, style="percent")}
    if found.device.bandwidth:
        figures["peak_bandwidth"] = exact(found.device.bandwidth.bytes_per_s, BANDWIDTH)
    return QuantityRow({"of": block.id}, figures)


def options_of(block: Any) -> dict[str, str]:
    """Return the options by name.

    Raises:
        InvalidInput: no such option.
    """
    given = dict(option.partition("=")[::2] for option in block.options)
    known = ("mixed", "checkpoints", "accumulate", "tokens", "reserve")  # as links to the page Memory name them
    for name in given:
        if name not in known:
            raise InvalidInput.of("option of memory", name, [f"{option}=" for option in known])
    return given
