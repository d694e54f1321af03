"""The page Tensors: an expression as a picture, steps and sentences, and as torch prints it and takes to read it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.activity import ActivityRun
from gpuexplore.analysis.figure import LessonFigure, format_with_interval
from gpuexplore.core import InvalidInput, format_bytes, format_interval, format_ratio
from gpuexplore.features.tensors.analysis import Chain, Storage, TensorView
from gpuexplore.features.tensors.analysis.evaluate import (
    MODULES,
    STORED,
    UNTYPED_CLASS,
    StepRefused,
    evaluate,
    printed,
    repairs,
    type_name,
    why_view_fails,
    words,
    write_sentences,
)
from gpuexplore.features.tensors.analysis.reading import activity_of, reading, reading_sentences
from gpuexplore.features.tensors.chart import MOST_CELLS, ROW_OF_CELLS, can_draw, tensor_picture
from gpuexplore.features.tensors.lesson_block import measured_rows
from gpuexplore.ui import link
from gpuexplore.ui.activity import show_newest
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.ui.url_widgets import select, show_problem

_SIX = "x = tensor([[1, 2, 3], [4, 5, 6]])"
EXAMPLES: Mapping[str, str] = {
    "Transpose": "x = 4x4; x.t()",
    "One element": "x = 4x4; x[1, 2]",
    "A column": "x = 4x4; x[:, 1]",
    "Every second": "x = arange(12); x[1::2]",
    "view": f"{_SIX}; x.view(3, 2)",
    "reshape copies": f"{_SIX}; x.t().reshape(6)",
    "contiguous": f"{_SIX}; x.t().contiguous()",
    "A write": f"{_SIX}; y = x.t(); z = x.clone(); x[0][0] = 100",
    "view fails": f"{_SIX}; x.t().view(2, 3)",
    "Its repair": f"{_SIX}; x.t().contiguous().view(2, 3)",
    "Broadcast": "x = 1x4; x.expand(3, 4)",
    "2000 × 2000": "x = 2000x2000; x.t()",
}
DEFAULT = next(iter(EXAMPLES.values()))
WAYS: Mapping[str, str] = {
    "loop": "A loop in row order, on one thread",
    "copy": "torch's copy into a contiguous tensor, which may read in another order",
}
DTYPES = sorted(STORED, key=lambda name: name != "fp32")  # the usual one first


def show_examples() -> None:
    """Show a button for each example, which writes it into the field."""
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        st.caption("Examples:", width="content")
        for label, expression in EXAMPLES.items():
            st.button(
                label,
                key=f"tensors.example.{label}",
                type="tertiary",
                help=f"`{expression}`",
                on_click=_use,
                args=(expression,),
            )


def _use(expression: str) -> None:
    """Make `expression` the one of the link, and so of the field; the tensor that is drawn is chosen anew."""
    link.write("expression", None if expression == DEFAULT else expression)
    link.write("show", None)


def _show_report(run: ActivityRun) -> None:
    if not run.payloads:
        return
    report = run.payloads[-1]
    device = report["environment"]["device"]["name"]
    for way, title in WAYS.items():
        found = report["ratios"][way]
        between = format_interval(found["ci95"], format_ratio)
        st.markdown(f"- {title}: **{format_ratio(found['median'])}** the time of the contiguous one ({between}, 95 %)")
    rows = [
        {
            "Read": name,
            "Median": found["median_s"],
            "Low": found["ci95_s"] and found["ci95_s"][0],
            "High": found["ci95_s"] and found["ci95_s"][1],
            "Bandwidth": found["bytes_per_s"],
            "Samples": found["n"],
        }
        for name, found in report["readings"].items()
    ]
    show_table(
        lambda: rows,
        repr(report["readings"]),
        {"Median": "s", "Low": "s", "High": "s", "Bandwidth": "B/s"},
        alt=f"Table of the times to read the tensor contiguous and strided on {device}",
    )
    doubts: dict[str, list[str]] = {}  # the same evidence once
    for name, found in report["readings"].items():
        for flag in found["flags"]:
            doubts.setdefault(f"{flag['name']}: {flag['evidence']}", []).append(name)
    for doubt, names in doubts.items():
        st.warning(plain(f"{doubt} ({', '.join(names)})"), icon=":material/warning:")
    st.caption(f"Measured on {plain(device)} with {report['cache']} caches; the interval of each median is 95 %.")


def _show_facts(view: TensorView, storage: Storage) -> None:
    """Show what depends on dtype and device: the calls with what they print, and the bytes that reading moves."""
    st.subheader("On a device", anchor="device")
    dtype_column, device_column = st.columns(2)
    with dtype_column:
        dtype = select("Dtype", "dtype", DTYPES)
    with device_column:
        kind = select("Device", "device", list(MODULES), shown={"cpu": "CPU", "cuda": "CUDA GPU"}.__getitem__)
    size = format_bytes(storage.size * STORED[dtype].itemsize_bytes)
    stored_as = f"`{type_name('Storage', dtype, kind)}`, since torch 2 `{UNTYPED_CLASS}`"
    st.markdown(f"Storage: {stored_as}, {size}. Tensor: `{type_name('Tensor', dtype, kind)}`.")
    session = printed(view, storage, dtype, kind)
    with st.expander("Output of torch"):
        st.code("\n".join(f">>> {call}\n{output}" for call, output in session), language="python")
        st.caption(
            "A storage is bytes on a device, without a shape; views share it. A tensor that needs no gradient is a "
            "leaf, however it was made."
        )
    _show_cost(view, STORED[dtype].itemsize_bytes, kind)


def _show_cost(view: TensorView, itemsize_bytes: int, kind: str) -> None:
    st.subheader("Cost of reading it in row order", anchor="cost")
    found = reading(view, itemsize_bytes, kind)
    if found is None:
        st.caption("It has no elements to read.")
        return
    st.markdown("\n".join(f"- {sentence}" for sentence in reading_sentences(found, kind)))
    asked = activity_of(view, known_devices()[0].id)
    if asked is None:
        st.caption("This tensor cannot be measured: it has no axis, too many axes or too many cells.")
        return
    show_newest(asked, timedelta(hours=1), _show_report, missing="Not measured yet.", label="Measure it")


def show_chain(expression: str, beside: DeltaGenerator) -> None:
    """Show what became of an expression, up to the step that is refused if there is one.

    Args:
        expression: as typed.
        beside: where the tensor that is drawn is chosen.
    """
    refused = None
    try:
        chain = evaluate(expression)
    except StepRefused as error:
        refused = error
        chain = error.chain
        show_problem(error)
    except InvalidInput as error:
        show_problem(error)
        st.caption("Not evaluated: correct the expression, or choose an example.")
        return
    if refused and (cause := refused.view_refused):
        st.subheader("Why view fails", anchor="why")
        st.markdown("\n".join(f"- {plain(sentence)}" for sentence in why_view_fails(refused.chain.result, cause)))
        with st.container(horizontal=True, gap="small"):
            for call in repairs(cause):
                st.button(f"Use `{call}`", key=f"tensors.repair.{call}", on_click=_use, args=(refused.repaired(call),))
    if not chain.steps:
        return
    for write in chain.writes:
        st.markdown(f"**What** `{write.text}` **changes**")
        st.markdown("\n".join(f"- {plain(sentence)}" for sentence in write_sentences(chain, write)))
    # The tensor that is drawn, with its name: the last step, or the last name that sees what was written.
    choices = {name: (name, view) for name, view in chain.names.items()}
    last = {"last step": (chain.steps[-1].text, chain.result)}
    written = chain.writes[-1].view.storage if chain.writes else None
    seeing = [name for name, (_, view) in choices.items() if view.storage == written]
    choices = ({name: choices[name] for name in seeing[-1:]} or last) | choices | last
    with beside:
        name, view = choices[select("Drawn", "show", list(choices), shown=lambda name: choices[name][0])]
    st.markdown(f"#### `{name}`: shape {words(view.shape)}, strides {words(view.strides)}, offset {view.offset}")
    _show_picture(chain, name, view)
    _show_steps(chain)
    _show_facts(view, chain.storages[view.storage])


def _show_picture(chain: Chain, name: str, view: TensorView) -> None:
    storage = chain.storages[view.storage]
    if not storage.size:
        st.caption("The storage has no cells: there is nothing to draw.")
        return
    if not can_draw(view, storage):
        st.caption(
            f"Too large to draw: at most {MOST_CELLS} cells and {ROW_OF_CELLS} elements per row are drawn. "
            "The table below is complete."
        )
        return
    show_chart(lambda: tensor_picture(name, view, storage), (name, view, storage), key="chart.tensor")
    st.caption(
        "Large: the value. Small: the index of its cell in the storage. Cells are coloured by the first row they "
        "belong to; faint cells belong to none. Hover over an element to see its cell."
    )


def _show_steps(chain: Chain) -> None:
    st.subheader("Steps", anchor="steps")
    kinds = {"same": "the same tensor", "result": "new result"}
    show_table(
        lambda: [
            {
                "Step": step.text,
                "Is": kinds.get(step.kind, step.kind),
                "Storage": step.view.storage,
                "Shape": words(step.view.shape),
                "Strides": words(step.view.strides),
                "Offset": step.view.offset,
                "Contiguous": step.view.is_contiguous,
                "Why": step.why,
            }
            for step in chain.steps
        ],
        repr(chain.steps),
        {},
        alt=f"Table of {len(chain.steps)} steps with shape, strides, offset, storage, and whether each is a view",
        config={"Step": st.column_config.TextColumn(width="medium"), "Why": st.column_config.TextColumn(width="large")},
    )


def show_lesson_block(block: Any, count: int) -> None:
    """Draw a tensor over its storage, with shape, strides and offset; or say why a step is refused.

    Args:
        count: how many such blocks the step has.
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
    with st.expander(said, expanded=count <= 2):  # more pictures would hide what is said after them
        key = f"chart.tensor.{block.id or block.expression}"
        show_chart(lambda: tensor_picture(chain.steps[-1].text, view, chain.storage), (block.expression,), key=key)


def show_lesson_measurement(block: Any, measured: Any, _key: str) -> None:
    """Show what reading a tensor took, contiguous and strided, and their ratio."""
    if not measured:
        return
    readers = {"loop": "a loop in row order", "copy": "torch's copy"}
    found: dict[str, list[str]] = {}
    for row in measured_rows(block, measured):
        figure = next(iter(row.figures.values()))
        found.setdefault(row.labels["name"], []).append(
            format_with_interval(figure) if isinstance(figure, LessonFigure) else figure
        )
    lines = [f"| {readers[way]} | {' | '.join(figures)} |" for way, figures in found.items()]
    st.markdown("\n".join(("| Read by | Contiguous | Strided | Ratio |", "| --- | ---: | ---: | ---: |", *lines)))


def lesson_block_query(block: Any) -> dict[str, str]:
    """Return the parameters of the page Tensors with the choice of a block."""
    return {"expression": block.expression}
