import pytest

from gpuexplore.analysis.occupancy import of_the_table
from gpuexplore.features.machine_code.ui.facts import _block_shapes
from gpuexplore.hardware import accelerator_named
from gpuexplore.kernels.files.machine_code import CompiledKernel
from gpuexplore.kernels.geometry import Geometry
from tests.analysis.made import ok

A100 = of_the_table(accelerator_named("a100-sxm4-80gb"))
GEOMETRY = Geometry(blocks=((16, 16), (32, 32)), tile=lambda block: (block[1], block[0]))
OUTPUT = (4096, 4096)


def shapes(*compiled, results=None):
    launches = {block: GEOMETRY.launch(OUTPUT, block) for block in GEOMETRY.blocks}
    return _block_shapes(launches, compiled, A100, results or {})


def made(registers=40, shared=0):
    return CompiledKernel("8.0", "sm_80", "13.0", "", b"", registers, shared, 0, 0, 0, 0)


def test_each_block_shape_has_its_occupancy_waves_and_measured_time():
    small, large = shapes(made(), made())

    assert (small.occupancy.occupancy, large.occupancy.occupancy) == (0.75, 0.5)
    assert (small.waves.blocks_per_wave, small.waves.count) == (6 * 108, 102)
    assert small.reason is None

    result = ok()
    small, large = shapes(made(), made(), results={(32, 32): result})

    assert (small.result, large.result) == (None, result)


def test_a_block_that_cannot_be_compiled_or_run_has_its_reason():
    small, large = shapes("no such target", made())

    assert (small.reason, small.occupancy, small.waves) == ("no such target", None, None)
    assert large.occupancy

    small, _ = shapes(made(shared=10**6), made())

    assert "shared bytes per block" in small.reason
    assert small.occupancy is None

    _, large = shapes(made(), made(registers=255))

    assert large.occupancy.blocks_per_multiprocessor == 0
    assert large.waves is None
    assert "registers" in large.reason


@pytest.mark.parametrize("blocks", [(1,), (2, 2)])
def test_a_grid_that_is_given_is_kept_and_what_it_misses_is_counted(blocks):
    launch = GEOMETRY.launch((32, 32), (16, 16), blocks)

    assert launch.uncovered == {(1,): 32 * 32 - 16 * 16, (2, 2): 0}[blocks]
