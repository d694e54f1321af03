"""`gpuexplore occupancy` in this process: from numbers, from a kernel with a stand-in compiler, and what it refuses."""

from dataclasses import dataclass, replace
from types import MappingProxyType

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.features.machine_code import occupancy_command
from gpuexplore.features.machine_code.compiling import Target
from gpuexplore.hardware import ACCELERATORS
from gpuexplore.hardware.capabilities import CAPABILITIES
from gpuexplore.kernels.geometry import Geometry
from gpuexplore.operations import OPERATIONS
from tests.cli.conftest import answered, home

NUMBERS = ("--cc", "8.6", "--registers", "64", "--shared", "16384", "--block", "256")
ON_A100 = ("--gpu", "NVIDIA A100-SXM4-80GB")
GEOMETRY = Geometry(blocks=((16, 16), (32, 8)), tile=lambda block: block)


@dataclass(frozen=True)
class Compiled:
    """What `compiled_kernel` promises."""

    registers_per_thread: int = 40
    shared_bytes: int = 2048
    local_bytes: int = 16
    spill_bytes: int = 8


@pytest.fixture
def asked_of_the_compiler(monkeypatch):
    """Make `matmul/numba-cuda` a kernel and return what the compiler is asked; it has no other CUDA kernel."""
    matmul = OPERATIONS["matmul"]
    rows = tuple(
        replace(implementation, geometry=GEOMETRY if implementation.name == "numba-cuda" else None)
        for implementation in matmul.implementations
    )
    operations = MappingProxyType({**OPERATIONS, "matmul": replace(matmul, implementations=rows)})
    monkeypatch.setattr("gpuexplore.operations.OPERATIONS", operations)
    monkeypatch.setattr(occupancy_command, "OPERATIONS", operations)
    asked = []
    monkeypatch.setattr(occupancy_command, "compiled_kernel", lambda target: asked.append(target) or Compiled())
    return asked


def test_all_limits_that_tie_are_named(answered, capsys):
    tied = ("--cc", "8.0", "--registers", "64", "--shared", "40960", "--block", "256")
    _, found = answered("occupancy", *tied, "--json")
    assert main(["occupancy", *tied]) == EXIT_OK

    assert (found["limiter"], found["limiters"]) == ("registers", ["registers", "shared"])
    assert "32 of 64 warps per multiprocessor, limited by registers and shared memory" in capsys.readouterr().out


def test_numbers_as_json_and_as_text(answered, capsys):
    code, told = answered("occupancy", *NUMBERS, "--json")

    assert code == EXIT_OK
    assert told == {
        "compute_capability": "8.6",
        "threads_per_block": 256,
        "registers_per_thread": 64,
        "shared_bytes_per_block": 16384,
        "blocks_per_multiprocessor": 4,
        "active_warps": 32,
        "max_warps": 48,
        "occupancy": 32 / 48,
        "limits": {"threads": 6, "blocks": 16, "registers": 4, "shared": 5},
        "limiter": "registers",
        "limiters": ["registers"],
        "reason": None,
    }
    assert main(["occupancy", *NUMBERS]) == EXIT_OK
    printed = capsys.readouterr().out
    assert "256 threads per block, 64 registers per thread, 16.0 KiB shared memory per block" in printed
    assert "occupancy 66.7 %: 4 blocks, 32 of 48 warps per multiprocessor, limited by registers" in printed
    assert "registers  4\n" in printed


@pytest.mark.parametrize("block", ["1024", "32,32", "16, 8, 8"])
def test_block_has_up_to_three_axes_and_no_shared_memory_unless_it_is_given(answered, block):
    _, told = answered("occupancy", "--cc", "7.5", "--registers", "32", "--block", block, "--json")

    assert (told["threads_per_block"], told["occupancy"], told["shared_bytes_per_block"]) == (1024, 1.0, 0)
    assert "shared" not in told["limits"]


def test_what_cannot_be_launched_is_told_with_its_reason_and_has_no_waves(answered, capsys):
    words = (
        "occupancy",
        "--cc",
        "8.6",
        "--registers",
        "255",
        "--block",
        "1024",
        "--size",
        "1",
        "--multiprocessors",
        "1",
    )
    code, told = answered(*words, "--json")

    assert code == main(words) == EXIT_OK
    assert (told["blocks_per_multiprocessor"], told["occupancy"], told["limiter"]) == (0, 0.0, None)
    assert (told["grid_blocks"], told["waves"]) == (1, None)
    assert f"cannot be launched: {told['reason']}" in capsys.readouterr().out


