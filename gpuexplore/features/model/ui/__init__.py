"""Memory of a model on a page: the peak, what fits, the timeline, GPUs and layers, and what row C4 may have counted.

And the block `memory` of a lesson. What is chosen on the page is in `gpuexplore.features.model.ui.choice`.
"""

from collections import Counter
from collections.abc import Mapping
from operator import mul
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.figure import LessonFigure, format_figure
from gpuexplore.core.units import format_bytes, format_gigabytes
from gpuexplore.features.model.analysis import OPTIMIZERS, Serving, Training
from gpuexplore.features.model.analysis.answers import headline
from gpuexplore.features.model.analysis.fits import (
    CONTEXT_SOURCE,
    DEFAULT_RESERVE,
    Fit,
    Gpu,
    Reserve,
    all_gpus,
    fits_of,
    gpus_named,
    memory_of,
)
from gpuexplore.features.model.analysis.layer_kinds import KINDS
from gpuexplore.features.model.analysis.models import LayeredModel, model_named, models, tape_of
from gpuexplore.features.model.analysis.training import (
    MemoryTimeline,
    cache_bytes,
    micro_batch_of,
    training_memory,
)
from gpuexplore.features.model.chart import memory_timeline
from gpuexplore.features.model.lesson_block import block_name, options_of, prediction_of, rows
from gpuexplore.hardware import accelerator_named
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

# Row C4 of the notebooks says AlexNet needs 1.1 GB at batch 128 and VGG-16 about 14: what one may have counted. The
# notebook does not say what it counted, so no row here is said to be its way.
BATCH = 128
SAID_BYTES = {"alexnet-2012": 1.1e9, "alexnet": 1.1e9, "vgg-16": 14e9}


RULES: Mapping[str, tuple[int, int, int, int]] = {  # times parameters, outputs, ReLU's outputs, the largest output
    "outputs of convolutions, pools and dense layers, once": (0, 1, 0, 0),
    "the same, with parameters and gradients": (2, 1, 0, 0),
    "the same, with two gradient maps of the largest output": (2, 1, 0, 2),
    "outputs and separate ReLU outputs, parameters, gradients": (2, 1, 1, 0),
    "every map and parameter twice: value and gradient": (2, 2, 0, 0),
}


def _countings() -> dict[str, dict[str, int]]:
    """Return the bytes of each model at batch 128 in fp32 by what is counted, a training step's peak first."""
    found: dict[str, dict[str, int]] = {}
    for optimizer in ("sgd", "momentum", "adamw"):
        words = f"peak of a training step with {OPTIMIZERS[optimizer].title}, as PyTorch allocates"
        setup = Training(optimizer=optimizer)
        found[words] = {name: training_memory(name, BATCH, setup).total_bytes for name in SAID_BYTES}
    sizes = {name: _sizes(model_named(name)) for name in SAID_BYTES}
    for words, times in RULES.items():
        found[words] = {name: sum(map(mul, times, of_model)) for name, of_model in sizes.items()}
    return found


def _sizes(model: LayeredModel) -> tuple[int, int, int, int]:
    """Return the bytes of parameters, of outputs with ReLU in place, of ReLU's outputs, and of the largest output."""
    tape = tape_of(model, Training())
    made = [(step, tape.buffers[step.outputs[0]].at(BATCH)) for step in tape.steps]
    # products and pools make maps of their own, ReLU works in place
    sizes = [size for step, size in made if step.weights or tape.layers[step.layer].startswith("max pool")]
    return sum(tape.weights) * tape.itemsize, sum(sizes), sum(size for step, size in made if step.in_place), max(sizes)


def _layer_rows(model: LayeredModel, setup: Training, micro_batch: int) -> list[dict[str, Any]]:
    """Return a row of the table for each layer of a training step, the loss last.

    Parameters that are tied count where they are first, and bytes that an earlier layer keeps are not kept twice.
    """
    tape = tape_of(model, setup)
    parameters: Counter[int] = Counter()
    kept: Counter[int] = Counter()
    outputs: dict[int, int] = {}
    seen: set[int] = {0}  # the batch is there anyway
    seen_weights: set[int] = set()
    for step in tape.steps:
        outputs[step.layer] = tape.buffers[step.outputs[0]].at(micro_batch)
        kept[step.layer] += sum(tape.buffers[buffer].at(micro_batch) for buffer in {*step.kept} - seen)
        seen |= {*step.kept}
        parameters[step.layer] += sum(tape.weights[weight] for weight in {*step.weights} - seen_weights)
        seen_weights |= {*step.weights}
    words = [KINDS[layer.kind].keeps for layer in model.layers] + ["its output"]
    return [
        {
            "Layer": label,
            "Parameters": parameters[index],
            "Output": outputs[index],
            "Kept for backward": kept[index],
            "What is kept": words[index],
        }
        for index, label in enumerate(tape.layers)
        if index in outputs
    ]


