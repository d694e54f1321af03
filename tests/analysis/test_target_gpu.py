import pytest

from gpuexplore.analysis.occupancy import OWN, of_the_table, own_gpu
from gpuexplore.core.errors import InvalidInput
from gpuexplore.hardware import accelerator_named


def test_two_numbers_make_a_gpu():
    gpu = own_gpu("7.5", " 16 ")

    assert (gpu.key, gpu.compute_capability, gpu.multiprocessors, gpu.limits.max_warps) == (OWN, "7.5", 16, 32)
    assert gpu.name == "GPU of 16 multiprocessors, compute capability 7.5"
    assert own_gpu("9.0", "1").name == "GPU of 1 multiprocessor, compute capability 9.0"


def test_a_row_of_the_table_is_one():
    gpu = of_the_table(accelerator_named("t4"))

    assert (gpu.key, gpu.name, gpu.compute_capability, gpu.multiprocessors) == ("t4", "Tesla T4", "7.5", 40)


@pytest.mark.parametrize("typed", ["", "0", "-1", "1025", "1.5", "\u0661", "9" * 100])
def test_a_number_of_multiprocessors_that_no_gpu_has_is_refused(typed):
    with pytest.raises(InvalidInput, match="whole numbers from 1 to 1,024"):
        own_gpu("7.5", typed)


def test_a_compute_capability_that_is_not_in_the_table_is_refused():
    with pytest.raises(InvalidInput, match=r"compute capability '1\.0': expected"):
        own_gpu("1.0", "16")
