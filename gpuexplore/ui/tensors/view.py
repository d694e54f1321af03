"""An expression as a picture, steps and sentences: which cells it touches, view or copy, what a write changes."""

import streamlit as st

from gpuexplore.analysis.tensors import Chain, Step, StepRefused, TensorView, evaluate
from gpuexplore.analysis.tensors.explain import repairs, why_view_fails, words, write_sentences
from gpuexplore.charts.tensor import MOST_CELLS, ROW_OF_CELLS, can_draw, tensor_picture
from gpuexplore.errors import InvalidInput
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.ui.tensors.examples import use
from gpuexplore.ui.tensors.facts import show_facts
from gpuexplore.ui.url_widgets import select, show_problem

LAST_STEP = "last step"
KINDS = {"start": "start", "same": "the same tensor", "view": "view", "copy": "copy", "result": "new result"}


def show_chain(expression: str) -> None:
    """Show what became of an expression, up to the step that is refused if there is one."""
    try:
        chain, refused = evaluate(expression), None
    except StepRefused as error:
        chain, refused = error.chain, error
        show_problem(error)
    except InvalidInput as error:
        show_problem(error)
        st.caption("Nothing was evaluated. Correct the expression, or choose an example.")
        return
    if refused and refused.view_refused:
        _show_why(refused)
    if not chain.steps:
        return
    _show_writes(chain)
    name, view = _shown(chain)
    _show_picture(chain, name, view)
    _show_steps(chain)
    show_facts(view, chain.storages[view.storage])


def _show_why(refused: StepRefused) -> None:
    st.subheader("Why view fails", anchor="why")
    cause = refused.view_refused
    if cause is None:
        return
    st.markdown("\n".join(f"- {plain(sentence)}" for sentence in why_view_fails(refused.chain.result, cause)))
    with st.container(horizontal=True, gap="small"):
        for call in repairs(cause):
            st.button(f"Use `{call}`", key=f"tensors.repair.{call}", on_click=use, args=(refused.repaired(call),))


def _show_writes(chain: Chain) -> None:
    for write in chain.writes:
        st.markdown(f"**What** `{write.text}` **changes**")
        st.markdown("\n".join(f"- {plain(sentence)}" for sentence in write_sentences(chain, write)))


def _shown(chain: Chain) -> tuple[str, TensorView]:
    """Return the tensor that is drawn, with its name: the last step, or the last name that sees what was written."""
    choices = {name: (name, view) for name, view in chain.names.items()}
    last = {LAST_STEP: (chain.steps[-1].text, chain.result)}
    written = chain.writes[-1].view.storage if chain.writes else None
    seeing = [name for name, (_, view) in choices.items() if view.storage == written]
    first = {name: choices[name] for name in seeing[-1:]} or last
    choices = first | choices | last
    return choices[select("Drawn", "show", list(choices), shown=lambda name: choices[name][0])]


def _show_picture(chain: Chain, name: str, view: TensorView) -> None:
    storage = chain.storages[view.storage]
    if not storage.size:
        st.caption("The storage has no cells: there is nothing to draw.")
        return
    if not can_draw(view, storage):
        st.caption(
            f"Too large to draw: pictures have up to {MOST_CELLS} cells and {ROW_OF_CELLS} elements beside each other. "
            "All figures below hold."
        )
        return
    show_chart(lambda: tensor_picture(name, view, storage), (name, view, storage), key="chart.tensor")
    st.caption(
        "Large: the value. Small: the index of its cell in the storage. A cell has the colour of the first row that it "
        "belongs to; faint cells belong to none. Hover over an element to see its cell."
    )


def _show_steps(chain: Chain) -> None:
    st.subheader("Steps", anchor="steps")
    show_table(
        lambda: [_row(step) for step in chain.steps],
        repr(chain.steps),
        {},
        alt=f"Table of {len(chain.steps)} steps with shape, strides, offset, storage, and whether each is a view",
        config={"Step": st.column_config.TextColumn(width="medium"), "Why": st.column_config.TextColumn(width="large")},
    )


def _row(step: Step) -> dict[str, object]:
    view = step.view
    return {
        "Step": step.text,
        "Is": KINDS[step.kind],
        "Storage": view.storage,
        "Shape": words(view.shape),
        "Strides": words(view.strides),
        "Offset": view.offset,
        "Contiguous": view.is_contiguous,
        "Why": step.why,
    }
