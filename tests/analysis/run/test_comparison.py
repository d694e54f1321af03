"""What a user typed becomes a comparison, or an error that names what is accepted."""

import pytest

from gpuexplore.analysis.model import Comparison
from gpuexplore.analysis.utilization.best_results import baselines, comparison_for
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Experiment, Shape

SHAPES = (Shape.of(m=8, k=8, n=8),)


def experiment(*implementations, dtypes=("fp32", "bf16")):
    return Experiment("matmul", SHAPES, dtypes, implementations)


@pytest.mark.parametrize("implementations", [("numpy", "torch"), ("torch", "numpy")])
def test_the_default_baseline_is_first_in_the_operation_whatever_arrives_first(implementations):
    assert comparison_for(experiment(*implementations)) == Comparison("numpy", None)


def test_without_the_first_of_the_operation_the_next_one_is_the_default_and_stands_first():
    assert comparison_for(experiment("torch", "numba-cpu")).baseline == "numba-cpu"

    assert baselines(experiment("torch", "numba-cpu", "numpy")) == ("numpy", "torch", "numba-cpu", "fp32", "bf16")


@pytest.mark.parametrize("baseline", ["numpy", "torch", "fp32", "bf16"])
def test_every_implementation_and_dtype_can_be_the_baseline(baseline):
    assert comparison_for(experiment("torch", "numpy"), baseline).baseline == baseline


@pytest.mark.parametrize("baseline", ["numba-cpu", "fp64", "best"])
def test_a_bad_baseline_is_named_with_the_accepted_ones(baseline):
    with pytest.raises(InvalidInput, match=f"^baseline '{baseline}': expected numpy, torch, fp32, bf16$"):
        comparison_for(experiment("torch", "numpy"), baseline)


def test_a_kind_of_peak_is_kept_and_a_bad_one_is_named_with_the_accepted_ones():
    assert comparison_for(experiment("torch"), peak="published") == Comparison("torch", "published")

    accepted = "datasheet, formula, held_clock, measured_ceiling, published, own"
    with pytest.raises(InvalidInput, match=f"^kind of peak 'best': expected {accepted}$"):
        comparison_for(experiment("torch"), peak="best")
