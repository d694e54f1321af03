"""What is found on machines that fakes describe."""

from dataclasses import replace

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device, Identity
from gpuexplore.hardware import device_named, discover
from gpuexplore.hardware.discovery import _discover_with
from tests.hardware.fake_nvml import FakeGpu, FakeNvml

CPU = Device("cpu", "cpu", "a CPU")
A100 = FakeGpu("NVIDIA A100-SXM4-40GB", "GPU-aaaa-1", 40 * 2**30, cores=6912)
# A card with twice the memory chips, as it is sold second hand under the same name.
ODD = FakeGpu("NVIDIA GeForce RTX 3080", "GPU-bbbb-2", 20 * 2**30, cores=8704, capability=(8, 6), bus_bits=320)
NAMELESS = FakeGpu("NVIDIA Graphics Device", "GPU-cccc-3", 8 * 2**30, capability=(99, 0), sm_mhz=None)
SMI = """GPU-aaaa-1, NVIDIA A100-SXM4-40GB, 40960, 8.0, 1410, 1215, 580.65.06, 0x20B010DE, 400.00
GPU-dddd-4, NVIDIA Thing, [N/A], [N/A], [N/A], [N/A], 580.65.06, [N/A], [N/A]
"""


def found(*gpus, smi="", **environment):
    nvml = FakeNvml(list(gpus)) if gpus else None
    return _discover_with(nvml=nvml, query_smi=lambda: smi, environment=environment, cpu=CPU)


def test_a_machine_without_a_gpu_has_its_cpu():
    assert found() == (CPU,)


def test_this_machine_is_discovered_with_the_cpu_first():
    devices = discover()
    assert devices[0].id == "cpu"
    assert devices[0].cores
    assert all(device.notes for device in devices)


def test_a_known_gpu_gets_its_row():
    gpu = found(A100)[1]
    assert (gpu.id, gpu.cores, gpu.compute_capability, gpu.driver) == ("cuda:0", 108, "8.0", "580.65.06")
    assert (gpu.spec_key, gpu.clock_hz) == ("a100-sxm4-40gb", 1410e6)
    assert gpu.peak("bf16", "matrix").flop_per_s == 312e12
    assert gpu.bandwidth.bytes_per_s == 1555e9
    assert "row a100-sxm4-40gb" in gpu.notes[0]
    assert gpu.identity is None
    pcie = found(replace(A100, name="NVIDIA A100-PCIE-40GB", pci_device=0x20B010DE, milliwatts=350_000))[1]
    assert pcie.notes[1] == "Of that row: same printed peaks as SXM but 250 W: measured 234-253."
    assert pcie.identity == Identity(pci_id="10de:20b0", power_limit_w=350.0)


def test_a_row_that_the_driver_contradicts_gives_way_to_the_formula():
    gpu = found(ODD)[1]
    assert gpu.spec_key is None
    assert gpu.peak("bf16", "matrix").flop_per_s == 512 * 68 * 1410e6
    assert gpu.bandwidth.kind == "formula"
    assert "rtx-3080-10gb: the driver sees 20.0 GiB of memory, the table 10 GiB" in gpu.notes[0]
    assert "rtx-3080-12gb: the driver counts 68 multiprocessors, the table 70" in gpu.notes[0]


def test_a_gpu_that_nothing_describes_has_no_peaks_and_says_why():
    gpu = found(NAMELESS)[1]
    assert (gpu.peaks, gpu.bandwidth, gpu.cores) == ((), None, None)
    assert gpu.notes[0].startswith("Peaks are unknown: no row")


def test_a_gpu_cut_into_instances_does_not_get_the_peaks_of_the_whole():
    whole = FakeGpu("NVIDIA A100-SXM4-40GB", "GPU-aaaa-1", 40 * 2**30, cores=6912, mig=True)
    assert found(whole)[1].peaks == ()


@pytest.mark.parametrize(
    ("variable", "uuids"),
    [
        ("0", ["GPU-aaaa-1"]),
        ("1,0", ["GPU-bbbb-2", "GPU-aaaa-1"]),
        (" GPU-bbbb-2 , 0", ["GPU-bbbb-2", "GPU-aaaa-1"]),
        ("GPU-b", ["GPU-bbbb-2"]),
        ("GPU-", []),
        ("0,7,1", ["GPU-aaaa-1"]),
        ("0,0", []),
        ("-1", []),
        ("", []),
        ("MIG-unknown", []),
    ],
)
def test_cuda_visible_devices_decides_which_gpus_there_are_and_their_numbers(variable, uuids):
    devices = found(A100, ODD, CUDA_VISIBLE_DEVICES=variable)[1:]
    assert [device.uuid for device in devices] == uuids
    assert [device.id for device in devices] == [f"cuda:{index}" for index in range(len(uuids))]


def test_unlike_gpus_may_be_numbered_otherwise_by_cuda():
    assert "CUDA_DEVICE_ORDER" in found(A100, ODD)[1].notes[-1]
    assert "CUDA_DEVICE_ORDER" not in found(A100, ODD, CUDA_DEVICE_ORDER="PCI_BUS_ID")[1].notes[-1]
    assert "CUDA_DEVICE_ORDER" not in found(A100, ODD, CUDA_VISIBLE_DEVICES="GPU-bbbb-2,GPU-aaaa-1")[1].notes[-1]


def test_without_nvml_the_drivers_command_is_asked():
    devices = found(smi=SMI)[1:]
    assert [device.spec_key for device in devices] == ["a100-sxm4-40gb", None]
    assert devices[0].identity == Identity(pci_id="10de:20b0", power_limit_w=400.0)
    assert (devices[1].memory_bytes, devices[1].identity) == (None, None)
    assert found(smi=SMI, CUDA_VISIBLE_DEVICES="1")[1].name == "NVIDIA Thing"


def test_a_device_is_found_by_its_id_and_an_unknown_id_names_the_known_ones():
    assert device_named("cpu", [CPU]) is CPU
    with pytest.raises(InvalidInput, match="device 'cuda:3': expected cpu"):
        device_named("cuda:3", [CPU])
