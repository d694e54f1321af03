"""Memory on a page: the peak and what fits, the timeline, every GPU, every layer, and what row C4 may have counted."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from gpuexplore.core.units import UNKNOWN, format_bytes, format_gigabytes
from gpuexplore.features.memory.analysis.fits import (
    CONTEXT_SOURCE,
    DEFAULT_RESERVE,
    Fit,
    all_gpus,
    fits_of,
    memory_of,
    reserve_words,
)
from gpuexplore.features.memory.analysis.layer_kinds import KINDS
from gpuexplore.features.memory.analysis.models import LayeredModel, model_named, models, tape_of
from gpuexplore.features.memory.analysis.setup import OPTIMIZERS, Serving, Training
from gpuexplore.features.memory.analysis.tape import Tape, TapeStep
from gpuexplore.features.memory.analysis.training import (
    MemoryTimeline,
    cache_bytes_per_token,
    micro_batch_of,
    training_memory,
)
from gpuexplore.features.memory.chart import memory_timeline
from gpuexplore.features.memory.ui.choice import MemoryChoice
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

# Row C4 of the notebooks says AlexNet needs 1.1 GB at batch 128 and VGG-16 about 14: what one may have counted.
#
# The notebook does not say what it counted, so no row here is said to be its way.


BATCH = 128
MODELS = ("alexnet-2012", "alexnet", "vgg-16")
SAID_BYTES = {"alexnet-2012": 1.1e9, "alexnet": 1.1e9, "vgg-16": 14e9}
DISCLAIMER = "The notebook does not say what it counted: none of these is claimed to be its way."
PUBLISHED = (
    "vDNN (arXiv 1602.08124) has 28 GB for VGG-16 at batch 256: half of that is 14 GB at 128, if all of it went with "
    "the batch."
)


def countings() -> dict[str, dict[str, int]]:
    """Return the bytes of each model at batch 128 in fp32 by what is counted, a training step's peak first."""
    peaks = {
        f"peak of a training step with {OPTIMIZERS[optimizer].title}, as PyTorch allocates": _peaks(optimizer)
        for optimizer in ("sgd", "momentum", "adamw")
    }
    return peaks | {words: {name: rule(*_terms(model_named(name))) for name in MODELS} for words, rule in RULES.items()}


def _peaks(optimizer: str) -> dict[str, int]:
    return {name: training_memory(name, BATCH, Training(optimizer=optimizer)).total_bytes for name in MODELS}


def _terms(model: LayeredModel) -> tuple[int, int, int, int]:
    """Return the bytes of parameters, of outputs with ReLU in place, of ReLU's outputs, and of the largest output."""
    tape = tape_of(model, Training())
    sizes = [_output_bytes(tape, step) for step in _layer_steps(tape)]
    relu = sum(_output_bytes(tape, step) for step in tape.steps if step.in_place)
    return sum(tape.weights) * tape.itemsize, sum(sizes), relu, max(sizes)


def _layer_steps(tape: Tape) -> Sequence[TapeStep]:
    """Return the steps whose results are maps of their own: products and pools, not what works in place."""
    return [step for step in tape.steps if step.weights or tape.layers[step.layer].startswith("max pool")]


def _output_bytes(tape: Tape, step: TapeStep) -> int:
    return tape.buffers[step.outputs[0]].size.at(BATCH)


Rule = Callable[[int, int, int, int], int]  # of what `_terms` returns
RULES: Mapping[str, Rule] = {
    "outputs of convolutions, pools and dense layers, once": lambda _, outputs, __, ___: outputs,
    "the same, with parameters and gradients": lambda parameters, outputs, _, __: outputs + 2 * parameters,
    "the same, with two gradient maps of the largest output": (
        lambda parameters, outputs, _, largest: outputs + 2 * parameters + 2 * largest
    ),
    "outputs and separate ReLU outputs, parameters, gradients": (
        lambda parameters, outputs, relu_outputs, _: outputs + relu_outputs + 2 * parameters
    ),
    "every map and parameter twice: value and gradient": (
        lambda parameters, outputs, _, __: 2 * outputs + 2 * parameters
    ),
}


# The layers of a model one by one: what each makes, how many parameters it has, and what stays of it.


def layer_rows(model: LayeredModel, setup: Training, micro_batch: int) -> list[dict[str, Any]]:
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
        outputs[step.layer] = tape.buffers[step.outputs[0]].size.at(micro_batch)
        kept[step.layer] += sum(tape.buffers[buffer].size.at(micro_batch) for buffer in {*step.kept} - seen)
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
        f"{_usable_memory(fit, asked)}"
    )


def _usable_memory(fit: Fit, asked: MemoryChoice) -> str:
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

    units = {"Parameters": "count", "Output": "MB", "Kept for backward": "MB"}
    show_table(
        lambda: layer_rows(asked.model, setup, micro_batch),
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
            *({"Counted": rule} | _columns(names, sizes) for rule, sizes in countings().items()),
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
