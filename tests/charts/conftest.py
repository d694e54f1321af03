import pytest
from altair.utils.schemapi import debug_mode


@pytest.fixture(autouse=True)
def _checked_once():
    """A chart is checked against the schema of Vega-Lite as a whole, by `to_dict`, and not each part as it is made."""
    with debug_mode(False):
        yield
