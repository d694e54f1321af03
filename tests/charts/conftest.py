import pytest

from gpuexplore.charts.quick_altair import quick_altair


@pytest.fixture(autouse=True)
def _checked_once():
    """A chart is made as pages make it, and checked against the schema of Vega-Lite as a whole, by `to_dict`."""
    with quick_altair():
        yield
