"""Observations that are made up."""

import pytest

from tests.features.mistakes.catalog.made import observation


@pytest.fixture
def made_observation():
    return observation()
