"""NVIDIA's own headers as an oracle: found beside the CUDA libraries, compiled by the system's compiler."""

import shutil
import subprocess
from pathlib import Path

import pytest


def header(name):
    """Return the path of a header that came with the CUDA runtime; skip where there is none."""
    pathfinder = pytest.importorskip("cuda.pathfinder", reason="cuda-pathfinder finds the headers")
    directory = pathfinder.find_nvidia_header_directory("cudart")
    path = Path(directory or ".") / name
    if directory is None or not path.exists():
        pytest.skip(f"the CUDA runtime's headers are not installed, or have no {name}")
    return path


def build(source, target, *options):
    """Return the program compiled from C or C++ into the folder `target`; skip without a compiler."""
    name = "c++" if source.suffix == ".cpp" else "cc"
    compiler = shutil.which(name)
    if compiler is None:
        pytest.skip(f"no compiler: {name} is not on the path")
    program = target / source.stem
    subprocess.run([compiler, "-O1", *options, str(source), "-o", str(program)], check=True)
    return program


def ask(program, lines):
    """Return one tuple of numbers for each line of numbers the program is given."""
    given = "\n".join(" ".join(map(str, line)) for line in lines)
    done = subprocess.run([program], input=given, capture_output=True, text=True, check=True)
    return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
