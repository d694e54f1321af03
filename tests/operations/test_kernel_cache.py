"""The second start compiles nothing: compiled CPU kernels are kept on disk, until the code they call changes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gpuexplore.measure
from gpuexplore.measure import KERNEL_CACHE_VARIABLE, process_settings, shared_kernel_code


def started(folder):
    done = subprocess.run(
        [sys.executable, "-m", "tests.operations.cached"],
        env=os.environ | {KERNEL_CACHE_VARIABLE: str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
def test_second_start_compiles_no_kernel_that_the_first_has_kept():
    folder = os.environ[KERNEL_CACHE_VARIABLE]  # what the tests share: where all kernels are there, this start is one
    found = started(folder)
    if found["compiled"]:
        found = started(folder)

    assert found["compiled"] == 0
    assert found["loaded"] > 0


def test_kernels_are_kept_apart_for_every_state_of_the_code_they_share(tmp_path, monkeypatch):
    monkeypatch.delenv(KERNEL_CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    one = process_settings()[KERNEL_CACHE_VARIABLE]
    monkeypatch.setattr(gpuexplore.measure, "shared_kernel_code", lambda: "another")

    assert one.startswith(str(tmp_path))
    assert process_settings()[KERNEL_CACHE_VARIABLE] not in (one, str(tmp_path))


def test_a_change_of_any_code_that_kernels_share_is_another_state(tmp_path, monkeypatch):
    package = Path(gpuexplore.__file__).parent
    kernels = (package / "operations").glob("*/numba_cpu*.py")
    shared = set(re.findall(r"from (gpuexplore\.kernels[\w.]*) import", "".join(path.read_text() for path in kernels)))
    monkeypatch.setattr(gpuexplore.measure, "__file__", str(tmp_path / "measure" / "__init__.py"))
    states = [shared_kernel_code()]
    for module in sorted(shared):
        path = tmp_path.joinpath(*module.split(".")[1:]).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(module)
        states.append(shared_kernel_code())

    assert "gpuexplore.kernels.cpu_micro_kernel" in shared
    assert len(set(states)) == len(states)


def test_a_folder_that_is_set_stays(monkeypatch):
    monkeypatch.setenv(KERNEL_CACHE_VARIABLE, "elsewhere")

    assert process_settings()[KERNEL_CACHE_VARIABLE] == "elsewhere"
