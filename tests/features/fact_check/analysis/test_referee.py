"""The referee of claims: honest rows are never accused, lies always are, and no row stops the others."""

import json
from collections import Counter

import pytest

from gpuexplore.core.dtypes import format_named
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.fact_check.analysis import referee
from gpuexplore.features.fact_check.analysis.referee import VERDICTS, rows_of, verdicts_on
from gpuexplore.hardware import ACCELERATORS
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.recorded.published import published_measurements
from tests.features.calibrated import one_calibration, shipped

PRODUCT = {"gpu": "h100", "operation": "matmul", "dtype": "bf16", "shape": "8192"}
TENSOR = {"fp8": "fp8_tensor", "fp16": "fp16_tensor", "bf16": "bf16_tensor", "tf32": "tf32_tensor"}
RIGID = [  # no clock of theirs is above the one of the datasheet
    row for row in ACCELERATORS if row.key.startswith(("v100", "a100", "a30", "t4", "mi2", "mi3", "l40", "l4"))
]


@pytest.fixture(autouse=True)
def calibrated_once(monkeypatch):
    monkeypatch.setattr(referee, "calibrate", shipped)


def judged(*rows, **defaults):
    found = verdicts_on(rows, defaults)
    assert found["claims"] == len(rows) == sum(found[verdict] for verdict in VERDICTS)
    return found["results"]


def verdict_on(row=None, **changed):
    (result,) = judged({**PRODUCT, **(row or {}), **changed})
    return result


def test_no_published_measurement_is_accused():
    rows = [
        {
            "gpu_key": row.spec_key,
            "operation": row.operation,
            "dtype": row.dtype,
            "shape": str(row.shape).replace(",", ";"),
            "time_s": repr(row.time_s),
            "timing": row.timing,
            "conditions": row.conditions,
            "source": row.url,
        }
        for row in published_measurements()[::5]
    ]

    found = verdicts_on(rows, {})

    assert (found["above_roof"], found["invalid"], found["unknown"]) == (0, 0, 0)
    assert found["as_known"] > 0.9 * found["claims"] > 300


@pytest.mark.parametrize("times", [1.1, 1.5, 2.0])
def test_every_rate_above_the_dense_peak_of_a_gpu_without_a_higher_clock_is_found(times):
    rows = [
        {"gpu": row.key, "op": "gemm", "precision": dtype, "shape": 8192, "TFLOP/s": row.rates[column] * times / 1e12}
        for row in RIGID
        for dtype, column in TENSOR.items()
        if column in row.rates
    ]

    assert len(rows) > 40
    assert Counter(result["verdict"] for result in judged(*rows)) == {"above_roof": len(rows)}


@pytest.mark.parametrize("times", [1.1, 2.0])
@pytest.mark.parametrize("operation", ["copy", "triad", "softmax"])
def test_every_time_under_the_bandwidth_roof_far_beyond_the_cache_is_found(operation, times):
    shape = operation_named(operation).shape_of_size(2**32 if operation != "softmax" else 2**16)
    moved = operation_named(operation).byte_count(shape, format_named("fp32"))
    rows = [
        {
            "device": row.key,
            "operation": operation,
            "dtype": "float32",
            "shape": dict(shape.axes),
            "latency_ms": f"{moved / row.bandwidth_bytes_per_s / times * 1e3:.4g}",
        }
        for row in ACCELERATORS
        if row.bandwidth_bytes_per_s and row.key not in ("gtx-1650", "rtx-3080-10gb")
    ]

    found = judged(*rows)

    assert {(result["verdict"], result["roof"]) for result in found} == {("above_roof", "memory")}


