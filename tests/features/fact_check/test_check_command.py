"""`gpuexplore check`: a verdict with its reason, and an exit code that a leaderboard can use."""

import pandas as pd
import pytest

import gpuexplore as gx
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.errors import InvalidInput
from tests.cli.conftest import answered, home
from tests.features.calibrated import one_calibration

PRODUCT = ("check", "matmul", "--size", "4096", "--dtype", "bf16", "--gpu", "NVIDIA H100 80GB HBM3")


def test_a_time_above_the_roof_fails_with_the_roof_and_its_source(capsys):
    assert main((*PRODUCT, "--time", "90us")) == EXIT_FAILED
    told = capsys.readouterr().out
    assert "matmul of 4,096 × 4,096 × 4,096 in bf16 on H100 SXM5 80GB in 90.0 µs: above the roof" in told
    assert "1.53 PFLOP/s" in told
    assert "989 TFLOP/s" in told


def test_the_operation_is_the_first_word_or_an_option_and_a_size_is_a_shape(capsys):
    words = ["--shape", "4096", "--dtype", "bf16", "--gpu", "h100-sxm5-80gb", "--time", "90us"]
    assert main(["check", "--operation", "matmul", *words]) == EXIT_FAILED
    said = capsys.readouterr().out
    assert main(["check", "matmul", *words]) == EXIT_FAILED
    assert capsys.readouterr().out == said
    for named in ([], ["matmul", "--operation", "softmax"]):
        assert main(["check", *named, *words]) == EXIT_UNUSABLE
        assert "expected matmul, batched_matmul" in capsys.readouterr().err


def test_json_has_the_verdict_and_the_prediction(answered):
    code, told = answered(*PRODUCT, "--time", "190us", "--json")
    assert (code, told["verdict"]) == (EXIT_OK, "as good as known")
    assert told["time_s"] == pytest.approx(190e-6)
    assert told["prediction"]["low_s"] < told["time_s"] < told["prediction"]["high_s"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--time", "soon"), "time 'soon': expected 1ns to 1000000s"),
        (("--time", "1ms", "--dtype", "fp32,bf16"), "2 cases for one time"),
        (("--time", "1ms", "--gpu", "H1"), "gpu 'H1': expected"),
        (("--time", "1ms", "--calls", "one"), "calls 'one': expected graph, queued, single"),
        (("--rate", "9 foo"), "rate '9 foo': expected FLOP/s and B/s with the prefixes k, M, G, T and P"),
        (("--rate", "900Gbps"), "1.2PFLOP/s, 900 TFLOPS, 3.35TB/s"),
        (("--rate", "0 TFLOP/s"), "where a call takes 1 ns to 1,000,000 s"),
        ((), "give exactly one of time, like 90us, and rate"),
        (("--rate", "1TFLOP/s", "--time", "1ms"), "give exactly one of time, like 90us, and rate"),
    ],
)
def test_what_cannot_be_used_is_named(capsys, arguments, said):
    assert main((*PRODUCT, *arguments)) == EXIT_UNUSABLE
    assert said in capsys.readouterr().err


def test_kind_of_calls_that_a_time_is_of_is_compared(answered):
    code, told = answered(*PRODUCT, "--time", "10ms", "--calls", "single", "--json")
    assert (code, told["prediction"]["calls"]) == (EXIT_OK, "single")
    assert "nine in ten single calls are predicted to take" in told["reason"]


def test_a_causal_mask_counts_the_pairs_that_it_leaves(capsys):
    words = ("check", "attention", "--dtype", "bf16", "--gpu", "h100-sxm5-80gb", "--time", "3.436ms", "--shape")
    assert main((*words, "b=2,h=16,s=16384,d=128,causal=1")) == EXIT_OK
    assert "640 TFLOP/s" in capsys.readouterr().out
    for whole in ("b=2,h=16,s=16384,d=128", "b=2,h=16,s=16384,d=128,causal=0"):
        assert main((*words, whole)) == EXIT_FAILED
        assert "with causal=1 (989 TFLOP/s, " in capsys.readouterr().out


def test_python_asks_the_same():
    found = gx.is_possible("matmul", "NVIDIA H100 80GB HBM3", "90us", sizes=4096, dtypes="bf16")

    assert not found
    assert found.verdict == "above the roof"
    with pytest.raises(InvalidInput, match="time 'True': expected seconds, or text"):
        gx.is_possible("matmul", "NVIDIA H100 80GB HBM3", True, sizes=4096)
    with pytest.raises(TypeError, match=r"is_possible\(\) has no setting 'gpus'"):
        gx.is_possible("matmul", "NVIDIA H100 80GB HBM3", 1.0, gpus="x")


