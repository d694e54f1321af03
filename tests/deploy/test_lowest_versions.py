"""The wheel with the lowest release of every requirement that its ranges admit: it measures, draws and serves."""

import json
import os
import shlex
import subprocess
import tomllib
import venv

import pytest
from packaging.requirements import Requirement

from gpuexplore.ui.navigation import pages
from scripts.app_server import free_port, wait_until_served
from tests.docs.markdown import ROOT
from tests.ui.visitor import visiting

EXTRAS = ("app", "cuda13", "sass")  # without torch, whose first release brings gigabytes of CUDA


def lowest():
    """Return the requirements of the wheel and of EXTRAS, each at the first release of its range."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    wanted = [
        Requirement(each) for each in [*project["dependencies"], *(each for name in EXTRAS for each in optional[name])]
    ]
    first = {each.name: [one.version for one in each.specifier if one.operator == ">="] for each in wanted}
    assert all(len(versions) == 1 for versions in first.values()), first
    return [f"{name}=={version}" for name, (version,) in first.items()]


@pytest.mark.slow
def test_it_measures_draws_and_serves_every_page(wheel, tmp_path):
    folder, home = tmp_path / "environment", tmp_path / "home"
    home.mkdir()
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, f"{wheel}[{','.join(EXTRAS)}]", *lowest()], check=True, timeout=900, cwd=tmp_path)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GPUEXPLORE"))}
    options = {"cwd": tmp_path, "env": variables | {"GPUEXPLORE_HOME": str(home)}}

    def printed(*arguments):
        command = [python, "-m", "gpuexplore", *arguments]
        done = subprocess.run(command, **options, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run = shlex.split("run matmul --size 64 --dtype fp32,bf16 --impl numpy,numba-cpu --device cpu --json --budget 0.05")
    measured = json.loads(printed(*run, "--out", "run.parquet"))
    assert {result["status"] for result in measured["results"]} == {"ok"}
    assert "H100" in printed("predict", "matmul", "--size", "1024", "--gpu", "H100 SXM5 80GB")
    assert "FFMA" in printed("sass", "matmul/numba-cuda-naive", "--gpu", "T4")
    (saved,) = (run["id"] for run in json.loads(printed("runs", "--json")))
    printed("runs", "export", saved, "report.html")  # with charts as pictures
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")
    port = free_port()
    command = [python, "-m", "gpuexplore", "app", "--port", str(port)]
    troubles = {}
    with (
        (home / "server.log").open("wb") as log,
        subprocess.Popen(command, **options, stdout=log, stderr=log) as process,
    ):
        try:
            wait_until_served(process, port)
            for name in pages():
                with visiting(f"http://127.0.0.1:{port}", name) as visitor:
                    visitor.run(f"run={saved}" if name == "benchmark" else "")
                found = [element.exception.message for element in visitor.elements if element.HasField("exception")]
                if found or len(visitor.elements) < 3:
                    troubles[name] = found or visitor.elements
        finally:
            process.terminate()
    assert troubles == {}
    assert "Traceback" not in (home / "server.log").read_text(encoding="utf-8")
