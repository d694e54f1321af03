"""What the tests of notebooks share: a home of their own, and IPython in this process."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from gpuexplore.measure import process_settings
from tests.made_ceiling import save_made_ceiling


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Give every test a home, and no service around it."""
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path / "home"))
    for name in ("GPUEXPLORE_DATABASE_URL", "KAGGLE_KERNEL_RUN_TYPE", "COLAB_RELEASE_TAG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in process_settings().items():  # main() sets them for good otherwise
        monkeypatch.setenv(name, value)
    save_made_ceiling()
    return tmp_path / "home"


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Give a shell of IPython with a history in memory."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    yield shell
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()
