"""Memory on a page: the peak and what fits, the timeline, every GPU, every layer, and what row C4 may have counted."""

from collections.abc import Mapping, Sequence

import streamlit as st

from gpuexplore.features.memory.analysis.countings import DISCLAIMER, MODELS, PUBLISHED, SAID_BYTES, countings
from gpuexplore.features.memory.analysis.fits import CONTEXT_SOURCE, DEFAULT_RESERVE, Fit, all_gpus, fits_of
from gpuexplore.features.memory.analysis.layer_table import layer_rows
from gpuexplore.features.memory.analysis.layers.kinds import KINDS
from gpuexplore.features.memory.analysis.models import models
from gpuexplore.features.memory.analysis.request import memory_of, reserve_words
from gpuexplore.features.memory.analysis.serving import cache_bytes_per_token
from gpuexplore.features.memory.analysis.setup import Serving, Training
from gpuexplore.features.memory.analysis.training import MemoryTimeline, micro_batch_of
from gpuexplore.features.memory.chart import memory_timeline
from gpuexplore.features.memory.ui.choice import MemoryChoice
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.units import UNKNOWN, format_bytes, format_gigabytes

FITS = {True: "yes", False: "no"}
NOT_COUNTED = (
    "Counted is what PyTorch allocates for tensors, in a step after the first, with an optimizer that works on all "
    "parameters at once (`foreach`). Workspaces of cuDNN and cuBLAS and what the allocator cannot use are in the "
    "reserve."
)


def show_memory(asked: MemoryChoice) -> None:
    """Compute and show what was asked.

    Raises:
        InvalidInput: a layer or the batch cannot be; says what is accepted.
    """
    memory = memory_of(asked.model, asked.batch, asked.setup)
    (fit,) = fits_of(asked.model, asked.batch, asked.setup, [asked.gpu], reserve=asked.reserve)
    _summary(memory, fit, asked)
    capacities = {f"for tensors on {fit.gpu.name}": fit.usable_bytes} if fit.usable_bytes else {}
    show_chart(lambda: memory_timeline(memory, capacities), asked, key="chart.memory.timeline")
    st.caption(NOT_COUNTED if isinstance(asked.setup, Training) else _served(asked, asked.setup))
    _kinds(memory)
    _fits(asked)
    if isinstance(asked.setup, Training):
        _layers(asked, asked.setup)


def _summary(memory: MemoryTimeline, fit: Fit, asked: MemoryChoice) -> None:
    largest = UNKNOWN if fit.largest_batch is None else f"{fit.largest_batch:,}"
    columns = st.columns(4, gap="medium")
    columns[0].metric("Peak", format_gigabytes(memory.total_bytes))
    columns[1].metric("Peak moment", memory.peak.phase, memory.peak.layer or None, delta_color="off", delta_arrow="off")
    columns[2].metric(f"Fits {asked.gpu.name}", FITS[fit.fits] if fit.fits is not None else UNKNOWN)
    columns[3].metric("Largest batch", largest)
    st.markdown(  # no caption: a link in one is too faint to read
        f"{plain(memory.model.title)}: {memory.parameter_count:,} parameters, batch {memory.batch:,}. "
        f"{_room(fit, asked)}"
    )


def _room(fit: Fit, asked: MemoryChoice) -> str:
    if fit.gpu.memory_bytes is None or fit.usable_bytes is None:
        return f"The memory of {fit.gpu.name} is unknown."
    there = format_bytes(fit.gpu.memory_bytes)
    source = f" ([source of the 1.3 GB]({CONTEXT_SOURCE}))" if asked.reserve == DEFAULT_RESERVE else ""
    return (
        f"{fit.gpu.name} has {there}; reserved, as an assumption: {reserve_words(asked.reserve)}{source}. "
        f"For tensors: {format_gigabytes(fit.usable_bytes)}."
    )


def _served(asked: MemoryChoice, setup: Serving) -> str:
    per_token = format_gigabytes(cache_bytes_per_token(asked.model, setup))
    return (
        f"KV cache: {per_token} a token = 2 × layers × KV heads × head dimension × bytes of a number. Weights once, "
        "for all sequences; what the first pass over a prompt needs for a moment is not counted."
    )


