"""`gpuexplore sass` with a stand-in compiler and disassembler, with the real ones, and what it refuses."""

import json

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.errors import Unsupported
from gpuexplore.features.machine_code import sass_command
from gpuexplore.features.machine_code.compiling import Target
from gpuexplore.kernels.files.machine_code import CompiledKernel
from gpuexplore.kernels.sass import Control, Line
from tests.cli.conftest import home
from tests.kernels.test_sass import code

ON_H100 = ("--gpu", "NVIDIA H100 80GB HBM3")
CODE = code("MOV R1,R9", *(f"FFMA R{n},R90,R91,R{n}" for n in range(8)), "@P0 BRA 0x10", "LDG.E.128 R4,[R2.64]", "EXIT")
LINES = tuple(Line(each, Control(2, True, None, 1, (0,), ()), 9) for each in CODE)


@pytest.fixture
def asked(monkeypatch):
    """Stand in for the compiler, and return what it is asked."""
    seen = []

    def compiled(target):
        seen.append(target)
        return CompiledKernel(target.compute_capability, "sm_90a", "13.5", "", b"", 40, 2048, 0, 0, 0, 0)

    monkeypatch.setattr(sass_command, "compiled_kernel", compiled)
    monkeypatch.setattr(sass_command, "lines_of_ours", lambda _: LINES)
    return seen


def test_json_has_the_loop_its_bound_and_the_bottleneck(asked, capsys):
    words = ["sass", "matmul/numba-cuda-naive", *ON_H100, "--json"]

    assert main(words) == EXIT_OK
    told = json.loads(capsys.readouterr().out)
    assert asked == [Target("matmul", "numba-cuda-naive", "fp32", "9.0", (16, 16))]
    assert (told["kernel"], told["dtype"], told["target"], told["toolkit"]) == (
        "matmul/numba-cuda-naive",
        "fp32",
        "sm_90a",
        "13.5",
    )
    assert (told["registers_per_thread"], told["spill_bytes"], told["bottleneck"]) == (40, 0, "issue")
    loop = told["main_loop"]
    assert (loop["instructions"], loop["ffma"], loop["hmma"], loop["loads"], loop["stores"]) == (9, 8, 0, {}, {})
    assert loop["fma_fraction"] == pytest.approx(8 / 9)
    assert told["most_live_registers"] == 9
    assert [each["opcode"] for each in told["instructions"]] == ["FFMA"] * 8 + ["BRA"]
    assert told["instructions"][0]["control"] == {
        "stall": 2,
        "yields": True,
        "write_barrier": None,
        "read_barrier": 1,
        "waits": [0],
        "reuse": [],
    }
    assert told["bound_flop_per_s"] == pytest.approx(66.9e12 * 8 / 9, rel=0.01)


def test_main_loop_is_folded_out_and_the_rest_on_demand(asked, capsys):
    assert main(["sass", "matmul/numba-cuda-naive", *ON_H100]) == EXIT_OK
    folded = capsys.readouterr().out
    assert main(["sass", "matmul/numba-cuda-naive", *ON_H100, "--all"]) == EXIT_OK
    whole = capsys.readouterr().out

    assert "... 1 instructions before the main loop" in folded
    assert "... 2 instructions after it" in folded
    assert "LDG.E.128 R4" not in folded
    assert "LDG.E.128 R4, [R2.64]" in whole
    assert "upper bound: 59.5 TFLOP/s, 88.9 % of the peak of its units" in folded
    assert "Instruction issue: 9 instructions take as many cycles" in folded


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["matmul/numpy", *ON_H100], "CUDA kernel 'matmul/numpy': expected"),
        (["matmul", *ON_H100], "kernel 'matmul': expected OPERATION/IMPLEMENTATION"),
        (["matmul/numba-cuda-naive", "--gpu", "voodoo2"], "gpu 'voodoo2'"),
        (["matmul/numba-cuda-naive", *ON_H100, "--dtype", "fp12"], "'fp12'"),
        (["matmul/numba-cuda-naive", *ON_H100, "--block", "7,7"], "block '7"),
        (["matmul/numba-cuda-naive", *ON_H100, "--block", "64,64"], "'64,64'"),
        (["matmul/numba-cuda-naive", "--gpu", "mi300x"], "mi300x"),
    ],
)
def test_bad_words_are_named_with_what_is_accepted(asked, capsys, words, said):
    assert main(["sass", *words]) == EXIT_UNUSABLE

    printed = capsys.readouterr()
    assert said.lower() in printed.err.lower()
    assert "Traceback" not in printed.err


def test_no_disassembler_is_a_sentence_with_the_line_that_installs_it(asked, capsys, monkeypatch):
    def refuse(_):
        raise Unsupported('machine code needs NVIDIA\'s disassembler, nvdisasm: pip install "gpuexplore[sass]"')

    monkeypatch.setattr(sass_command, "lines_of_ours", refuse)

    assert main(["sass", "matmul/numba-cuda-naive", *ON_H100]) == EXIT_UNUSABLE
    assert 'pip install "gpuexplore[sass]"' in capsys.readouterr().err
