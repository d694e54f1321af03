"""Files of users on the command line: measured by a worker, and refused before anything runs where they cannot be."""

import json

import pytest

from gpuexplore.cli import main
from gpuexplore.features.own_functions.sources import VARIABLE
from tests.made_ceiling import save_made_ceiling

RUN = ["run", "vector_add", "--size", "1000", "--dtype", "fp32", "--device", "cpu", "--budget", "0.01", "--no-save"]
FILE = """
import numpy as np

def build(inputs, out, dtype):
    return lambda: np.add(*inputs, out=out)

def mine(a, b):
    return a + b

def view(a, b):
    return a

def lazy(a, b):
    return (each for each in a + b)

def changing(a, b):
    a += b
    return a.copy()

def failing(a, b):
    raise ValueError("not today")
"""


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, "{}")
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    save_made_ceiling()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my kernels.py"
    path.write_text(FILE)
    return path


@pytest.mark.slow
def test_each_function_of_a_file_ends_as_it_should(file, capsys):
    functions = ("mine", "view", "lazy", "changing", "failing")
    listed = ",".join(["numpy", str(file), *(f"{file}:{name}" for name in functions)])

    assert main([*RUN, "--json", "--impl", listed]) == 1

    results = json.loads(capsys.readouterr().out)["results"]
    found = {result["case"]["implementation"]: (result["status"], result["reason"]) for result in results}
    assert {name: status for name, (status, _) in found.items()} == {
        "numpy": "ok",
        "numpy:my-kernels": "ok",
        "numpy:mine": "ok",
        "numpy:view": "incorrect",
        "numpy:lazy": "incorrect",
        "numpy:changing": "incorrect",
        "numpy:failing": "error",
    }
    assert found["numpy:view"][1].startswith("it returns memory of its inputs")
    assert found["numpy:lazy"][1] == "it returned a generator: expected one array of numpy"
    assert found["numpy:failing"][1] == "ValueError: not today"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*RUN, "--impl", "nowhere.py"], "nowhere.py: No such file or directory"),
        ([*RUN, "--impl", "fortran:mine"], "own implementation of vector_add 'fortran:mine': expected numpy:NAME"),
        (["app", "--own", "nowhere.py"], "nowhere.py: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_a_line(words, said, capsys):
    assert main(words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "allowed", "named"),
    [
        (["--address", "0.0.0.0"], "", "0.0.0.0"),
        (["--address", "0.0.0.0"], "localhost", "0.0.0.0"),
        (["--address", "0.0.0.0", "--behind-proxy", "localhost"], "", "0.0.0.0"),
        (["--behind-proxy", "localhost"], "", "localhost"),
        (["--behind-proxy", "app.example.org"], "", "app.example.org"),
        ([], "localhost, lab.example.org", "lab.example.org"),
        ([], "*", "*"),
    ],
)
def test_the_app_offers_files_to_this_machine_only(file, words, allowed, named, monkeypatch, capsys):
    monkeypatch.setenv("GPUEXPLORE_ALLOWED_HOSTS", allowed)
    assert main(["app", *words, "--own", f"{file}:mine"]) == 2
    assert f" with --own '{named}': expected 127.0.0.1" in capsys.readouterr().err
