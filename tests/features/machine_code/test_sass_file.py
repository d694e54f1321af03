"""`gpuexplore sass FILE` with kernels of others, through the real compiler and disassembler, and what it refuses."""

import json
from functools import cache

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core import InvalidInput
from gpuexplore.features.machine_code import kernel_files
from gpuexplore.features.machine_code.kernel_process import _assembled_answer
from gpuexplore.kernels.files import MOST_BYTES
from gpuexplore.kernels.files.machine_code import reallocated
from gpuexplore.kernels.sass import Line
from tests.cli.conftest import home
from tests.kernels.files.kept import (
    CUBIN,
    CUTE,
    CUTE_CUBIN,
    EVERY_PTX,
    FP8_GROUP,
    MATMUL,
    PRODUCTS,
    SAXPY,
    SAXPY_CUBIN,
    SOFTMAX,
    SPECIALISED,
    TRITON,
    TWO,
)
from tests.kernels.test_sass import code
from tests.unchanged import PACKAGE, heavy

ON_H100, ON_A100 = ("--gpu", "h100-sxm5-80gb"), ("--gpu", "a100-sxm4-80gb")

pytestmark = pytest.mark.usefixtures("nvdisasm")


ANSWERS = cache(_assembled_answer)


@pytest.fixture
def nvjitlink(monkeypatch):
    """Assemble in this process, each PTX once: a new process takes seconds to load the assembler."""
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")
    monkeypatch.setattr(kernel_files, "_answer", lambda request, _: ANSWERS(**request))


def told(capsys, *words):
    assert main(["sass", *map(str, words), "--json"]) == EXIT_OK
    return json.loads(capsys.readouterr().out)


def refused(capsys, *words):
    assert main(["sass", *map(str, words)]) == EXIT_UNUSABLE
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return printed.err


def test_a_cubin_is_told_of_as_it_is(capsys):
    found = told(capsys, SAXPY_CUBIN, *ON_H100)

    assert (found["kernel"], found["target"], found["toolkit"], found["spill_bytes"]) == ("saxpy", "sm_90", None, None)
    assert (found["block"], found["block_origin"], found["registers_per_thread"]) == ([256], "default", 14)
    assert (found["most_live_registers"], found["occupancy"], found["bottleneck"]) == (10, 1.0, "shared_memory")
    assert [each["live_registers"] for each in found["instructions"]] == [8, 10, 10, 10, 10, 10, 10, 9, 6]
    assert "roofline_flop_per_s" not in found


def test_a_cubin_is_printed_with_the_scheduling_of_its_main_loop(capsys):
    assert main(["sass", str(SAXPY_CUBIN), *ON_H100, "--block", "64,2"]) == EXIT_OK
    said = capsys.readouterr().out

    assert "saxpy of nvrtc_saxpy_90.cubin on H100 SXM5 80GB, machine code for sm_90" in said
    assert "blocks of 64 x 2 threads: as requested" in said
    assert "14 registers per thread, at most 10 of them live, spills unknown: a cubin does not state them" in said
    assert "   9     7     .     .    0 ......  /*0150*/       STG.E desc[UR6][R4.64], R11" in said
    assert "Memory is not part of this bound" in said
    assert "roofline" not in said


@pytest.mark.parametrize(("path", "gpu"), [(CUBIN, ON_A100), (CUTE_CUBIN, ON_H100)])
def test_a_cubin_in_an_older_layout_says_what_stays_unknown(capsys, path, gpu):
    assert main(["sass", str(path), *gpu, "--all"]) == EXIT_OK

    assert (
        "live: unknown, as the disassembler cannot analyse cubins in the layout of CUDA 12" in capsys.readouterr().out
    )


