"""The wheel on other versions of Python that this machine has: installed from the index, it measures and predicts."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import DEADLINE_S

VERSIONS = ("3.12", "3.13", "3.14")
PLACES = (Path.home() / ".pyenv" / "versions", Path("/opt/python"))  # where interpreters lie beside that of the PATH
RUN = shlex.split("run vector_add --size 1000 --dtype fp32 --impl numpy,numba-cpu --device cpu --json --budget 0.05")


def interpreter(version):
    """Return the interpreter of a version; None where this machine has none that starts."""
    found = [
        shutil.which(f"python{version}"),
        *(place / "bin/python" for each in PLACES for place in each.glob(f"{version}*")),
    ]
    for path in filter(None, found):
        if subprocess.run([path, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            return path
    return None


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_it_measures_and_predicts_on(version, wheel, tmp_path):
    base = interpreter(version)
    if base is None:
        pytest.skip(f"no Python {version} on this machine")
    subprocess.run([base, "-m", "venv", tmp_path / "environment"], check=True, timeout=DEADLINE_S)
    python = tmp_path / "environment" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(install, check=True, timeout=300, cwd=tmp_path)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GPUEXPLORE"))}

    def told(*arguments):
        command = [python, "-m", "gpuexplore", *arguments]
        environment = variables | {"GPUEXPLORE_HOME": str(tmp_path / "home")}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout

    assert [result["status"] for result in json.loads(told(*RUN))["results"]] == ["ok", "ok"]
    assert "H100" in told("predict", "matmul", "--size", "1024", "--gpu", "H100 SXM5 80GB")
    assert f"{version}." in subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout
    assert sys.version_info[:2] != tuple(map(int, version.split(".")))
