"""`gpuexplore predict`: the promised JSON, a table for people, and what it refuses."""

import pytest

from gpuexplore.analysis.prediction import CALLS
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE

KEYS = {
    "gpu",
    "operation",
    "shape",
    "dtype",
    "calls",
    "time_s",
    "low_s",
    "high_s",
    "flop_per_s",
    "bound",
    "native",
    "basis",
}
T4 = ("predict", "linear", "--shape", "notebook-linear", "--gpu", "Tesla T4", "--dtype", "fp32,bf16,fp16,fp8")


def test_json_has_the_keys_of_the_design(answered):
    code, told = answered(*T4, "--json")
    assert code == EXIT_OK
    assert all(set(one) >= KEYS for one in told["predictions"])
    assert [one["dtype"] for one in told["predictions"]] == ["fp32", "bf16", "fp16", "fp8"]
    assert told["predictions"][0]["shape"] == {"b": 16384, "d": 32768, "k": 8192}


def test_a_t4_emulates_bf16_has_fp16_and_no_fp8(answered):
    fp32, bf16, fp16, fp8 = answered(*T4, "--json")[1]["predictions"]
    assert [one["support"] for one in (fp32, bf16, fp16, fp8)] == ["native", "emulated", "native", "unsupported"]
    assert [one["native"] for one in (fp32, bf16, fp16, fp8)] == [True, False, True, False]
    assert fp16["peak"]["flop_per_s"] == 65e12
    assert fp32["time_s"] / 1.5 < 1.7327 < fp32["high_s"]
    assert fp8["time_s"] is None
    assert "no bf16 units" in bf16["reason"]


def test_people_get_a_table_with_intervals_reasons_and_what_it_rests_on(capsys):
    assert main(T4) == EXIT_OK
    told = capsys.readouterr().out
    assert "9 in 10 within" in told
    assert "bf16: Tesla T4 has no bf16 units: fp32 does the arithmetic" in told
    assert "Tesla T4: based on" in told
    assert "To improve it: run `gpuexplore run " in told


def test_dtypes_and_devices_are_compared_by_how_much_faster_the_faster_one_is(capsys):
    assert main(("predict", "matmul", "--size", "4096", "--gpu", "l4,h100", "--dtype", "bf16,fp32")) == EXIT_OK
    compared = [line.split(" (")[0] for line in capsys.readouterr().out.splitlines() if " times as fast as " in line]
    assert [line.split(" is ")[0] for line in compared] == [
        "On L4, bf16",
        "In bf16, H100 SXM5 80GB",
        "On H100 SXM5 80GB, bf16",
        "In fp32, H100 SXM5 80GB",
    ]
    assert all(float(line.split(" is ")[1].split()[0]) > 1 for line in compared)


@pytest.mark.parametrize("calls", CALLS)
def test_kind_of_calls_is_asked_for_and_told(answered, capsys, calls):
    assert {one["calls"] for one in answered(*T4, "--calls", calls, "--json")[1]["predictions"]} == {calls}
    assert main((*T4, "--calls", calls)) == EXIT_OK
    assert CALLS[calls] in capsys.readouterr().out


def test_without_a_word_calls_are_queued(answered):
    assert {one["calls"] for one in answered(*T4, "--json")[1]["predictions"]} == {"queued"}


def test_this_machines_cpu_can_be_asked(answered):
    code, told = answered("predict", "matmul", "--size", "512", "--gpu", "cpu", "--dtype", "fp32", "--json")
    assert code == EXIT_OK
    assert told["predictions"][0]["time_s"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("matmul --size 8 --gpu Abacus", "gpu 'Abacus': expected names and keys"),
        ("matmul --size 8 --gpu H1000", "near: H100"),
        ("matmul --size 8 --gpu t4 --dtype fp4", "dtype 'fp4': expected fp64"),
        ("matmul --gpu t4", "no size and no shape"),
        ("matmul --size 8 --gpu t4 --calls fast", "calls 'fast': expected graph, queued, single"),
        ("matmul --size 8 --gpu t4 --calls graph,fast", "calls 'fast': expected graph, queued, single"),
        ("matmul --size 8 --gpu t4 --calls=", "calls '': expected graph, queued, single"),
        ("matmul --size x --gpu t4", "size 'x'"),
        ("fft --size 8 --gpu t4", "operation 'fft'"),
        ("matmul --size 8 --gpu t4 --impl jax", "implementation of matmul 'jax'"),
        ("matmul --size 8 --gpu ,", "nothing to predict"),
        (
            "matmul --size 8 --gpu cuda:0",
            "gpu 'cuda:0': expected names and keys of `specs`; devices of this machine",
        ),
        ("matmul --size 1_ --gpu t4", "size '1_': expected whole numbers"),
        ("matmul --shape ; --gpu t4", "no shape of matmul: give at least one: lengths like m=128,k=128,n=128"),
        (
            "matmul --size 8 --gpu t4 --impl numpy",
            "implementation of matmul on Tesla T4 'numpy': expected numba-cuda",
        ),
        ("matmul --size 8 --gpu cpu --impl numba-cuda", "'numba-cuda': expected numpy, numba-cpu"),
    ],
)
def test_what_cannot_be_used_is_named_with_what_can(capsys, words, message):
    assert main(["predict", *words.split()]) == EXIT_UNUSABLE
    assert message in capsys.readouterr().err


def test_a_gpu_under_two_of_its_names_is_predicted_once(answered):
    code, told = answered("predict", "matmul", "--size", "64", "--gpu", "t4,Tesla T4", "--dtype", "fp32", "--json")
    assert code == EXIT_OK
    assert len(told["predictions"]) == 1


def test_every_implementation_that_runs_on_the_device_can_be_asked_for(answered):
    for name in ("torch", "numba-cuda", "triton"):
        words = ("predict", "matmul", "--size", "64", "--gpu", "t4", "--dtype", "fp32", "--impl", name, "--json")
        assert answered(*words)[0] == EXIT_OK


def test_arrays_that_do_not_fit_the_memory_are_told(answered, capsys):
    words = ("predict", "matmul", "--size", "65536", "--gpu", "Tesla T4", "--dtype", "fp32")
    assert answered(*words, "--json")[1]["predictions"][0]["fits"] is False
    assert answered(*T4, "--json")[1]["predictions"][0]["fits"] is True
    assert main(words) == EXIT_OK
    assert "the arrays need 48.0 GiB, but Tesla T4 has 16.0 GiB: they would not fit" in capsys.readouterr().out


@pytest.mark.parametrize(
    "said", ["graph,single", "graphs, one at a time", "CUDA graph,sync", "cuda-graphs,single calls"]
)
def test_several_kinds_of_calls_have_a_prediction_each(answered, capsys, said):
    words = ("predict", "matmul", "--size", "256", "512", "--gpu", "t4", "--dtype", "float16,half,f32", "--calls", said)
    told = answered(*words, "--json")[1]["predictions"]
    assert [(one["dtype"], one["calls"]) for one in told] == [
        *[("fp16", "graph"), ("fp16", "single"), ("fp32", "graph"), ("fp32", "single")] * 2
    ]
    assert main(words) == EXIT_OK
    assert capsys.readouterr().out.splitlines()[0].split()[:4] == ["gpu", "shape", "dtype", "calls"]
