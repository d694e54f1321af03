"""A launch on this machine's own device."""

from gpuexplore.core.model import Device
from gpuexplore.features.lessons.lesson.blocks import LaunchBlock
from gpuexplore.features.lessons.lesson.quantities import facts_of, launch_row

CPU = Device("cpu", "cpu", "a CPU", cores=4)
T4 = Device("cuda:0", "cuda", "a GPU", cores=40, compute_capability="7.5")
H100 = Device("cuda:0", "cuda", "a GPU", cores=132, compute_capability="9.0")
UNKNOWN = Device("cuda:0", "cuda", "a GPU", cores=60)
LAUNCH = LaunchBlock(elements=100_000, threads=1024, gpu="here")


def figures(*devices):
    found = launch_row(LAUNCH, devices).figures
    return {name: figure.value for name, figure in found.items()}


def test_without_a_gpu_each_core_takes_one_block_at_a_time():
    found = figures(CPU)
    assert (found["multiprocessors"], found["waves"], found["last_wave"]) == (4, 25, 2)
    assert "occupancy" not in found


def test_a_gpu_takes_as_many_blocks_as_its_compute_capability_has_room_for():
    assert (figures(CPU, T4)["waves"], figures(CPU, T4)["last_wave"]) == (3, 18)
    assert (figures(CPU, H100)["waves"], figures(CPU, H100)["last_wave"]) == (1, 98)


def test_the_waves_of_a_gpu_of_unknown_compute_capability_are_unknown():
    found = figures(CPU, UNKNOWN)
    assert found["multiprocessors"] == 60
    assert "waves" not in found


def test_gpus_are_counted():
    assert facts_of((CPU,))["gpus"].value == 0
    assert facts_of((CPU, T4))["gpus"].value == 1
