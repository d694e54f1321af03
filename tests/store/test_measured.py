"""What was measured on a device before, whoever asked for it."""

from dataclasses import replace

from gpuexplore.model import Experiment, Shape
from tests.analysis.made import failed, ok

SIZES = (64, 128)
ASKED = Experiment("matmul", tuple(Shape.of(m=size, k=size, n=size) for size in SIZES), ("fp32",), ("numpy", "torch"))


def named(result, name):
    environment = replace(result.environment, device=replace(result.environment.device, name=name))
    return replace(result, environment=environment)


def test_only_measured_results_of_that_device_are_found_newest_first(store):
    wanted, newer = named(ok(size=64), "GPU X"), named(ok(2e-3, size=128), "GPU X")
    store.record(ASKED, "ada", results=[wanted, named(ok(size=128), "GPU Y")])
    store.record(ASKED, "bob", results=[newer, named(failed(size=64), "GPU X")])

    assert store.measured_on("GPU X") == (newer, wanted)
    assert store.measured_on("GPU X", limit=1) == (newer,)
    assert store.measured_on("GPU") == ()


def test_they_can_be_limited_to_operations(store):
    store.record(ASKED, "ada", results=[named(ok(size=64), "GPU X")])

    assert store.measured_on("GPU X", operations=("copy",)) == ()
    assert len(store.measured_on("GPU X", operations=("copy", "matmul"))) == 1


def test_names_are_data_and_no_part_of_the_query(store):
    assert store.measured_on("x' OR '1'='1") == ()
