"""The contracts of pyproject.toml hold, and the scripts outside the package keep to them too."""

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.architecture.imports import libraries_named_in


def test_contracts_of_the_layers_hold(repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)
    monkeypatch.setattr("logging.config.dictConfig", lambda _: None)  # it disables the loggers that are there

    assert lint_imports(no_logo=True) == EXIT_STATUS_SUCCESS, capsys.readouterr().out


@pytest.mark.parametrize("folder", [".", "pages"])
def test_launcher_and_pages_name_no_measuring_library(repository, folder):
    scripts = sorted((repository / folder).glob("*.py"))
    assert scripts, f"no script in {folder}"

    for script in scripts:
        assert not {"cuda", "cupy", "numba", "torch", "triton"} & libraries_named_in(script), script.name
