"""The launcher: `streamlit run app.py` serves this; everything else is in the package and in pages/."""

import streamlit as st

from gpuexplore.core.served import PACKAGE
from gpuexplore.ui.server import MIDDLEWARE, ROUTES, lifespan, show_reference

app = st.App(
    PACKAGE / "ui" / "main.py",
    lifespan=lifespan,
    routes=ROUTES,
    middleware=MIDDLEWARE,
    on_script_error=show_reference,
)
