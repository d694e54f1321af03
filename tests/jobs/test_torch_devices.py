"""A worker of a device that torch alone finds, with a torch that does not find it any more."""

import pytest

from gpuexplore.core.model import Case, Shape, Status
from gpuexplore.jobs.engines.local import LocalEngine
from tests.hardware.torch_answers import found_on
from tests.jobs.conftest import LIMITS
from tests.jobs.engine_outcomes import measured

pytestmark = pytest.mark.slow


def test_cases_end_unsupported_with_what_runs_there_or_why_torch_does_not(tmp_path):
    device = found_on(tmp_path, "xpu")
    cases = [Case("matmul", Shape.of(m=8, k=8, n=8), "fp32", name, device.id) for name in ("numpy", "triton", "torch")]
    engine = LocalEngine([device], limits=LIMITS)
    try:
        found = measured(engine, cases)
    finally:
        engine.close()

    assert {result.status for result in found.values()} == {Status.UNSUPPORTED}
    assert found["numpy"].reason == "numpy runs on cpu devices, not on xpu:0; `torch` runs there"
    assert found["triton"].reason == "triton runs on cuda devices, not on xpu:0; `torch` runs there"
    assert "is not built for Intel XPU" in found["torch"].reason