FITS = {True: "yes", False: "no"}


def show_memory(asked: tuple[LayeredModel, int, Training | Serving, Gpu, Reserve], picture: DeltaGenerator) -> str:
    """Compute and show what was asked, its timeline in `picture`; return the answer, a sentence.

    Raises:
        InvalidInput: a layer or the batch cannot be; says what is accepted.
    """
    model, batch, setup, gpu, reserve = asked
    memory = memory_of(model, batch, setup)
    (fit,) = fits_of(model, batch, setup, [gpu], reserve=reserve)
    capacities = {gpu.name: fit.usable_bytes} if fit.usable_bytes else {}
    with picture:
        show_chart(lambda: memory_timeline(memory, capacities), asked, key="chart.memory.timeline")
    _summary(memory, fit, reserve)
    if isinstance(setup, Training):
        st.caption(
            "Counts what PyTorch allocates for tensors in any step after the first, with an optimizer that updates all "
            "parameters at once (`foreach`). Workspaces of cuDNN and cuBLAS, and fragmentation, are part of the "
            "reserved memory."
        )
    else:
        per_token = format_gigabytes(cache_bytes(model, 3, setup) - cache_bytes(model, 2, setup))
        st.caption(
            f"KV cache: {per_token} per token = 2 × layers × KV heads × head dimension × bytes per element. All "
            "sequences share the weights; temporary buffers of the prompt pass (prefill) are not counted."
        )
    grows = memory.most("KV cache") > 0  # and nothing goes before the end
    st.subheader("Memory by kind" if grows else "Memory by kind, largest and at the peak", anchor="kinds")
    kinds = [(kind, memory.most(kind), size) for kind, size in memory.peak.bytes_by_kind.items() if memory.most(kind)]
    lines = [f"| {kind} | {format_gigabytes(most)} | {format_gigabytes(size)} |" for kind, most, size in kinds]
    total = f"| sum | | {format_gigabytes(memory.total_bytes)} |"  # of what is largest at other moments there is none
    st.markdown("\n".join(("| Kind | At most | At the peak |", "| --- | ---: | ---: |", *lines, total)))
    if not grows:
        st.caption("Kinds are largest at different moments: activations are freed while gradients are allocated.")
    _fits(model, batch, setup, reserve)
    if isinstance(setup, Training):
        _layers(model, batch, setup)
    return _answer(memory, fit, setup)


def _answer(memory: MemoryTimeline, fit: Fit, setup: Training | Serving) -> str:
    """Return whether the model fits the GPU, how much it needs, and the largest batch that does."""
    what = f"{plain(memory.model.title)} at batch {memory.batch:,}"
    doing = "Training" if isinstance(setup, Training) else "Serving"
    needs = f"{doing} {what} needs {format_gigabytes(memory.total_bytes)}"
    if fit.fits is None or fit.usable_bytes is None:
        return f"{needs}; the memory of {plain(fit.gpu.name)} is unknown."
    verb = "fits" if fit.fits else "does not fit"
    largest = f"the largest batch is {fit.largest_batch:,}" if fit.largest_batch else "no batch does"
    room = format_gigabytes(fit.usable_bytes)
    return f"{needs}: it {verb} the {room} that {plain(fit.gpu.name)} has for tensors; {largest}."


def _summary(memory: MemoryTimeline, fit: Fit, reserve: Reserve) -> None:
    gpu = fit.gpu
    usable = f"The memory of {gpu.name} is unknown."
    if gpu.memory_bytes is not None and fit.usable_bytes is not None:
        source = f" ([source of the 1.3 GB]({CONTEXT_SOURCE}))" if reserve == DEFAULT_RESERVE else ""
        usable = (
            f"{gpu.name} has {format_bytes(gpu.memory_bytes)}, {format_gigabytes(gpu.memory_bytes)}; "
            f"reserved, as an assumption: {reserve.words}"
            f"{source}. For tensors: {format_gigabytes(fit.usable_bytes)}."
        )
    st.markdown(  # no caption: a link in one is too faint to read
        f"{plain(memory.model.title)}: {memory.parameter_count:,} parameters, batch {memory.batch:,}, peak in "
        f"{plain(memory.peak.moment)}. {usable}"
    )