@pytest.mark.long
@heavy(f"{PACKAGE}.*", files=EVERY_PTX)
@pytest.mark.usefixtures("nvjitlink")
@pytest.mark.parametrize("path", EVERY_PTX, ids=lambda path: path.stem)
def test_ptx_of_others_is_assembled(capsys, path):
    names = ("--kernel", "matmul") if path == TWO else ()
    found = told(capsys, path, *ON_H100, *names, "--all")

    assert (found["target"], found["spill_bytes"]) == ("sm_90a" if path in (TRITON, SOFTMAX, CUTE) else "sm_90", 0)
    assert found["registers_per_thread"] / 2 < found["most_live_registers"] <= found["registers_per_thread"]
    assert all(0 <= each["control"]["stall"] <= 15 for each in found["instructions"])


@pytest.mark.long
@pytest.mark.usefixtures("nvjitlink")
def test_blocks_and_shared_memory_decide_the_occupancy(capsys):
    one = told(capsys, TWO, *ON_H100, "--kernel", MATMUL)
    other = told(capsys, TWO, *ON_H100, "--kernel", "reversed", "--dynamic-shared", "116000")

    assert (one["block"], one["block_origin"], one["shared_bytes"]) == ([256, 1, 1], "file", 2048)
    assert (other["block_origin"], other["dynamic_shared_bytes"], other["occupancy"]) == ("default", 116000, 8 / 64)
    assert main(["sass", str(TWO), *ON_H100, "--kernel", "reversed"]) == EXIT_OK
    assert "the file declares dynamic shared memory: give its bytes with --dynamic-shared" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.usefixtures("nvjitlink")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ld.global", "ld.globule", "cannot be compiled for sm_90: line 47; error: Unknown modifier '.globule'"),
        (".version 9.5", ".version 99.0", "line 9; fatal: Unsupported .version 99.0; current version is"),
        ("ret;", "call nobody; ret;", "cannot be compiled for sm_90: "),
    ],
)
def test_ptx_that_is_wrong_is_told_in_the_words_of_the_assembler(capsys, tmp_path, old, new, said):
    path = tmp_path / "wrong.ptx"
    path.write_text(SAXPY.read_text().replace(old, new))

    assert said in refused(capsys, path, *ON_H100)


@pytest.mark.long
@pytest.mark.usefixtures("nvjitlink")
def test_products_of_warpgroups_in_fp8_are_bound_by_their_tensor_cores(capsys):
    assert main(["sass", str(FP8_GROUP), *ON_H100]) == EXIT_OK
    said = capsys.readouterr().out

    assert "16 of 29 instructions use the tensor cores\n" in said
    assert "upper bound: 1.98 PFLOP/s, 100 % of the peak of its units (fp8 tensor cores)" in said
    assert "The fp8 tensor cores are the limit: 16 of 29 instructions use them." in said


@pytest.mark.long
@pytest.mark.usefixtures("nvjitlink")
def test_ordinary_multiply_adds_do_not_use_the_tensor_cores(capsys):
    assert main(["sass", str(PRODUCTS), *ON_A100]) == EXIT_OK

    assert "16 of 76 instructions use the tensor cores; 24 FFMA run on the ordinary units" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.usefixtures("nvjitlink")
@pytest.mark.parametrize(
    ("directives", "registers", "after", "warps"),
    [
        (".maxntid 384, 1, 1 .minnctapersm 1", 168, "which nvJitLink ignores, so the code shown has 12", 12),
        (".maxnreg 152", 152, "which nvJitLink ignores", 8),
        ("", 12, "which compilers ignore without .maxnreg, or .minnctapersm", 64),
    ],
)
def test_registers_at_launch_and_after_setmaxnreg_are_said(capsys, tmp_path, directives, registers, after, warps):
    path = tmp_path / "specialised.ptx"
    path.write_text(SPECIALISED.read_text().replace(".reqntid 384, 1, 1\n.minnctapersm 1", directives))

    assert main(["sass", str(path), *ON_H100]) == EXIT_OK
    said = capsys.readouterr().out
    assert f"{registers} registers per thread at launch, 40 and 232 after setmaxnreg ({after}" in said
    assert f": {warps} warps per multiprocessor, limited by" in said
    assert "Occupancy is computed from the registers at launch" in said


def test_a_cubin_says_the_registers_that_its_warps_ask_for():
    lines = [Line(each) for each in code("USETMAXREG.DEALLOC.CTAPOOL 0x28", "USETMAXREG.TRY_ALLOC.CTAPOOL UP0,0xe8")]

    assert reallocated(lines) == (40, 232)


