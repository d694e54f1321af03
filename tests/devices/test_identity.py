"""Which results say something about which device."""

from dataclasses import replace

from gpuexplore.devices.identity import same_device, same_unit
from tests.analysis.made import device

CPU = device()
GPU = replace(device(identity="cuda:0"), name="NVIDIA H200", spec_key="h200", uuid="GPU-1")


def test_device_is_the_same_by_its_row_of_the_table():
    row = replace(device(), name="H200 SXM", kind="table", spec_key="h200")

    assert same_device(GPU, row)
    assert not same_device(replace(GPU, spec_key="h100"), row)


def test_device_without_a_row_is_the_same_by_kind_name_and_cores():
    assert same_device(replace(CPU, cores=2), CPU)
    assert not same_device(replace(CPU, cores=2), replace(CPU, cores=64))
    assert not same_device(replace(CPU, kind="cuda"), CPU)
    assert not same_device(replace(CPU, name="another"), CPU)


def test_nobody_knows_what_an_unrecorded_device_was():
    assert not same_device(None, CPU)
    assert not same_unit(None, CPU)


def test_two_boards_of_a_kind_are_two_units_where_both_tell_who_they_are():
    assert same_unit(GPU, GPU)
    assert same_unit(replace(GPU, uuid=None), GPU)
    assert not same_unit(replace(GPU, uuid="GPU-2"), GPU)
