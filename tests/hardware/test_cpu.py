"""The CPU as Linux's files describe it, laid out in a temporary directory."""

import pytest

from gpuexplore.core.model import Identity
from gpuexplore.hardware.cpu import (
    CacheLevel,
    _cpu_identity,
    _native_dtypes,
    cache_bytes,
    cache_levels,
    cpu_device,
    cpu_name,
    physical_cores,
)


@pytest.fixture
def lay_out(tmp_path):
    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def test_the_name_is_the_model_name(lay_out):
    assert cpu_name(lay_out(proc__cpuinfo="processor\t: 0\nmodel name\t: Some CPU @ 2.60GHz\n")) == "Some CPU @ 2.60GHz"


def test_an_empty_machine_still_has_a_cpu(tmp_path):
    cpu = cpu_device(tmp_path)
    assert (cpu.id, cpu.native, cpu.cache_bytes, cpu.clock_hz) == ("cpu", ("fp64", "fp32"), None, None)
    assert cpu.identity is None
    assert cpu.name
    assert cpu.cores >= 1


X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC
stepping\t: 1
flags\t\t: fpu avx fma avx2 avx512f avx512_bf16 hypervisor
"""
ARM = """processor\t: 0
Features\t: fp asimd asimdhp sve crc32
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd40
CPU revision\t: 2
"""


@pytest.mark.parametrize(
    ("cpuinfo", "identity"),
    [
        (X86, Identity("AuthenticAMD", 25, 17, 1, ("avx", "avx2", "fma", "avx512f", "avx512_bf16"), None, "Zen 4")),
        (ARM, Identity("0x41", 8, 0xD40, 0x12, ("asimd", "asimdhp", "sve"), None, "Neoverse V1")),
        (X86.replace("model\t\t: 17", "model\t\t: 255").partition("stepping")[0],
         Identity("AuthenticAMD", 25, 255)),
        ("vendor_id : GenuineIntel\n", None),
        ("CPU implementer : 0x41\nCPU architecture: AArch64\nCPU part : 0xd0c\n", None),
    ],
)  # fmt: skip
def test_cpu_says_who_it_is(lay_out, cpuinfo, identity):
    assert _cpu_identity(lay_out(proc__cpuinfo=cpuinfo)) == identity


def test_identity_holds_the_caches_of_a_core(lay_out):
    folder = "sys__devices__system__cpu__cpu0__cache__index"
    sizes = {f"{folder}{index}__size": f"{size}K" for index, size in enumerate((48, 2048))}
    levels = {f"{folder}{index}__level": str(index + 1) for index in range(2)}

    assert _cpu_identity(lay_out(proc__cpuinfo=X86, **sizes, **levels)).cache_sizes_bytes == (48 * 2**10, 2**21)


@pytest.mark.parametrize(
    ("line", "dtypes"),
    [
        ("flags : fpu avx512f", ("fp64", "fp32")),
        ("flags : avx512_bf16", ("fp64", "fp32", "bf16")),
        ("flags : amx_bf16 avx512_fp16", ("fp64", "fp32", "bf16", "fp16")),
        ("Features : fphp asimdhp bf16", ("fp64", "fp32", "bf16", "fp16")),
        ("Features : fphp", ("fp64", "fp32")),
    ],
)
def test_native_dtypes_follow_the_flags(lay_out, line, dtypes):
    assert _native_dtypes(lay_out(proc__cpuinfo=line + "\n")) == dtypes


def test_the_cache_is_the_one_of_the_highest_level(lay_out):
    folder = "sys__devices__system__cpu__cpu0__cache__"
    levels = {f"{folder}index{i}__level": str(i) for i in (1, 2, 3)}
    sizes = {f"{folder}index1__size": "32K", f"{folder}index2__size": "1024K", f"{folder}index3__size": "32768K"}
    assert cache_bytes(lay_out(**levels, **sizes)) == 32 * 2**20


def test_caches_for_data_are_listed_by_level_with_the_cpus_that_share_them(lay_out):
    folder = "sys__devices__system__cpu__cpu0__cache__index"
    rows = [("3", "Unified", "32768K", "0-3,8"), ("1", "Data", "32K", "0"), ("1", "Instruction", "64K", "0")]
    files = {
        f"{folder}{number}__{name}": text
        for number, row in enumerate(rows)
        for name, text in zip(("level", "type", "size", "shared_cpu_list"), row, strict=True)
    }

    assert cache_levels(lay_out(**files)) == (
        CacheLevel(1, 32 * 2**10, (0,)),
        CacheLevel(3, 32 * 2**20, (0, 1, 2, 3, 8)),
    )


def test_a_level_of_unknown_size_is_left_out(lay_out):
    assert cache_levels(lay_out(sys__devices__system__cpu__cpu0__cache__index0__level="1")) == ()


def test_two_threads_of_one_core_count_once(lay_out):
    file = "sys__devices__system__cpu__cpu{}__topology__thread_siblings_list"
    root = lay_out(**{file.format(0): "0,2", file.format(1): "1,3", file.format(2): "0,2", file.format(3): "1,3"})
    assert physical_cores((0, 1, 2, 3), root) == 2
    assert physical_cores((0, 2), root) == 1


def test_a_containers_quota_limits_the_cores(lay_out):
    file = "sys__devices__system__cpu__cpu{}__topology__thread_siblings_list"
    root = lay_out(**{file.format(i): str(i) for i in range(8)}, **{"sys__fs__cgroup__cpu.max": "250000 100000"})
    assert physical_cores(tuple(range(8)), root) == 3
