"""The kind of machine: by Linux's files, stolen time and the clock probe."""

import pytest

from gpuexplore.hardware.cpu import FEWEST_PROBES, machine_kind

STEADY = (1e9, 1.01e9) * FEWEST_PROBES
RESTLESS = (1e9, 0.6e9) * FEWEST_PROBES
X86, ARM = "flags\t\t: fpu sse2 avx2", "Features\t: fp asimd"


def machine(root, cpuinfo, product="", stolen=0):
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(cpuinfo)
    (root / "proc/stat").write_text(f"cpu  1000 0 0 5000 0 0 0 {stolen} 0 0\ncpu0 1 2\n")
    if product:
        (root / "sys/class/dmi/id").mkdir(parents=True)
        (root / "sys/class/dmi/id/product_name").write_text(product)
    return root


@pytest.mark.parametrize(
    ("files", "probes", "expected"),
    [
        ((X86,), RESTLESS, "bare metal"),
        ((X86 + " hypervisor",), STEADY, "virtual"),
        ((X86 + " hypervisor",), RESTLESS, "shared"),
        ((X86 + " hypervisor",), STEADY[: FEWEST_PROBES - 1], "shared"),
        ((X86 + " hypervisor", "", 20), STEADY, "shared"),
        ((X86 + " hypervisor", "", 4), STEADY, "virtual"),
        ((ARM, "KVM Virtual Machine"), STEADY, "virtual"),
        ((ARM, "ThinkStation"), STEADY, "bare metal"),
        ((ARM,), STEADY, "shared"),
        (("",), STEADY, "shared"),
    ],
)
def test_the_kind_is_told_by_files_stolen_time_and_probes_and_is_shared_where_nothing_tells(
    tmp_path, files, probes, expected
):
    assert machine_kind(probes, machine(tmp_path, *files)) == expected


def test_without_the_files_of_linux_it_is_shared(tmp_path):
    assert machine_kind(STEADY, tmp_path) == "shared"
