"""The notebooks' kernels: compiled to be looked at, like ours but for what is wrong with them, and run by nothing."""

import re
from dataclasses import asdict

import pytest

from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.features.machine_code import compiling
from gpuexplore.features.machine_code.compiling import Target, compiled_kernels
from gpuexplore.features.machine_code.kernel_process import _compiled
from gpuexplore.features.machine_code.ui.machine_code import _float64_instructions, _source, _sources
from gpuexplore.kernels.exhibits import EXHIBITS, exhibits_of
from gpuexplore.operations import OPERATIONS

pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")

ADD, MATVEC = EXHIBITS["notebook-vector-add"], EXHIBITS["notebook-matvec"]


@pytest.mark.long
def test_their_ptx_shows_what_is_wrong(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.setattr(compiling, "_compile", lambda targets, _: [_compiled(asdict(target)) for target in targets])
    ours = Target("matvec", "numba-cuda-naive", "fp32", "7.5", (1024,))
    targets = [Target(exhibit.operation, exhibit.name, "fp32", "7.5") for exhibit in (ADD, MATVEC)]
    add, matvec, clean = compiled_kernels([*targets, ours])

    assert len(re.findall(r"ld\.global\.f32", add.ptx)) == 3  # a, b and what u holds
    assert _float64_instructions(add) == _float64_instructions(clean) == 0
    assert "add.f64" in matvec.ptx
    assert _float64_instructions(matvec) > 3
    assert 0 < add.registers_per_thread < matvec.registers_per_thread


def test_they_are_no_implementations():
    every = {implementation.name for row in OPERATIONS.values() for implementation in row.implementations}

    assert EXHIBITS.keys() & every == set()
    for exhibit in EXHIBITS.values():
        with pytest.raises((InvalidInput, NotFound)):
            OPERATIONS[exhibit.operation].implementation_named(exhibit.name)


@pytest.mark.parametrize("exhibit", EXHIBITS.values(), ids=EXHIBITS)
def test_they_are_launched_as_in_the_notebook(exhibit):
    assert (exhibit.launch.blocks, exhibit.launch.threads_per_block, exhibit.launch.uncovered) == (98, 1024, 0)
    assert exhibit in exhibits_of(exhibit.operation)


def test_their_source_is_the_notebooks():
    assert _source(ADD).splitlines()[-1].strip() == "u[i] += a[i] + b[i]"
    assert "        tmp = 0.\n" in _source(MATVEC)


def test_kernel_is_shown_with_those_it_takes_over_and_without_its_neighbours():
    matmul = OPERATIONS["matmul"]
    naive, best = (_sources(matmul, matmul.implementation_named(f"numba-cuda{step}")) for step in ("-naive", ""))

    assert list(naive) == ["matmul/numba_cuda.py"]
    assert naive["matmul/numba_cuda.py"].count("def _make") == 1
    assert list(best) == ["matmul/numba_cuda.py", "matmul/numba_cuda_tensorcore.py"]
    assert "def _make_warptile" in best["matmul/numba_cuda.py"]