@pytest.mark.parametrize(
    ("row", "explained", "unexplained"),
    [
        ({"tflops": 1900}, ["in fp8 (1.98 PFLOP/s", "with 2:4 sparsity, its zeros counted (1.98"], ["in fp16"]),
        ({"tflops": 5000}, [], ["in fp8", "sparsity"]),
        ({"dtype": "fp32", "tflops": 400}, ["in tf32 (495", "in bf16 (989"], ["as three products", "sparsity"]),
        ({"dtype": "fp32", "tflops": 150}, ["in tf32", "as three products in tf32 (165 TFLOP/s"], []),
        ({"gpu": "rtx-3090", "dtype": "fp16", "tflops": 140}, ["with fp16 accumulation (142"], ["in bf16"]),
        ({"gpu": "t4", "dtype": "fp16", "tflops": 120}, ["in int8 (130"], ["sparsity"]),
        (
            {"operation": "attention", "shape": "b=2;h=16;s=16384;d=128", "tflops": 1280},
            ["with causal=1 (989"],
            ["constant"],
        ),
        (
            {"operation": "copy", "dtype": "fp32", "shape": "n=1000000000", "time": "1.3 ms"},
            ["in bf16 (1.18 ms", "with constant inputs, which are not read from memory (1.18 ms"],
            ["in fp8", "sparsity"],
        ),
        (
            {"operation": "sum", "dtype": "fp32", "shape": "m=5000,n=4000", "time_us": 15, "cache": "cold"},
            ["with arrays that a cache kept from the call before (8.24 µs"],
            [],
        ),
    ],
)
def test_a_claim_above_the_roof_is_explained_by_what_would_explain_it_alone(row, explained, unexplained):
    result = verdict_on(row)

    said = "; ".join(result["possible_with"])
    assert result["verdict"] == "above_roof"
    assert result["ratio"] > 1
    assert all(words in said for words in explained), said
    assert not any(words in said for words in unexplained), said
    assert ("no other precision or data would explain it" in result["reason"]) == (not said)


CAUSAL = {"operation": "attention", "shape": "b=2,h=16,s=16384,d=128", "time_ms": 3.4}
COPIED = {"operation": "copy", "dtype": "fp32", "shape": "n=1000000000"}


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ({"time_us": 700}, "above_roof"),
        ({"time_us": 700, "sparsity": "2:4"}, "as_known"),
        ({"gpu": "t4", "dtype": "fp16", "tflops": 120, "sparsity": True}, "above_roof"),
        (CAUSAL, "above_roof"),
        ({**CAUSAL, "mask": "causal"}, "as_known"),
        ({**CAUSAL, "is_causal": False}, "above_roof"),
        ({"tflops": 1060}, "as_known"),  # 989 at 1,830 MHz, and the driver allows 1,980
        ({"tflops": 1090}, "above_roof"),
        ({"gpu": "rtx-3090", "tflops": 83}, "as_known"),  # 71 at its boost clock
        ({"gpu": "a100", "tflops": 325}, "above_roof"),  # of 312
        ({"gpu": "a100", "time": "3.5ms"}, "as_known"),  # 3.52 ms at the peak, rounded
        ({"gpu": "a100", "time": "3.400ms"}, "above_roof"),
        ({**COPIED, "gpu": "a100 40gb", "gb_s": 1900}, "above_roof"),
    ],
)
def test_what_is_stated_a_clock_above_the_rated_one_and_rounding_count(row, verdict):
    assert verdict_on(row)["verdict"] == verdict


def test_a_reason_says_what_was_counted_of_which_gpu_and_leaves_out_commands_to_a_terminal():
    sparse = verdict_on(time_us=700, sparsity="2:4")

    assert sparse["ratio"] == pytest.approx(0.734, abs=1e-3)
    assert "claimed with 2:4 sparsity" in sparse["reason"]
    assert "compare with random data" in verdict_on(time_us=1500, data="zeros")["reason"]
    assert "above the datasheet's peak" in verdict_on(tflops=1060)["reason"]
    assert verdict_on(COPIED, gpu="NVIDIA GeForce RTX 3080", gb_s=900)["gpu"] == "GeForce RTX 3080 12GB"
    assert verdict_on(time="1ms", gpu="\x1b[31mred")["reason"].isprintable()


@pytest.mark.parametrize(
    "row",
    [
        {"time": "1.5 ms"},
        {"latency_us": 1500},
        {"Time (ms)": "1.5"},
        {"median_time_s": 0.0015},
        {"TFLOP/s": 733.0},
        {"tflops": "733"},
        {"rate": "733 TFLOPS"},
        {"GFLOP/s": 733007.75},
        {"time_s": 0.0015, "bandwidth_gbs": 9000},  # of which some say what caches moved as well
        {"time_s": "0.0015", "rate": ""},
    ],
)
def test_columns_are_read_as_people_call_them(row):
    assert verdict_on(row)["time_s"] == pytest.approx(1.5e-3, rel=1e-3)


@pytest.mark.parametrize(
    "shape", ["m=8192;k=8192;n=8192", "m=8192,k=8192,n=8192", "8192", 8192, 8192.0, {"m": 8192, "k": 8192, "n": 8192}]
)
def test_shapes_are_read_as_people_write_them(shape):
    assert verdict_on(shape=shape, time_ms=1.5)["roof_time_s"] == pytest.approx(1.027e-3, rel=1e-3)
    assert verdict_on(shape="", m=8192, k="8192.0", n=8192, time_ms=1.5)["verdict"] == "as_known"