@pytest.mark.parametrize(
    ("rate", "verdict"),
    [
        ("1.2PFLOP/s", "above the roof"),
        ("1.2 PFLOP/s", "above the roof"),
        ("700 TFLOPS", "as good as known"),
        ("3tflop/s", "possible"),
    ],
)
def test_a_rate_is_checked_as_the_time_it_stands_for(answered, rate, verdict):
    words = ("check", "matmul", "--size", "8k", "--gpu", "h100", "--dtype", "half", "--json")
    told = answered(*words, "--rate", rate)[1]
    assert told["verdict"] == verdict
    in_time = answered(*words, "--time", f"{told['time_s']}s")[1]
    assert (in_time["verdict"], in_time["flop_per_s"]) == (verdict, pytest.approx(told["flop_per_s"]))


def test_a_rate_of_bytes_moves_every_array_once(answered):
    told = answered("check", "vector_add", "--size", "1M", "--gpu", "4090", "--rate", "1TB/s", "--json")[1]
    assert told["time_s"] == pytest.approx(3 * 4 * 2**20 / 1e12)
    assert gx.is_possible("matmul", "l4", rate="9TFLOP/s", sizes=4096).time_s == pytest.approx(2 * 4096**3 / 9e12)


CLAIMS = "gpu,op,dtype,shape,tflops,name\nh100,gemm,bf16,8192,1900,fast\nh100,gemm,bf16,8192,700,usual\n"


def test_claims_of_a_file_are_judged_the_worst_first(tmp_path, capsys, answered):
    file = tmp_path / "claims.csv"
    file.write_text(CLAIMS, encoding="utf-8-sig")

    assert main(["check", "--claims", str(file)]) == EXIT_FAILED
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 claims: 1 above roof, 0 invalid, 0 unknown, 0 slow, 1 as known"
    assert [line.split()[0] for line in lines[1:4]] == ["claim", "fast", "usual"]
    assert lines[4].startswith("  fast: H100 SXM5 80GB: it computes at most 989 TFLOP/s")

    code, told = answered("check", "--claims", str(file), "--json")
    assert (code, told["above_roof"], [each["name"] for each in told["results"]]) == (1, 1, ["fast", "usual"])
    assert told["results"][0]["roof"] == "compute"
    assert told == gx.check_claims(file) == gx.check_claims(CLAIMS)
    assert told["results"][0]["predicted_s"] == sorted(told["results"][0]["predicted_s"])


def test_options_are_for_claims_that_state_none(tmp_path, answered):
    file = tmp_path / "times.jsonl"
    file.write_text('{"time_us": 190}\n{"time_us": 190, "dtype": "fp32"}\n')
    words = ("check", "matmul", "--gpu", "h100", "--dtype", "bf16", "--size", "4096", "--claims", str(file), "--json")
    code, told = answered(*words)
    assert (code, [each["verdict"] for each in told["results"]]) == (EXIT_FAILED, ["as_known", "above_roof"])


def test_exit_code_of_claims_is_0_unless_one_is_above_a_roof_or_invalid(tmp_path, capsys):
    file = tmp_path / "claims.csv"
    for rate, dtype, code in (("1", "bf16", EXIT_OK), ("700", "bf16", EXIT_OK), ("700", "none", EXIT_FAILED)):
        file.write_text(f"gpu,op,dtype,shape,tflops\nh100,gemm,{dtype},8192,{rate}\n")
        assert main(["check", "--claims", str(file)]) == code
    file.write_text("gpu,op\n")
    assert main(["check", "--claims", str(file)]) == EXIT_UNUSABLE
    assert main(["check", "--claims", str(tmp_path / "none.csv")]) == EXIT_UNUSABLE
    assert main(["check", "--claims", str(file), "--time", "1ms"]) == EXIT_UNUSABLE
    file.write_bytes(b"x" * 20_000_001)
    assert main(["check", "--claims", str(file)]) == EXIT_UNUSABLE
    errors = capsys.readouterr().err
    assert "number of claims '0': expected 1 to 100,000" in errors
    assert "at most 20,000,000" in errors
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    assert "1: the time, or at least one of the claims, is above a roof" in " ".join(capsys.readouterr().out.split())


def test_claims_in_a_data_frame_may_lack_values():
    call = {"gpu": "h100", "op": "gemm", "dtype": "bf16"}
    frame = pd.DataFrame({**call, "shape": [4096.0, 8192.0], "ms": [0.2, None], "tflops": [None, 7]})
    assert [each["verdict"] for each in gx.check_claims(frame)["results"]] == ["as_known", "slow"]
