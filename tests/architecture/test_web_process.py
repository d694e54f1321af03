"""The web process stays small: 100 sessions share one interpreter and its collector."""

import pytest

from gpuexplore.ui.navigation import pages
from tests.architecture.imports import libraries_loaded_by, statements_of

MEASURING_LIBRARIES = {"cuda", "cupy", "llvmlite", "numba", "torch", "triton"}

pytestmark = pytest.mark.long


def test_entry_script_and_pages_load_no_measuring_library(repository):
    """By their imports, for running them needs a session: AppTest does that elsewhere."""
    scripts = [page.file for page in pages().values()]

    loaded = libraries_loaded_by(*statements_of(repository / "gpuexplore" / "ui" / "main.py", *scripts))

    assert "streamlit" in loaded
    assert not loaded & MEASURING_LIBRARIES


@pytest.mark.parametrize(
    "module",
    ["gpuexplore", "gpuexplore.backends", "gpuexplore.jobs.client", "gpuexplore.operations", "gpuexplore.store"],
)
def test_module_of_the_web_process_loads_no_measuring_library(module):
    assert not libraries_loaded_by(f"import {module}") & MEASURING_LIBRARIES
