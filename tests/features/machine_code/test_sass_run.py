"""`gpuexplore sass FILE --run`: kernels of others in the interpreter, beside NumPy, and what is refused."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE
from gpuexplore.kernels.files.ptx_text import bits_of, read_argument
from tests.cli.conftest import home
from tests.kernels.files.kept import CUBIN, CUTE, NVCC, SAXPY, SOFTMAX, SUM_CUDA, TRITON, TWO
from tests.waiting import DEADLINE_S

ON_H100 = ("--gpu", "h100-sxm5-80gb")
LAUNCHED = ("--grid", "2", "--block", "128", "--arg", "n=256", "--arg", "a=2.5")
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def ran(capsys, path, *words):
    assert main(["sass", str(path), *ON_H100, "--run", *words, "--json"]) == EXIT_OK
    told = json.loads(capsys.readouterr().out)
    assert told["faults"] == []
    return {name: np.array(values) for name, values in told["arrays"].items()}


def refused(capsys, *words):
    assert main(["sass", *map(str, words)]) == EXIT_UNUSABLE
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return printed.err


def test_nvrtc_saxpy_adds_and_an_access_out_of_bounds_is_found(capsys):
    arrays = ran(capsys, SAXPY, *LAUNCHED, "--arg", "x=arange:fp32:256", "--arg", "y=ones:fp32:256")
    words = ("--arg", "x=arange:fp32:255", "--arg", "y=ones:fp32:256")

    assert arrays["y"].tolist() == (2.5 * np.arange(256) + 1).tolist()
    assert main(["sass", str(SAXPY), *ON_H100, "--run", *LAUNCHED, *words]) == EXIT_FAILED
    assert "out of bounds: " in capsys.readouterr().out


def test_one_of_two_kernels_multiplies_matrices(capsys):
    words = ("--kernel", "matmul", "--grid", "2,2", "--block", "16,16", "--arg", "a=randn:fp32:1024")
    arrays = ran(capsys, TWO, *words, "--arg", "b=randn:fp32:1024", "--arg", "out=zeros:fp32:1024", "--arg", "n=32")
    a, b, out = (arrays[name].reshape(32, 32) for name in ("a", "b", "out"))

    assert out == pytest.approx(a @ b, abs=1e-4)


def test_the_other_one_takes_shared_memory_that_the_launch_adds(capsys):
    words = ("--kernel", "reversed", "--block", "8", "--arg", "in=arange:fp32:8", "--arg", "out=zeros:fp32:8")

    assert ran(capsys, TWO, *words, "--dynamic-shared", "32")["out"].tolist() == list(range(7, -1, -1))
    assert main(["sass", str(TWO), *ON_H100, "--run", *words]) == EXIT_FAILED
    assert "out of bounds: outside of shared memory" in capsys.readouterr().out


def test_triton_runs_in_the_block_its_file_names(capsys):
    given = ("x=arange:fp32:1000", "y=ones:fp32:1000", "out=zeros:fp32:1000", "n=1000", "p=0", "p=0")
    words = [word for argument in given for word in ("--arg", argument)]
    assert main(["sass", str(TRITON), *ON_H100, "--run", *words]) == EXIT_OK
    said = capsys.readouterr().out

    assert "grid of 1, blocks of 128 threads: " in said
    assert "out (1000): 1, 2, 3, 4, 5, 6, 7, 8, ..." in said
    assert "no races, no accesses out of bounds or misaligned" in said


def test_a_softmax_of_triton_has_no_race_where_threads_write_one_value_to_one_place(capsys):
    words = ("--grid", "4", "--dynamic-shared", "64", "--arg", "x=randn:fp32:400", "--arg", "out=zeros:fp32:400")
    arrays = ran(capsys, SOFTMAX, *words, "--arg", "n=100", "--arg", "p=0", "--arg", "q=0")
    x, out = (arrays[name].reshape(4, 100) for name in ("x", "out"))

    powers = np.exp(x - x.max(axis=1, keepdims=True))
    assert out == pytest.approx(powers / powers.sum(axis=1, keepdims=True), rel=1e-5)


def test_cute_adds(capsys):
    words = ("--arg", "a=arange:fp32:1024", "--arg", "b=ones:fp32:1024", "--arg", "c=zeros:fp32:1024")

    assert ran(capsys, CUTE, "--grid", "8", *words)["c"].tolist() == list(range(1, 1025))


def summed(capsys, path):
    words = ("--grid", "2", "--block", "128", "--dynamic-shared", "16")
    return ran(capsys, path, *words, "--arg", "x=ones:fp32:1000", "--arg", "out=zeros:fp32:1", "--arg", "n=1000")["out"]


def test_nvcc_sums_in_shared_memory_and_atomically(capsys):
    assert summed(capsys, NVCC).tolist() == [1000]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("architecture", ["sm_75", "sm_120"])
def test_what_the_nvcc_of_this_machine_makes_is_run_and_read(capsys, tmp_path, architecture):
    ptx, cubin = tmp_path / "sum.ptx", tmp_path / "sum.cubin"
    for path in (ptx, cubin):
        made = ["nvcc", f"-{path.suffix[1:]}", f"-arch={architecture}", str(SUM_CUDA), "-o", str(path)]
        subprocess.run(made, check=True, capture_output=True, timeout=DEADLINE_S)
    gpu = {"sm_75": "t4", "sm_120": "rtx-5090"}[architecture]

    assert main(["sass", str(cubin), "--gpu", gpu, "--json"]) == EXIT_OK
    told = json.loads(capsys.readouterr().out)
    assert (told["kernel"], told["target"]) == ("sum", architecture)
    assert 0 < told["most_live_registers"] <= told["registers_per_thread"]
    if architecture != "sm_120":  # which an H100 cannot run
        assert summed(capsys, ptx).tolist() == [1000]


def test_numbers_are_held_as_the_parameter_holds_them_and_formats_as_elsewhere():
    assert bits_of(read_argument("a=-1"), "u32") == 2**32 - 1
    assert bits_of(read_argument("a=9007199254740993"), "u64") == 2**53 + 1
    assert bits_of(read_argument("a=1e3"), "s32") == 1000
    assert bits_of(read_argument("a=1"), "f32") == 0x3F800000
    assert bits_of(read_argument("a=1"), "f64") == 0x3FF0000000000000

    narrow, whole = read_argument("a=arange:bf16:4"), read_argument("a=ones:int32:4")

    assert (narrow.array.dtype, whole.array.dtype) == (np.uint16, np.int32)
    assert narrow.values(narrow.array).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([CUBIN, "--gpu", "a100-sxm4-80gb", "--run"], "the interpreter runs ptx, but this is a cubin"),
        ([SAXPY, *ON_H100, "--run"], "0 arguments: saxpy takes 4, in this order: .u32, .f32, .u64, .u64"),
        ([SAXPY, *ON_H100, "--run", "--grid", "0"], "grid '0': expected X or X,Y"),
        ([SAXPY, *ON_H100, "--run", "--grid", "1,1,1,1"], "grid '1,1,1,1'"),
        ([SAXPY, *ON_H100, "--run", "--arg", "a"], "argument 'a': expected NAME=FILL:DTYPE:LENGTH"),
        ([SAXPY, *ON_H100, "--run", "--arg", "=1"], "argument '=1'"),
        ([SAXPY, *ON_H100, "--run", "--arg", "a=nan"], "argument 'a=nan'"),
        ([SAXPY, *ON_H100, "--run", "--arg", "a=randn:fp99:4"], "argument 'a=randn:fp99:4'"),
        ([SAXPY, *ON_H100, "--run", "--arg", "a=noise:fp32:4"], "argument 'a=noise:fp32:4'"),
        ([SAXPY, *ON_H100, "--run", "--arg", "a=ones:fp32:0"], "argument 'a=ones:fp32:0'"),
        ([SAXPY, *ON_H100, "--run", "--arg", "a=ones:fp32:99999999"], "lengths from 1 to 1048576"),
        ([SAXPY, *ON_H100, "--grid", "2"], "need --run"),
        ([SAXPY, *ON_H100, "--run", *("--arg", "n=2.5") * 4], "argument n '2.5': expected whole numbers"),
        (["matmul/numba-cuda-naive", *ON_H100, "--run"], "--run needs a PTX file"),
        (["foo.sass", *ON_H100], "or an existing file, or a name that ends in .ptx or .cubin"),
    ],
)
def test_bad_words_are_named_with_what_is_accepted(capsys, words, said):
    assert said.lower() in refused(capsys, *words).lower()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1, %f2}];", "tex"),
        ("call nobody;", "call"),
        ("garbage garbage garbage;", "garbage"),
        ("bra nowhere;", "nowhere"),
        ("L: bra L;", "thread instructions"),
    ],
)
def test_what_the_interpreter_cannot_do_is_a_sentence(capsys, tmp_path, monkeypatch, body, said):
    monkeypatch.setattr("gpuexplore.features.machine_code.kernel_files.MOST_WORK", 10_000)
    path = tmp_path / "strange.ptx"
    path.write_text(f"{HEAD}.visible .entry k()\n{{\n.reg .f32 %f<9>;\n{body}\nret;\n}}\n")

    assert said in refused(capsys, path, *ON_H100, "--run")


def test_a_structure_cannot_be_given(capsys, tmp_path):
    path = tmp_path / "structure.ptx"
    path.write_text(f"{HEAD}.visible .entry k(.param .align 8 .b8 p[24])\n{{\nret;\n}}\n")

    assert "no value: structures are not supported" in refused(capsys, path, *ON_H100, "--run", "--arg", "p=1")
