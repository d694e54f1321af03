"""What the tests of lessons share: a home of their own, machines that are made up, and what needs which feature."""

from importlib import import_module

import pytest

from gpuexplore.features.lessons.lesson.blocks import OF_FEATURES, feature_of
from gpuexplore.registry import FEATURES
from tests.analysis.made import device

DEVICES = (device(),)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    return tmp_path


def needs(*names):
    """Return the mark of tests of blocks that other features bring."""
    return pytest.mark.skipif(not {*names} <= {*FEATURES}, reason=f"needs the features {', '.join(names)}")


def module_if_installed(feature, name):
    """Return a module of a feature, or of its tests; None where it is not installed."""
    return import_module(name) if feature in FEATURES else None


def is_complete(lesson):
    """Return whether every feature that a lesson needs is installed."""
    return all(map(feature_of, (block for step in lesson.steps for block in step.of(*OF_FEATURES))))
