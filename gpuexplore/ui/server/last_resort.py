"""What a visitor sees of an error that no page expected."""

import logging
import secrets

import streamlit as st

from gpuexplore.errors import GpuExploreError
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.monitoring.process import count_error

LOG = logging.getLogger(__name__)


def show_reference(error: Exception) -> bool:
    """Show an error of ours as the sentence it is, any other by a reference that stands in the server's log too."""
    if isinstance(error, GpuExploreError):
        st.error(plain(str(error)), icon=":material/error:")
        return True
    count_error()
    reference = secrets.token_hex(4)
    LOG.error("Error %s", reference, exc_info=error)
    st.error(
        f"Something went wrong on the server. Nothing you measured is lost. Reference **{reference}**: "
        "whoever runs this server finds the cause under it in the log.",
        icon=":material/error:",
    )
    st.button("Load the page again", type="primary")  # any click does
    return True
