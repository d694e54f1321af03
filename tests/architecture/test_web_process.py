"""The web process stays small: 100 sessions share one interpreter and its collector."""

import pytest

from gpuexplore.ui.navigation import pages
from tests.architecture.imports import libraries_loaded_by, statements_of

MEASURING_LIBRARIES = {"cuda", "cupy", "llvmlite", "numba", "torch", "triton"}
MODULES = ("gpuexplore", "gpuexplore.backends", "gpuexplore.jobs.client", "gpuexplore.operations", "gpuexplore.store")

pytestmark = pytest.mark.long


def test_entry_script_pages_and_what_they_share_load_no_measuring_library(repository):
    """By their imports, for running them needs a session: AppTest does that elsewhere."""
    scripts = [page.file for page in pages().values()]

    imports = statements_of(repository / "gpuexplore" / "ui" / "main.py", *scripts)
    loaded = libraries_loaded_by(*(f"import {module}" for module in MODULES), *imports)

    assert "streamlit" in loaded
    assert not loaded & MEASURING_LIBRARIES
