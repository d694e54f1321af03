"""What torch prints of a tensor on a device, and what reading it in row order costs there."""

import streamlit as st

from gpuexplore.analysis.tensors import Storage, TensorView
from gpuexplore.analysis.tensors.explain import reading_sentences
from gpuexplore.analysis.tensors.reading import reading
from gpuexplore.analysis.tensors.storage_type import MODULES, STORED, UNTYPED_CLASS, printed, storage_type
from gpuexplore.ui.tensors.strided_read import show_measured
from gpuexplore.ui.url_widgets import select
from gpuexplore.units import format_bytes

DEVICE_NAMES = {"cpu": "CPU", "cuda": "CUDA GPU"}
DTYPES = sorted(STORED, key=lambda name: name != "fp32")  # the usual one first


def show_facts(view: TensorView, storage: Storage) -> None:
    """Show what depends on dtype and device: the calls with what they print, and the bytes that reading moves."""
    st.subheader("On a device", anchor="device")
    dtype_column, device_column = st.columns(2)
    with dtype_column:
        dtype = select("Dtype", "dtype", DTYPES)
    with device_column:
        kind = select("Device", "device", list(MODULES), shown=DEVICE_NAMES.__getitem__)
    types = storage_type(dtype, kind)
    size = format_bytes(storage.size * STORED[dtype].itemsize_bytes)
    st.markdown(f"Storage: `{types.storage}`, since torch 2 `{UNTYPED_CLASS}`, {size}. Tensor: `{types.tensor}`.")
    session = printed(view, storage, dtype, kind)
    with st.expander("What torch prints"):
        st.code("\n".join(f">>> {call}\n{output}" for call, output in session), language="python")
        st.caption(
            "A storage is bytes on a device, without a shape; views share it. A tensor that needs no gradient is a "
            "leaf, whatever made it."
        )
    _show_cost(view, STORED[dtype].itemsize_bytes, kind)


def _show_cost(view: TensorView, itemsize_bytes: int, kind: str) -> None:
    st.subheader("What reading it in row order costs", anchor="cost")
    found = reading(view, itemsize_bytes, kind)
    if found is None:
        st.caption("It has no elements: nothing is read.")
        return
    st.markdown("\n".join(f"- {sentence}" for sentence in reading_sentences(found, kind)))
    show_measured(view)