@pytest.mark.parametrize(
    ("row", "verdict", "said"),
    [
        ({"time_us": "nan"}, "invalid", "time 'nan': expected 1ns"),
        ({"time_us": float("inf")}, "invalid", "time 'inf': expected 1ns"),
        ({"tflops": -4}, "invalid", "rate '-4 TFLOP/s': expected FLOP/s and B/s"),
        ({"time_us": 0}, "invalid", "time '0 us': expected 1ns"),
        ({"time_us": 10**400}, "invalid", "at most 200"),
        ({"time": "1ms", "shape": str(10**18)}, "invalid", "m of matmul"),
        ({"time": "1ms", "shape": "m=8"}, "invalid", "shape of matmul 'm=8'"),
        ({"time": "1ms", "gpu": "H1"}, "invalid", "near: H100 SXM5 80GB"),
        ({"time": "1ms", "gpu": None}, "invalid", "no gpu"),
        ({"time": "1ms", "gpu": "x" * 300}, "invalid", "at most 200"),
        ({"time": "1ms", "dtype": "int9"}, "invalid", "dtype 'int9': expected fp64"),
        ({"time": "1ms", "calls": "one"}, "invalid", "calls 'one': expected graph"),
        ({"time": "1ms", "sparsity": "a bit"}, "invalid", "sparsity 'a bit': expected 2:4"),
        ({"time": "1ms", "mask": "odd"}, "invalid", "mask 'odd': expected causal"),
        ({"flops": 3}, "invalid", "no time and no rate"),
        ({"time": 0.0015}, "unknown", "time '0.0015' has no unit"),
        ({"time": "1ms", "operation": "fft"}, "unknown", "operation 'fft' is unknown: expected matmul"),
        ({"time": "1s", "gpu": "t4", "dtype": "fp8"}, "unknown", "Tesla T4 has none for it"),
        ({"time": "1s"}, "slow", "times as long as the longest of these: nine in ten queued calls"),
        ({"time": "1.4ms"}, "as_known", "nine in ten queued calls are predicted"),
        ({"time": "1.4ms", "timing": "graph"}, "as_known", "nine in ten calls in a CUDA graph"),
    ],
)
def test_a_row_gets_a_verdict_with_a_sentence_and_stops_no_other(row, verdict, said):
    results = judged({**PRODUCT, **row, "name": "theirs"}, {**PRODUCT, "time_ms": 1.5}, 7, InvalidInput("line 3"))

    assert [result["verdict"] for result in results] == [verdict, "as_known", "invalid", "invalid"]
    assert said in results[0]["reason"]
    assert results[0]["name"] == "theirs"
    json.dumps(results, allow_nan=False)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_huge_shapes_take_no_longer_than_others(operation):
    shape = dict.fromkeys(OPERATIONS[operation].axes, 2**40)
    (result,) = judged({**PRODUCT, "operation": operation, "dtype": "fp32", "shape": shape, "time": "1s"})

    assert result["verdict"] in ("above_roof", "invalid")


def test_text_of_each_kind_is_read_alike():
    rows = [{**PRODUCT, "time_us": "1500"}, {**PRODUCT, "time_us": "2000"}]
    table = "\r\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows), "", ""])

    for text in (
        table,
        "\ufeff" + table,
        table.replace(",", ";"),
        table.replace(",", "\t"),
        json.dumps(rows),
        json.dumps(rows, indent=1),
        "\n\n".join(map(json.dumps, rows)),
    ):
        assert list(rows_of(text)) == rows
    assert list(rows_of(json.dumps(rows[0], indent=1))) == rows[:1]


def test_a_row_that_is_none_is_an_error_in_its_place():
    found = list(rows_of('{"gpu": "h100"}\n{bad\n{"gpu": "a100"}'))
    assert [str(each) for each in found] == ["{'gpu': 'h100'}", "line '{bad': expected JSON", "{'gpu': 'a100'}"]
    found = list(rows_of("gpu,op\nh100\na100,copy\n"))
    assert [str(found[0]), found[1]] == ["line 2 '1 cells': expected 2 as in line 1", {"gpu": "a100", "op": "copy"}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpu,op,gpu\n1,2,3", "columns repeat: gpu"),
        ("[1, 2", "no claims: invalid JSON"),
        ("[" * 100_000, "no claims: invalid JSON"),
        ('{"traceEvents": []}', "`gpuexplore trace FILE` reads it"),
        (f'gpu,op\n"{"x" * 200_000}",2', "line 2 is not CSV: field larger"),
    ],
)
def test_a_file_of_no_use_is_a_sentence(text, said):
    with pytest.raises(InvalidInput) as error:
        list(rows_of(text))
    assert said in str(error.value)
