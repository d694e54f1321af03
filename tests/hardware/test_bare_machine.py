"""Devices on a machine with numpy, ml_dtypes and llvmlite only, in a process of its own."""

import os
import subprocess
import sys

import pytest

WITHOUT = "import sys; sys.modules.update(dict.fromkeys(('psutil', 'pynvml', 'platformdirs')));"


def run(code, **environment):
    settings = {name: value for name, value in os.environ.items() if name != "GPUEXPLORE_HOME"}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**settings, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_cpu_is_found_and_measured_without_psutil_pynvml_and_platformdirs(tmp_path):
    code = f"""{WITHOUT}
from gpuexplore.hardware import cache_directory, discover, ensure_ceiling, read
cpu = ensure_ceiling(discover()[0])
assert cpu.memory_bytes and cpu.cores and cpu.peaks and cpu.bandwidth
assert read(cpu).temperature_c is None
print(cache_directory())
"""
    assert run(code, XDG_CACHE_HOME=str(tmp_path)).strip() == str(tmp_path / "gpuexplore")


@pytest.mark.long
def test_discovery_loads_no_compiler_and_no_cuda(tmp_path):
    code = """import sys
from gpuexplore.hardware import discover
discover()
print([name for name in ("numba", "llvmlite", "torch", "cuda", "cupy") if name in sys.modules])
"""
    assert run(code, GPUEXPLORE_HOME=str(tmp_path)).strip() == "[]"
