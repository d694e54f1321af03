"""Expressions to begin with: the tensors of the notebooks, and one for each thing that strides do."""

from collections.abc import Mapping
from types import MappingProxyType

import streamlit as st

from gpuexplore.ui import link

_SIX = "x = tensor([[1, 2, 3], [4, 5, 6]])"
EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
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
)
DEFAULT = next(iter(EXAMPLES.values()))


def show_examples() -> None:
    """Show a button for each example, which writes it into the field."""
    with st.container(horizontal=True, gap="small"):
        for label, expression in EXAMPLES.items():
            st.button(label, key=f"tensors.example.{label}", help=f"`{expression}`", on_click=use, args=(expression,))


def use(expression: str) -> None:
    """Make `expression` the one of the link, and so of the field; the tensor that is drawn is chosen anew."""
    link.write("expression", None if expression == DEFAULT else expression)
    link.write("show", None)