def test_every_nvidia_gpu_of_the_table_is_answered_by_key_and_others_by_driver_name(answered):
    nvidia = {row.key: row.compute_capability for row in ACCELERATORS if row.vendor == "NVIDIA"}
    words = ("--registers", "32", "--block", "128", "--json")
    answers = {key: answered("occupancy", "--gpu", key, *words) for key in (*nvidia, ON_A100[1])}

    assert {key: told["compute_capability"] for key, (_, told) in answers.items()} == {**nvidia, ON_A100[1]: "8.0"}
    assert all(code == EXIT_OK and told["active_warps"] > 0 for code, told in answers.values())


def test_kernel_is_compiled_for_the_gpu_and_its_needs_are_told(answered, asked_of_the_compiler):
    words = ("--block", "32,8", "--dtype", "bf16", "--shape", "m=1024,k=8,n=1024", "--json")
    code, told = answered("occupancy", "matmul/numba-cuda", *ON_A100, *words)

    assert code == EXIT_OK
    assert asked_of_the_compiler == [Target("matmul", "numba-cuda", "bf16", "8.0", (32, 8))]
    assert (told["registers_per_thread"], told["shared_bytes_per_block"], told["threads_per_block"]) == (40, 2048, 256)
    assert (told["blocks_per_multiprocessor"], told["limiter"]) == (6, "registers")
    assert (told["operation"], told["implementation"], told["dtype"]) == ("matmul", "numba-cuda", "bf16")
    assert (told["block"], told["local_bytes"], told["spill_bytes"]) == ([32, 8], 16, 8)
    assert (told["multiprocessors"], told["grid_blocks"]) == (108, 32 * 128)


def test_kernel_has_its_own_block_and_fp32_unless_asked_otherwise(asked_of_the_compiler, capsys):
    words = ("--cc", "12.0", "--shape", "m=1024,k=8,n=1024", "--multiprocessors", "108")
    assert main(["occupancy", "matmul/numba-cuda", *words]) == EXIT_OK

    assert asked_of_the_compiler == [Target("matmul", "numba-cuda", "fp32", "12.0", (16, 16))]
    printed = capsys.readouterr().out
    assert "matmul/numba-cuda in fp32, blocks of 16 x 16, 16 B local memory per thread, 8 B of spills" in printed
    assert "4096 blocks on 108 multiprocessors" in printed


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--block 0", "block '0': expected X or X,Y or X,Y,Z of 1 to 1024 threads in all"),
        ("--block -8", "block '-8': expected"),
        ("--block 1.5", "block '1.5': expected"),
        ("--block many", "block 'many': expected"),
        ("--block 1025", "block '1025': expected"),
        ("--block 33,32", "block '33,32': expected"),
        ("--block 8,,8", "block '8,,8': expected"),
        ("--block 2,2,2,2", "block '2,2,2,2': expected"),
        ("--block 1,1,65", "block '1,1,65': expected"),
        ("--registers 0", "registers '0': expected whole numbers from 1 to 255"),
        ("--registers 300", "registers '300': expected whole numbers from 1 to 255"),
        ("--registers -1", "registers '-1': expected whole numbers"),
        ("--registers 32.5", "registers '32.5': expected whole numbers"),
        ("--shared 1000000000", "shared '1000000000': expected whole numbers from 0 to 101,376"),
        ("--shared -1", "shared '-1': expected whole numbers"),
        ("--shared 1e3", "shared '1e3': expected whole numbers"),
        ("--cc 9.9", "compute capability '9.9': expected 3.7, 6.0"),
        ("--cc sm_86", "compute capability 'sm_86': expected 3.7, 6.0"),
        ("--dtype fp32", "dtype 'fp32': expected none without OPERATION/IMPLEMENTATION"),
    ],
)
def test_bad_number_is_named_with_the_accepted_ones(capsys, words, text):
    assert main(["occupancy", *NUMBERS, *words.split()]) == EXIT_UNUSABLE

    told = capsys.readouterr()
    assert told.err.startswith(f"gpuexplore: {text}")
    assert told.out == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("A100 96GB", "gpu 'A100 96GB': expected names and keys of `specs`, near: A100 SXM4 80GB"),
        ("Voodoo 2", "gpu 'Voodoo 2': expected names and keys of `specs`\n"),
        ("AMD Instinct MI300X", "expected GPUs with a compute capability of 3.7, "),
    ],
)
def test_gpu_that_is_unknown_or_not_nvidias_is_refused(capsys, name, text):
    assert main(["occupancy", "--gpu", name, "--registers", "32", "--block", "256"]) == EXIT_UNUSABLE
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("matmul", "kernel 'matmul': expected OPERATION/IMPLEMENTATION: matmul/numba-cuda"),
        ("fft/numba-cuda", "operation 'fft': expected matmul, "),
        ("matmul/jax", "implementation of matmul 'jax': expected numpy, "),
        ("matmul/numpy", "CUDA kernel 'matmul/numpy': expected matmul/numba-cuda"),
        ("matmul/torch", "CUDA kernel 'matmul/torch': expected matmul/numba-cuda"),
        ("matmul/numba-cuda --dtype fp8", "dtype of matmul 'fp8': expected fp64, fp32"),
        ("matmul/numba-cuda --block 7", "block '7': expected 16,16, 32,8"),
        ("matmul/numba-cuda --block 0,1", "block '0,1': expected X or X,Y or X,Y,Z"),
        ("matmul/numba-cuda --registers 32", "registers '32': expected none with a kernel"),
        ("matmul/numba-cuda --shared 0", "shared '0': expected none with a kernel"),
    ],
)
def test_bad_kernel_is_refused_before_anything_is_compiled(asked_of_the_compiler, capsys, words, text):
    assert main(["occupancy", *words.split(), *ON_A100]) == EXIT_UNUSABLE
    assert capsys.readouterr().err.startswith(f"gpuexplore: {text}")
    assert asked_of_the_compiler == []


