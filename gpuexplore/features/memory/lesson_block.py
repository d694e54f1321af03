"""The quantities of the block `memory` of a lesson: what a training step needs and when, and the largest batch."""

from typing import Any

from gpuexplore.analysis.figure import SIZE, LessonFigure, QuantityRow, exact
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.memory.analysis import Training
from gpuexplore.features.memory.analysis.fits import MemoryQuestion, fits_of, gpus_named
from gpuexplore.features.memory.analysis.memory_model import KINDS_OF_MEMORY
from gpuexplore.features.memory.analysis.models import model_named
from gpuexplore.features.memory.analysis.training import training_memory

OPTIONS = ("mixed", "checkpoints", "accumulate", "tokens", "reserve")  # as links to the page Memory name them


def rows(block: Any) -> tuple[QuantityRow, ...]:
    """Return what a training step needs: by kind at most, at the peak, and what fits its GPU.

    Raises:
        InvalidInput: no such model, GPU, option or value; says what is accepted.
    """
    given = options_of(block)
    question = MemoryQuestion(
        batch=str(block.batch),
        dtype=block.dtype,
        optimizer=block.optimizer,
        mixed=given.get("mixed", ""),
        checkpoints=given.get("checkpoints", ""),
        accumulation=given.get("accumulate", ""),
        tokens=given.get("tokens", ""),
        reserve=given.get("reserve", ""),
    )
    model = model_named(block.model)
    setup = question.setup()
    assert isinstance(setup, Training)
    memory = training_memory(model, question.batch_of(model), setup)
    gpus = gpus_named([block.gpu]) if block.gpu else ()
    fit = next(iter(fits_of(model, memory.batch, setup, gpus, reserve=question.reserve_of())), None)
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
    for name in given:
        if name not in OPTIONS:
            raise InvalidInput.of("option of memory", name, [f"{known}=" for known in OPTIONS])
    return given
