"""A bare GPU machine measures: no web server, database or data frames there."""

import pytest

from tests.architecture.imports import libraries_loaded_by

OFFICE_LIBRARIES = {"altair", "pandas", "sqlalchemy", "streamlit"}

pytestmark = pytest.mark.long


def test_measuring_modules_load_no_office_library():
    loaded = libraries_loaded_by("import gpuexplore.measure.runner", "import gpuexplore.jobs.worker")

    assert "numpy" in loaded
    assert not loaded & OFFICE_LIBRARIES
