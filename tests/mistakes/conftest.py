"""Observations that are made up."""

import pytest

from tests.mistakes.made import observation


@pytest.fixture
def made_observation():
    return observation()