@pytest.mark.long
def test_ptx_of_the_largest_size_is_assembled_in_a_process_of_its_own(capsys, tmp_path):
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")
    path = tmp_path / "long.ptx"
    path.write_text(SAXPY.read_text().ljust(MOST_BYTES, "\n"))

    assert told(capsys, path, *ON_H100)["kernel"] == "saxpy"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.ptx", *ON_H100], "nowhere.ptx: No such file or directory"),
        ([TWO, *ON_H100], f"this file has 2 kernels, so name one: {MATMUL}, reversed"),
        ([TWO, *ON_H100, "--kernel", "gemm"], f"kernel 'gemm': expected {MATMUL}, reversed"),
        ([CUBIN, *ON_H100], "this cubin is for compute capability 8.0, but the GPU has 9.0"),
        ([CUBIN, "--gpu", "mi300x"], "mi300x"),
        ([CUBIN, *ON_A100, "--block", "256"], "block '256': expected up to 128 threads"),
        ([CUBIN, *ON_A100, "--block", "-3"], "block '-3': expected X or X,Y"),
        ([CUBIN, *ON_A100, "--dynamic-shared", "lots"], "dynamic shared memory 'lots': expected whole numbers"),
        ([CUBIN, *ON_A100, "--dynamic-shared", "999999"], "dynamic shared memory '999999'"),
        ([CUBIN, *ON_A100, "--dtype", "fp32"], "--dtype fp32: this option needs an OPERATION/IMPLEMENTATION"),
        ([CUBIN, *ON_A100, "--size", "64"], "--size 64: this option needs"),
        (["matmul/numba-cuda-naive", *ON_A100, "--kernel", "k"], "--kernel k: this option needs a file"),
        (
            ["matmul/numba-cuda-naive", *ON_A100, "--dynamic-shared", "9"],
            "--dynamic-shared 9: this option needs a file",
        ),
        ([TRITON, *ON_A100], "this PTX is for sm_90a, but the GPU has compute capability 8.0: expected 9.0 only"),
    ],
)
def test_bad_words_are_named_with_what_is_accepted(capsys, words, said):
    assert said.lower() in refused(capsys, *words).lower()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.ptx", b"", "this file is empty"),
        ("words.ptx", b"not a kernel", "this is not PTX"),
        ("noise.cubin", bytes(range(256)), "neither PTX, which is text, nor a cubin"),
        ("large.ptx", b" " * (4 * 2**20 + 1), "more than 4.00 MiB: the limit is 4,194,304 bytes"),
    ],
)
def test_a_file_that_holds_no_kernel_is_a_sentence(capsys, tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)

    assert said in refused(capsys, path, *ON_H100)


def test_a_file_that_windows_wrote_is_read(capsys, tmp_path):
    path = tmp_path / "k.ptx"
    text = ".version 8.0\r\n.target sm_80\r\n.address_size 64\r\n.visible .entry one()\r\n{\r\nret;\r\n}\r\n"
    path.write_bytes(text.encode("utf-8-sig"))

    assert "expected one" in refused(capsys, path, *ON_H100, "--kernel", "two")


def test_ptx_older_than_the_assembler_reads_is_refused_with_the_versions_it_reads(monkeypatch):
    def refuse(*_):
        raise InvalidInput("this PTX cannot be compiled: 'Compile only(-c)' requires PTX ISA .version 3.1 or later")

    monkeypatch.setattr("gpuexplore.kernels.cuda_compile.assemble", refuse)
    text = ".version 2.0\n.target sm_20\n.entry k ()\n{\nexit;\n}\n"

    assert _assembled_answer(text, "9.0")["invalid"].endswith("the assembler reads PTX of .version 3.1 and later")


def test_a_folder_is_a_sentence(capsys, tmp_path):
    folder = tmp_path / "k.ptx"
    folder.mkdir()

    assert "no such file" in refused(capsys, folder, *ON_H100)
