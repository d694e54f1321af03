"""What the tests of the command line share: a home of their own, and how to read what a command prints."""

import pytest

from gpuexplore.cli import main
from gpuexplore.measure import process_settings
from tests.cli import strict
from tests.made_ceiling import save_made_ceiling


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, quick_database):
    """Give every test a home with a made-up ceiling, so that none has to be measured."""
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    for name, value in process_settings().items():  # main() sets them for good otherwise
        monkeypatch.setenv(name, value)
    save_made_ceiling()
    return tmp_path / "home"


@pytest.fixture
def answered(capsys):
    """Return how to run a command that prints JSON: its exit code and the object."""

    def answer(*words):
        code = main(words)
        return code, strict.loads(capsys.readouterr().out)

    return answer
