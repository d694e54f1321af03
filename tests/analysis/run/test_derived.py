import subprocess
import sys

import pytest

from gpuexplore.analysis.run.derived import figures
from gpuexplore.analysis.utilization.peak_choice import Against
from gpuexplore.model import Peak
from tests.analysis.made import failed, ok


def test_figures_stand_in_the_order_of_the_results():
    first, second, third = figures([ok(2e-5), failed(), ok(1e-5, dtype="bf16")], baseline="fp32")
    assert first.mfu == pytest.approx(0.1)
    assert second.mfu is None
    assert third.speedup.ratio == pytest.approx(2)


def test_own_peaks_reach_the_figures():
    assert (
        figures([ok()], against=Against(own_peaks=(Peak("fp32", "matrix", 1e10, "own", "me"),)))[0].peak.kind == "own"
    )


def test_no_results_have_no_figures():
    assert figures([]) == ()


def test_analysis_needs_neither_pandas_nor_a_measured_library():
    code = (
        "import sys, gpuexplore.analysis.run.json_report, gpuexplore.analysis.run.flat_rows, "
        "gpuexplore.analysis.run.summary, gpuexplore.analysis.run.estimate; "
        "print({'pandas', 'torch', 'numba', 'altair', 'streamlit'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
