"""The server around the pages: who may reach them and as whom, the supervisor next to them, the last resort."""

import logging
import secrets
from importlib import import_module

import streamlit as st
from starlette.middleware import Middleware

from gpuexplore.core.errors import GpuExploreError
from gpuexplore.registry import features
from gpuexplore.ui.identity import OWNER_COOKIE
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.server import api, middleware
from gpuexplore.ui.server.connections import bound_answers
from gpuexplore.ui.server.lifespan import lifespan
from gpuexplore.ui.session import PAGE_ERRORS

__all__ = ["MIDDLEWARE", "OWNER_COOKIE", "ROUTES", "lifespan", "show_reference"]

LOG = logging.getLogger(__name__)
ROUTES = (
    *api.ROUTES,
    *(route for feature in features() if feature.routes for route in import_module(feature.routes).ROUTES),
)
MIDDLEWARE = tuple(  # the first one sees a request first
    Middleware(layer)
    for layer in (
        bound_answers,
        middleware.trust_proxies,
        middleware.add_headers,
        middleware.refuse_foreign_names,
        middleware.refuse_foreign_pages,
        middleware.bound_uploads,
        middleware.check_frames,
        middleware.name_browsers,
    )
)


def show_reference(error: Exception) -> bool:
    """Show an error of ours as the sentence it is, any other by a reference that stands in the server's log too."""
    if isinstance(error, GpuExploreError):
        st.error(plain(str(error)), icon=":material/error:")
        return True
    reference = secrets.token_hex(4)
    PAGE_ERRORS.append(reference)
    LOG.error("Error %s", reference, exc_info=error)
    st.error(
        f"Something went wrong on the server. No measurement is lost. Reference **{reference}**: "
        "with it, the administrator can find the cause in the server's log.",
        icon=":material/error:",
    )
    st.button("Load the page again", type="primary")  # any click does
    return True
