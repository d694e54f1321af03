"""The quantities of the block `memory` of a lesson: what a training step needs and when, and the largest batch."""

from typing import Any

from gpuexplore.analysis.figure import SIZE, LessonFigure, QuantityRow, exact
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.memory.analysis.fits import Fit, MemoryQuestion, fits_of, gpus_named
from gpuexplore.features.memory.analysis.memory_model import KINDS_OF_MEMORY
from gpuexplore.features.memory.analysis.models import model_named
from gpuexplore.features.memory.analysis.setup import Training
from gpuexplore.features.memory.analysis.training import MemoryTimeline, training_memory

OPTIONS = ("mixed", "checkpoints", "accumulate", "tokens", "reserve")  # as links to the page Memory name them
NAMES = {"optimizer state": "optimizer"}  # what a lesson calls it, where that is not the kind itself


def rows(block: Any) -> tuple[QuantityRow, ...]:
    """Return what a training step needs: by kind at most, at the peak, and what fits its GPU.

    Raises:
        InvalidInput: no such model, GPU, option or value; says what is accepted.
    """
    question = _question_of(block)
    model, setup = model_named(block.model), question.setup()
    assert isinstance(setup, Training)
    memory = training_memory(model, question.batch_of(model), setup)
    gpus = gpus_named([block.gpu]) if block.gpu else ()
    fit = next(iter(fits_of(model, memory.batch, setup, gpus, reserve=question.reserve_of())), None)
    whole: dict[str, LessonFigure | str] = {"phase": memory.peak.phase, "count": exact(float(memory.parameter_count))}
    if fit and fit.largest_batch is not None:
        whole["batch"] = exact(float(fit.largest_batch))
    sizes = _sizes(memory, fit)
    return (
        QuantityRow({"of": block.id}, whole),
        *(
            QuantityRow({"of": block.id, "name": name}, {"memory": exact(float(size), SIZE)})
            for name, size in sizes.items()
        ),
    )


def _question_of(block: Any) -> MemoryQuestion:
    """Return what is asked, as the page Memory and the command line take it.

    Raises:
        InvalidInput: no such option.
    """
    given = options_of(block)
    return MemoryQuestion(
        batch=str(block.batch),
        dtype=block.dtype,
        optimizer=block.optimizer,
        mixed=given.get("mixed", ""),
        checkpoints=given.get("checkpoints", ""),
        accumulation=given.get("accumulate", ""),
        tokens=given.get("tokens", ""),
        reserve=given.get("reserve", ""),
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


def _sizes(memory: MemoryTimeline, fit: Fit | None) -> dict[str, int]:
    """Return bytes by name; kinds are largest at different moments, so the peak is not their sum."""
    found = {NAMES.get(kind, kind): memory.most(kind) for kind in KINDS_OF_MEMORY}
    found |= {"peak": memory.total_bytes}
    return found | ({"usable": fit.usable_bytes} if fit and fit.usable_bytes is not None else {})
