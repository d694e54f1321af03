"""A bare GPU machine measures: no web server, database or data frames there."""

import pytest

from tests.architecture.imports import libraries_loaded_by

OFFICE_LIBRARIES = {"altair", "pandas", "sqlalchemy", "streamlit"}

pytestmark = pytest.mark.long


@pytest.mark.parametrize("module", ["gpuexplore.measure.runner", "gpuexplore.jobs.worker"])
def test_measuring_module_loads_no_office_library(module):
    assert not libraries_loaded_by(f"import {module}") & OFFICE_LIBRARIES