@pytest.mark.parametrize("words", [["--block", "256"], ["--registers", "32"], []])
def test_numbers_that_are_missing_are_asked_for(capsys, words):
    assert main(["occupancy", "--cc", "8.6", *words]) == EXIT_UNUSABLE
    assert "give OPERATION/IMPLEMENTATION, or both --block and --registers" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--cc", "8.6", "--gpu", "NVIDIA A100-SXM4-80GB"]])
def test_either_a_gpu_or_a_compute_capability_is_needed(capsys, words):
    with pytest.raises(SystemExit) as end:
        main(["occupancy", *words])

    assert end.value.code == EXIT_UNUSABLE
    assert "--gpu" in capsys.readouterr().err


def test_help_names_every_compute_capability(capsys):
    with pytest.raises(SystemExit):
        main(["occupancy", "--help"])

    printed = capsys.readouterr().out
    assert all(name in printed for name in CAPABILITIES)


BLOCKS_OF_1024 = ("--cc", "7.5", "--registers", "16", "--block", "1024")


@pytest.mark.parametrize(
    ("size", "multiprocessors", "blocks", "waves", "tail", "said"),
    [
        ("5466", "16", 6, 1, 6, "6 blocks on 16 multiprocessors, 16 at once: 1 wave"),
        ("100000", "16", 98, 7, 2, "98 blocks on 16 multiprocessors, 16 at once: 7 waves, the last of 2 blocks"),
        ("100000", "14", 98, 7, 0, "98 blocks on 14 multiprocessors, 14 at once: 7 waves, all full"),
    ],
)
def test_a_size_has_waves(answered, capsys, size, multiprocessors, blocks, waves, tail, said):
    words = ("occupancy", *BLOCKS_OF_1024, "--size", size, "--multiprocessors", multiprocessors)
    code, told = answered(*words, "--json")

    assert code == main(words) == EXIT_OK
    assert (told["grid_blocks"], told["multiprocessors"]) == (blocks, int(multiprocessors))
    assert (told["waves"]["count"], told["waves"]["tail_blocks"]) == (waves, tail)
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--multiprocessors", "0", "--size", "1"), "multiprocessors '0': expected whole numbers from 1 to 1,024"),
        (("--multiprocessors", "16"), "none without --size or --shape"),
        (("--size", "1"), "give --multiprocessors"),
        (("--size", "x", "--multiprocessors", "1"), "size 'x'"),
        (("--shape", "m=1", "--multiprocessors", "1"), "shape 'm=1': expected none without OPERATION"),
    ],
)
def test_a_size_that_cannot_be_used_is_named(capsys, words, said):
    assert main(("occupancy", *BLOCKS_OF_1024, *words)) == EXIT_UNUSABLE
    assert said in capsys.readouterr().err
