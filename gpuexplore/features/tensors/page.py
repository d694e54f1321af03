"""Tensors: what shape, strides and offset make of a storage, step by step."""

import streamlit as st

from gpuexplore.features.tensors.analysis.operations import METHODS
from gpuexplore.features.tensors.ui import DEFAULT, show_chain, show_examples
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.url_widgets import text

st.title("Tensors")
st.caption(
    "A tensor is a shape, strides and an offset over the cells of a storage. With strides (s, t), element (i, j) is "
    "cell offset + i × s + j × t.",
    help=page_help("tensors"),
)
open_page("tensors")
show_examples()
left, right = st.columns([3, 1], gap="medium")
with left:
    expression = text(
        "Expression",
        "expression",
        DEFAULT,
        help="Start with a shape like `4x4`, `arange(16)`, `randn(2, 3)` or `tensor([[1, 2], [3, 4]])`, then index it "
        f"or call methods: {', '.join(METHODS)}. `;` separates statements, `y = x.t()` names a tensor, `x[0] = 100` "
        "writes.",
    )
show_chain(expression, right)
