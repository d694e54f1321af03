"""docs/gpu.md: its table is what its generator writes, and its drivers are those the code tells of."""

from dataclasses import replace

import pytest

from gpuexplore import recorded
from gpuexplore.backends.cuda_driver import LEAST_DRIVERS
from gpuexplore.features.selftest.suite.checks import CHECKS
from gpuexplore.operations.kernel_targets import COMPUTE_CAPABILITIES
from scripts import expected_gpus, verified_gpus
from scripts.verified_gpus import FILE, page, table
from tests.analysis.made import ok
from tests.measure.fakes import GPU, environment

HERE = replace(GPU, compute_capability="9.0", driver="580.1")

TEXT = FILE.read_text(encoding="utf-8")


def test_table_is_up_to_date():
    assert page(TEXT) == TEXT, "docs/gpu.md is not up to date: run make docs"


def test_tables_of_what_to_expect_are_up_to_date_and_name_their_sources():
    assert expected_gpus.page(TEXT) == TEXT, "docs/gpu.md is not up to date: run make docs"
    assert "| A100 PCIe 80GB | 1.94 TB/s | 19.5 TFLOP/s | 312 TFLOP/s | [253 " in expected_gpus.expected()
    assert "siboehm/SGEMM_CUDA" in expected_gpus.published()
    assert "`numba-cuda-naive` 1.3 %, `numba-cuda-coalesced` 8.5 %" in expected_gpus.published()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_every_check_of_the_self_test_has_a_row(check):
    assert f"| `{check.name}` |" in TEXT


def capabilities_of_none():
    (row,) = [line for line in table().splitlines() if line.endswith(" | none yet | | |")]
    return set(row.split("|")[1].strip().split(", "))


def test_every_capability_kernels_are_compiled_for_is_recorded_or_named_as_of_none():
    assert capabilities_of_none() == set(COMPUTE_CAPABILITIES) - {"9.0"}
    assert "| 9.0 | NVIDIA H100 80GB HBM3 | 580.159.04 | nvidia-h100-attention, nvidia-h100-memory" in table()
    assert "| 9.0 | NVIDIA H200 | 580.159.04 | nvidia-h200-matmul, nvidia-h200-memory, nvidia-h200-products" in table()


@pytest.mark.parametrize(("cuda", "driver"), LEAST_DRIVERS.items())
def test_least_driver_is_told(cuda, driver):
    assert f"| {cuda} | {driver} |" in TEXT


def test_a_recorded_gpu_takes_the_place_of_none(monkeypatch):
    result = replace(ok(), environment=environment(HERE))
    recording = recorded.recordings()[0]
    monkeypatch.setattr(verified_gpus, "recorded_results", lambda: ((recording, result),))

    assert f"| 9.0 | a made-up GPU | 580.1 | {recording.name} |" in table()
    assert "9.0" not in capabilities_of_none()
