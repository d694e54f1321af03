"""The page Memory, its choices and its view; and the block `memory` of a lesson."""

from typing import Any

import streamlit as st

from gpuexplore.analysis.figure import LessonFigure, format_figure
from gpuexplore.features.memory.analysis.fits import gpus_named
from gpuexplore.features.memory.analysis.models import model_named, models
from gpuexplore.features.memory.lesson_block import options_of, rows
from gpuexplore.hardware import accelerator_named
from gpuexplore.ui.markdown import plain


def show_lesson_block(block: Any, _count: int) -> None:
    """Show what the block `memory` of a lesson asks for: the peak of a training step, when it is, and what fits."""
    whole, *kinds = rows(block)
    sizes = {row.labels["name"]: figure for row in kinds if isinstance(figure := row.figures["memory"], LessonFigure)}
    fits = f"; {_fits(block, whole.figures['batch'])}" if "batch" in whole.figures else ""
    listed = [
        f"{name} {format_figure(size)}" for name, size in sizes.items() if size.value and name not in ("peak", "usable")
    ]
    how = ", ".join((f"batch {block.batch:,}", block.dtype, block.optimizer, *block.options))
    peak = f"peak {_words(sizes['peak'])}, in {whole.figures['phase']}{fits}"
    st.markdown(f"**{plain(model_named(block.model).title)}**, {plain(f'{how}: {peak}')}")
    st.caption(f"At most: {', '.join(listed)}")


def lesson_block_query(block: Any) -> dict[str, str]:
    """Return the parameters of the page Memory with the choices of a block."""
    model = {"model": block.model} if block.model in models() else {"model": "widths", "widths": block.model}
    chosen = {"batch": str(block.batch), "dtype": block.dtype, "optimizer": block.optimizer}
    gpu = {"gpu": gpus_named([block.gpu])[0].key} if block.gpu else {}
    return model | chosen | options_of(block) | gpu


def _fits(block: Any, largest: LessonFigure | str) -> str:
    row = accelerator_named(block.gpu)
    where = row.name if row else block.gpu
    if isinstance(largest, LessonFigure) and largest.value < 1:
        return f"no batch fits on {where}"
    return f"the largest batch on {where} is {_words(largest)}"


def _words(figure: LessonFigure | str) -> str:
    return format_figure(figure) if isinstance(figure, LessonFigure) else figure
