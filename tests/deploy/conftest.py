"""The wheel that is built from here."""

import subprocess
import sys

import pytest

from tests.docs.markdown import ROOT
from tests.waiting import DEADLINE_S


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """Return the wheel of this checkout, built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", folder, ROOT]
    subprocess.run(command, check=True, timeout=DEADLINE_S)
    (found,) = folder.glob("*.whl")
    return found