def _fits(model: LayeredModel, batch: int, setup: Training | Serving, reserve: Reserve) -> None:
    st.subheader("GPUs it fits", anchor="fits")
    known = [gpu for gpu in all_gpus() if gpu.memory_bytes is not None]

    show_table(
        lambda: [
            {
                "GPU": fit.gpu.name,
                "Memory": fit.gpu.memory_bytes,
                "For tensors": fit.usable_bytes,
                "Fits": FITS.get(fit.fits or False),
                "Largest batch": fit.largest_batch,
            }
            for fit in sorted(
                fits_of(model, batch, setup, known, reserve=reserve),
                key=lambda fit: (not fit.fits, fit.gpu.memory_bytes or 0),
            )
        ],
        (model, batch, setup, reserve),
        {"Memory": "B", "For tensors": "GB", "Largest batch": "count"},
        alt=f"Table of {len(known)} GPUs: whether batch {batch:,} fits, and the largest batch that does",
    )


def _layers(model: LayeredModel, batch: int, setup: Training) -> None:
    st.subheader("Layers", anchor="layers")
    show_table(
        lambda: _layer_rows(model, setup, micro_batch_of(batch, setup)),
        (model, batch, setup),
        {"Parameters": "count", "Output": "MB", "Kept for backward": "MB"},
        alt="Table of the layers with their parameters, outputs and tensors kept for backward",
        config={"What is kept": st.column_config.TextColumn(width="large")},
    )
    st.caption("Without checkpointing; tensors that an earlier layer already keeps are not counted twice.")


def show_countings() -> None:
    """Show every kind of layer with what is kept of it, and what 1.1 GB for AlexNet and 14 GB for VGG-16 may count."""
    with st.expander("Kinds of layers"):
        lines = [f"| `{kind.syntax}` | {kind.keeps} |" for kind in KINDS.values()]
        st.markdown("\n".join(("| Line | Kept for its backward |", "| --- | --- |", *lines)))
        st.caption(
            "`repeat N` ... `end` repeats what stands between. `split` ... `shortcut` ... `add` is a residual block; "
            "without `shortcut` its input is added as it is. `#` begins a comment."
        )
    st.subheader("How the notebook may have counted", anchor="countings")
    st.markdown(
        "Row C4 of the [fact check](fact-check): AlexNet at batch 128 takes 1.1 GB, VGG-16 about 14 GB, a Titan X has "
        "12 GB. The notebook does not say what it counted: these are candidates."
    )
    names = {name: models()[name].title for name in SAID_BYTES}
    rows_by_rule: dict[str, Mapping[str, float]] = {**_countings(), "said by the notebook": SAID_BYTES}
    show_table(
        lambda: [
            {"Counted": rule} | {title: sizes[name] for name, title in names.items()}
            for rule, sizes in rows_by_rule.items()
        ],
        "countings",
        dict.fromkeys(names.values(), "GB"),
        alt="Table of ways to count the memory of AlexNet and VGG-16 at batch 128 in fp32, with the notebook's figures",
        config={"Counted": st.column_config.TextColumn(width="large")},
    )
    st.caption(
        "Batch 128, fp32. vDNN (arXiv 1602.08124) has 28 GB for VGG-16 at batch 256: that would be 14 GB at 128, if "
        "all of it scaled with the batch."
    )


def show_lesson_block(block: Any, _count: int) -> None:
    """Show what the block `memory` or `model` of a lesson asks for: the peak and what fits, or the speed."""
    if block_name(block) == "model":
        found = prediction_of(block)
        st.markdown(f"**{plain(headline(found))}**")
        st.caption(plain(f"Interval: {found.main.basis}."))
        return
    whole, *kinds = rows(block)
    sizes = {row.labels["name"]: figure for row in kinds if isinstance(figure := row.figures["memory"], LessonFigure)}
    fits = ""
    largest = whole.figures.get("batch")
    if isinstance(largest, LessonFigure):
        row = accelerator_named(block.gpu)
        where = row.name if row else block.gpu
        fits = f"; the largest batch on {where} is {format_figure(largest)}"
        if largest.value < 1:
            fits = f"; no batch fits on {where}"
    listed = [
        f"{name} {format_figure(size)}" for name, size in sizes.items() if size.value and name not in ("peak", "usable")
    ]
    how = ", ".join((f"batch {block.batch:,}", block.dtype, block.optimizer, *block.options))
    peak = f"peak {format_figure(sizes['peak'])}, in {whole.figures['phase']}{fits}"
    st.markdown(f"**{plain(model_named(block.model).title)}**, {plain(f'{how}: {peak}')}")
    st.caption(f"At most: {', '.join(listed)}")


def lesson_block_query(block: Any) -> dict[str, str]:
    """Return the parameters of the view Memory with the choices of a block."""
    if block_name(block) == "model":
        return {"model": block.model, "gpu": block.gpu, "task": "serve" if block.task != "train" else "train"}
    model = {"model": block.model} if block.model in models() else {"model": "widths", "widths": block.model}
    chosen = {"view": "memory", "batch": str(block.batch), "dtype": block.dtype, "optimizer": block.optimizer}
    return model | chosen | options_of(block) | ({"gpu": gpus_named([block.gpu])[0].key} if block.gpu else {})
