"""The contracts of pyproject.toml hold, and the scripts outside the package keep to them too."""

import subprocess
import sys

import pytest

from tests.architecture.imports import libraries_named_in
from tests.waiting import DEADLINE_S

LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def test_contracts_of_the_layers_hold(repository):
    command = [sys.executable, "-c", LINT_IMPORTS, "--no-logo", "--no-cache"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", [".", "pages"])
def test_launcher_and_pages_name_no_measuring_library(repository, folder):
    scripts = sorted((repository / folder).glob("*.py"))
    assert scripts, f"no script in {folder}"

    for script in scripts:
        assert not {"cuda", "cupy", "numba", "torch", "triton"} & libraries_named_in(script), script.name
