"""What a step computes of tensors and of memory, short: a picture or a line, and the page that has the rest."""

from collections.abc import Mapping, Sequence

import streamlit as st

from gpuexplore.analysis.memory.fits import gpus_named
from gpuexplore.analysis.memory.models import model_named, models
from gpuexplore.analysis.tensors import StepRefused, evaluate
from gpuexplore.analysis.tensors.explain import words
from gpuexplore.charts.tensor import can_draw, tensor_picture
from gpuexplore.devices import accelerator_named
from gpuexplore.lessons.blocks import Memory, Tensor
from gpuexplore.lessons.evidence import Measured
from gpuexplore.lessons.figure import Figure, format_figure, format_with_interval
from gpuexplore.lessons.memory_block import memory_rows, options_of
from gpuexplore.lessons.tensor_block import read_rows
from gpuexplore.model import Device
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.charts import show_chart

READERS: Mapping[str, str] = {"loop": "a loop in row order", "copy": "torch's copy"}


def show_tensor(block: Tensor, *, expanded: bool = True) -> None:
    """Draw a tensor over its storage, with shape, strides and offset; or say why a step is refused.

    Args:
        expanded: whether the picture is seen at once.
    """
    try:
        chain = evaluate(block.expression)
    except StepRefused as error:
        st.markdown(f"`{block.expression}` is refused: {plain(str(error))}")
        return
    view = chain.result
    said = f"`{block.expression}`: shape {words(view.shape)}, strides {words(view.strides)}, offset {view.offset}"
    if not can_draw(view, chain.storage):
        st.markdown(said)
        return
    with st.expander(said, expanded=expanded):
        key = f"chart.tensor.{block.id or block.expression}"
        show_chart(lambda: tensor_picture(chain.steps[-1].text, view, chain.storage), (block.expression,), key=key)


def show_read(block: Tensor, measured: Measured | None) -> None:
    """Show what reading a tensor took, contiguous and strided, and their ratio."""
    if not measured:
        return
    found: dict[str, list[str]] = {}
    for row in read_rows(block, measured):  # type: ignore[arg-type]  # a payload
        figure = next(iter(row.figures.values()))
        found.setdefault(row.labels["name"], []).append(
            format_with_interval(figure) if isinstance(figure, Figure) else figure
        )
    lines = [f"| {READERS[way]} | {' | '.join(figures)} |" for way, figures in found.items()]
    st.markdown("\n".join(("| Read by | Contiguous | Strided | Ratio |", "| --- | ---: | ---: | ---: |", *lines)))


def show_memory(block: Memory, _devices: Sequence[Device]) -> None:
    """Show the peak of a training step, when it is, the most of each kind, and what fits."""
    whole, *kinds = memory_rows(block)
    sizes = {row.labels["name"]: figure for row in kinds if isinstance(figure := row.figures["memory"], Figure)}
    fits = f"; {_fits(block, whole.figures['batch'])}" if "batch" in whole.figures else ""
    listed = [
        f"{name} {format_figure(size)}" for name, size in sizes.items() if size.value and name not in ("peak", "usable")
    ]
    how = ", ".join((f"batch {block.batch:,}", block.dtype, block.optimizer, *block.options))
    peak = f"peak {_words(sizes['peak'])}, in {whole.figures['phase']}{fits}"
    st.markdown(f"**{plain(model_named(block.model).title)}**, {plain(f'{how}: {peak}')}")
    st.caption(f"At most: {', '.join(listed)}")


def memory_query(block: Memory) -> dict[str, str]:
    """Return the parameters of the page Memory with the same choices."""
    model = {"model": block.model} if block.model in models() else {"model": "widths", "widths": block.model}
    chosen = {"batch": str(block.batch), "dtype": block.dtype, "optimizer": block.optimizer}
    gpu = {"gpu": gpus_named([block.gpu])[0].key} if block.gpu else {}
    return model | chosen | options_of(block) | gpu


def device_words(name: str) -> str:
    """Return what a reader calls a device that a lesson names: that of the table, else the name itself."""
    row = accelerator_named(name)
    return row.name if row else name


def _fits(block: Memory, largest: Figure | str) -> str:
    where = device_words(block.gpu)
    if isinstance(largest, Figure) and largest.value < 1:
        return f"no batch fits on {where}"
    return f"the largest batch on {where} is {_words(largest)}"


def _words(figure: Figure | str) -> str:
    return format_figure(figure) if isinstance(figure, Figure) else figure