def _kinds(memory: MemoryTimeline) -> None:
    grows = memory.cache_bytes > 0  # and nothing goes before the end
    st.subheader("What it is made of" if grows else "A peak is not the sum of its parts", anchor="kinds")
    rows = [
        {"Kind": kind, "At most": memory.most(kind), "At the peak": size}
        for kind, size in memory.peak.bytes_by_kind.items()
        if memory.most(kind)
    ]
    total = {
        "Kind": "sum",
        "At most": sum(map(memory.most, memory.peak.bytes_by_kind)),
        "At the peak": memory.total_bytes,
    }
    st.markdown(_table([*rows, total]))
    if not grows:
        st.caption("Kinds are largest at different moments: activations go while gradients come.")


def _table(rows: Sequence[Mapping[str, object]]) -> str:
    lines = [f"| {row['Kind']} | {_size(row['At most'])} | {_size(row['At the peak'])} |" for row in rows]
    return "\n".join(("| Kind | At most | At the peak |", "| --- | ---: | ---: |", *lines))


def _size(value: object) -> str:
    return format_gigabytes(value) if isinstance(value, int) else UNKNOWN


def _fits(asked: MemoryChoice) -> None:
    st.subheader("What fits where", anchor="fits")
    known = [gpu for gpu in all_gpus() if gpu.memory_bytes is not None]

    def rows() -> list[dict[str, object]]:
        found = fits_of(asked.model, asked.batch, asked.setup, known, reserve=asked.reserve)
        return [
            {
                "GPU": fit.gpu.name,
                "Memory": fit.gpu.memory_bytes,
                "For tensors": fit.usable_bytes,
                "Fits": FITS.get(fit.fits or False),
                "Largest batch": fit.largest_batch,
            }
            for fit in found
        ]

    alt = f"Table of {len(known)} GPUs: whether batch {asked.batch:,} fits, and the largest batch that does"
    show_table(rows, asked, {"Memory": "B", "For tensors": "GB", "Largest batch": "count"}, alt=alt)


def _layers(asked: MemoryChoice, setup: Training) -> None:
    st.subheader("Layers", anchor="layers")
    micro_batch = micro_batch_of(asked.batch, setup)

    def rows() -> list[dict[str, object]]:
        return [
            {
                "Layer": row.label,
                "Parameters": row.parameter_count,
                "Output": row.output_bytes,
                "Kept for backward": row.kept_bytes,
                "What is kept": row.keeps,
            }
            for row in layer_rows(asked.model, setup, micro_batch)
        ]

    units = {"Parameters": "count", "Output": "MB", "Kept for backward": "MB"}
    show_table(
        rows,
        asked,
        units,
        alt="Table of the layers with their parameters, outputs and what is kept of each",
        config={"What is kept": st.column_config.TextColumn(width="large")},
    )
    st.caption("Kept without checkpoints; what an earlier layer keeps anyway is not counted twice.")


def show_countings() -> None:
    """Show what 1.1 GB for AlexNet and 14 GB for VGG-16 may have counted."""
    st.subheader("What may the notebook have counted?", anchor="countings")
    st.markdown(
        "Row C4 of the [fact check](fact-check): AlexNet at batch 128 takes 1.1 GB, VGG-16 about 14 GB, a Titan X has "
        f"12 GB. {DISCLAIMER}"
    )
    names = {name: models()[name].title for name in MODELS}
    show_table(
        lambda: [
            *({"Counted": counting.rule} | _columns(names, counting.bytes_by_model) for counting in countings()),
            {"Counted": "said by the notebook"} | _columns(names, SAID_BYTES),
        ],
        "countings",
        dict.fromkeys(names.values(), "GB"),
        alt="Table of ways to count the memory of AlexNet and VGG-16 at batch 128 in fp32, with what the notebook says",
        config={"Counted": st.column_config.TextColumn(width="large")},
    )
    st.caption(f"Batch 128, fp32. {PUBLISHED}")


def _columns(names: Mapping[str, str], sizes: Mapping[str, float]) -> dict[str, object]:
    return {title: sizes[name] for name, title in names.items()}


def show_kinds() -> None:
    """Show every kind of layer with how it is typed and what is kept of it."""
    with st.expander("Kinds of layers"):
        lines = [f"| `{kind.syntax}` | {kind.keeps} |" for kind in KINDS.values()]
        st.markdown("\n".join(("| Line | Kept for its backward |", "| --- | --- |", *lines)))
        st.caption(
            "`repeat N` ... `end` repeats what stands between. `split` ... `shortcut` ... `add` is a residual block; "
            "without `shortcut` its input is added as it is. `#` begins a comment."
        )
