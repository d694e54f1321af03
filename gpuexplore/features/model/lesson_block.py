"""The quantities of the block `memory` of a lesson: what a training step needs and when, and the largest batch."""

from typing import Any

from gpuexplore.analysis.figure import SIZE, LessonFigure, QuantityRow, exact
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.analysis import Training
from gpuexplore.features.model.analysis.fits import batch_of, fits_of, gpus_named, reserve_of, setup_of
from gpuexplore.features.model.analysis.memory_model import KINDS_OF_MEMORY
from gpuexplore.features.model.analysis.models import model_named
from gpuexplore.features.model.analysis.training import training_memory


def rows(block: Any) -> tuple[QuantityRow, ...]:
    """Return what a training step needs: by kind at most, at the peak, and what fits its GPU.

    Raises:
        InvalidInput: no such model, GPU, option or value; says what is accepted.
    """
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
