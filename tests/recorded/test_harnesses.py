"""Files of other harnesses: what they hold is read as far as it is known, others are called by their kind."""

import gzip
import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.charts.exports import EXPORTS, Exported, export
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Accuracy, Experiment, Options, Shape, Status
from gpuexplore.recorded.files import read_runs
from gpuexplore.store import open_store
from tests.analysis.made import ok
from tests.pages.conftest import compiler, home, page, store, texts

__all__ = ["compiler", "home", "page", "store"]  # fixtures
FILES = Path(__file__).with_name("harnesses")
PYPERF, PYTEST, NVBENCH = FILES / "pyperf_base.json", FILES / "pytest_benchmark.json", FILES / "nvbench.json"
STATE = ("benchmarks", 0, "states", 0)
GPU_TIME, SAMPLES = (*STATE, "summaries", 0, "data", 0, "value"), (*STATE, "summaries", 2, "data", 0, "value")
GONE = object()


def changed(path, *keys_and_value):
    """Return a file with one value changed, or taken away, as bytes."""
    data = deepcopy(json.loads(path.read_text()))
    *to, last, value = keys_and_value
    place = data
    for key in to:
        place = place[key]
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return json.dumps(data).encode()


def read(path):
    (run,) = read_runs(path.name, path.read_bytes())
    return run


@pytest.mark.parametrize(
    ("path", "name", "median_s", "batch", "processes"),
    [
        (PYPERF, "matmul_256", 2.00780e-5, 64, 8),
        (PYTEST, "test_matmul[256]", 2.03682e-5, 10, 1),
        (NVBENCH, "gemm[N=4096]", 1.9e-4, 512, 1),
    ],
)
def test_a_benchmark_of_another_harness_keeps_its_name_and_times_and_nothing_is_made_up(
    path, name, median_s, batch, processes
):
    run = read(path)
    (result,) = run.results
    analyzed = analyze(run.results).results[0]
    measurement = result.measurement

    assert (result.case.operation, result.case.implementation, result.case.dtype) == ("benchmark", name, "unknown")
    assert measurement.median_s == pytest.approx(median_s, rel=1e-5)
    assert (measurement.batch, len(measurement.by_process())) == (batch, processes)
    assert (measurement.first_call_s, result.accuracy) == (None, None)
    assert (analyzed.flop_per_s, analyzed.bytes_per_s, analyzed.mfu, analyzed.speedup) == (None, None, None, None)
    assert "correctness was not checked by gpuexplore" in run.origin
    assert "timed by another harness, so FLOPs, bytes" in analyze(run.results).summary.headline


def test_what_nvbench_says_of_its_gpu_and_of_caches_is_kept_and_its_means_are_no_samples():
    run = read(NVBENCH)
    (result,) = run.results
    device = result.environment.device

    assert (device.id, device.name) == ("cuda:0", "NVIDIA H100 80GB HBM3")
    assert (device.cores, device.compute_capability, device.memory_bytes) == (132, "9.0", None)
    assert (result.case.options.cache, result.measurement.ci95_s) == ("cold", None)
    assert "one value of each benchmark, no samples" in run.origin
    batch = {"tag": "nv/batch/time/gpu/mean", "data": [{"name": "value", "type": "float64", "value": "1.5e-04"}]}
    data = json.loads(NVBENCH.read_text())
    data["benchmarks"][0]["states"][0]["summaries"].append(batch)
    data["benchmarks"][0]["states"].append({"name": "N=1", "device": 0, "is_skipped": True, "skip_reason": "too small"})
    both, skipped = read_runs("x.json", json.dumps(data).encode())
    assert [(other.condition, other.median_s) for other in both.results[0].measurement.contrasts] == [("warm", 1.5e-4)]
    assert (skipped.results[0].status, skipped.results[0].reason) == (Status.SKIPPED, "too small")


def test_calibration_is_no_measurement_and_a_median_without_samples_has_no_interval():
    runs = json.loads(PYPERF.read_text())["benchmarks"][0]["runs"]
    calibrating = {"metadata": {"calibrate_loops": 64}, "warmups": [[1, 3e-3], [64, 2e-5]]}
    (several,) = read_runs("x.json", changed(PYPERF, "benchmarks", 0, "runs", [calibrating, *runs[:2]]))
    (median,) = read_runs("x.json", changed(PYTEST, "benchmarks", 0, "stats", "data", GONE))

    assert several.results[0].measurement.processes == (3, 3)
    assert median.results[0].measurement.samples_s == (2.037674739674775e-05,)
    assert "no samples" in median.origin


@pytest.mark.parametrize("name", ["x.json.gz", "x.JSON.GZ", "x.json"])
def test_a_file_that_gzip_packed_is_read_as_what_it_holds_whatever_its_suffix(name):
    assert (
        read_runs(name, gzip.compress(PYPERF.read_bytes()))[0].results
        == read_runs("x.json", PYPERF.read_bytes())[0].results
    )


def test_a_file_with_a_byte_order_mark_is_read():
    assert read_runs("x.json", b"\xef\xbb\xbf" + PYPERF.read_bytes())[0].results


@pytest.mark.parametrize("content", [gzip.compress(b"{}" * 100, mtime=0)[:-9], b"\x1f\x8bnothing"])
def test_a_gzip_file_that_is_cut_off_is_refused(content):
    with pytest.raises(InvalidInput, match=r"x\.json\.gz: not a complete gzip file"):
        read_runs("x.json.gz", content)


def test_a_small_gzip_file_that_holds_more_than_is_read_is_refused():
    with pytest.raises(InvalidInput, match="file 'over 20,000,000 bytes when unpacked': expected at most 20,000,000"):
        read_runs("x.json.gz", gzip.compress(b" " * 30_000_000))


@pytest.mark.parametrize("suffix", [".pyperf.json", ".pytest-benchmark.json"])
def test_what_was_exported_in_the_form_of_another_harness_comes_back_as_the_cases_it_was(suffix):
    shapes = tuple(Shape.of(m=size, k=size, n=size) for size in (64, 128))
    options = Options(cache="cold", threads=2)
    results = [
        replace(
            result := ok(seconds, size=size, implementation=name),
            case=replace(result.case, options=options),
            measurement=replace(result.measurement, processes=(4, 5), batch=3, per_round=2),
            accuracy=Accuracy(1e-8, 1e-7),
        )
        for size in (64, 128)
        for name, seconds in (("numba-cpu", 1e-3), ("torch", 2e-3))
    ]
    asked = Experiment("matmul", shapes, ("fp32",), ("numba-cpu", "torch"), options=options)
    content = export(suffix, Exported(asked, analyze(results), None))
    (run,) = read_runs(f"lab{suffix}", content)
    earlier = json.loads(content)  # before 0.2 the name alone said which case it is
    for benchmark in earlier["benchmarks"]:
        for about in (benchmark.get("metadata", {}), benchmark.get("extra_info", {})):
            about.pop("gpuexplore_case", None)
    (old,) = read_runs("old.json", json.dumps(earlier).encode())

    facts = [(result.case, result.measurement.median_s, result.measurement.batch) for result in results]
    assert [(result.case, result.measurement.median_s, result.measurement.batch) for result in run.results] == facts
    assert [result.accuracy for result in run.results] == [Accuracy(1e-8, 1e-7)] * 4
    assert "not checked" not in run.origin
    assert [replace(result.case, options=options) for result in old.results] == [case for case, *_ in facts]
    assert "correctness was not checked by gpuexplore" in old.origin


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (PYPERF.read_bytes()[:400], "x.json: invalid JSON at line 1"),
        (changed(PYPERF, "version", "2.0"), "version of pyperf's format '2.0': expected 1.0"),
        (changed(PYPERF, "benchmarks", []), "benchmarks: the file has none"),
        (changed(PYPERF, "benchmarks", 0, "runs", []), "matmul_256: samples '()'"),
        (changed(PYPERF, "benchmarks", 0, "runs", 1, "values", 0, -2.0), "values '-2.0': expected positive"),
        (changed(PYPERF, "benchmarks", 0, "runs", 1, "values", 0, float("nan")), "number 'NaN'"),
        (changed(PYPERF, "benchmarks", 0, "metadata", "unit", "byte"), "unit 'byte': expected second"),
        (changed(PYPERF, "metadata", "loops", 0), "loops '0': expected whole numbers from 1"),
        (changed(PYTEST, "benchmarks", 0, "stats", "data", []), "test_matmul[256]: data '[]'"),
        (changed(PYTEST, "benchmarks", 0, "stats", "data", 3, "fast"), "data 'fast'"),
        (changed(PYTEST, "benchmarks", 0, "name", 7), "name of benchmark 1 '7': expected texts"),
        (changed(PYTEST, "machine_info", "node"), "machine_info 'node': expected objects"),
        (changed(NVBENCH, *GPU_TIME, "nan"), "gemm[N=4096]: nv/cold/time/gpu/mean 'nan'"),
        (changed(NVBENCH, *SAMPLES, "0"), "sample_size '0.0'"),
        (changed(NVBENCH, *STATE, "device", 4), "device '4': expected 0"),
        (changed(NVBENCH, *STATE, "summaries", []), "times 'none': expected nv/cold/time/gpu/mean"),
        (b'{"context": {}, "benchmarks": [{"name": "a", "real_time": 1}]}', "x.json is JSON of Google Benchmark"),
        (b'{"results": [{"command": "ls", "times": [1]}]}', "x.json is JSON of hyperfine"),
        (b'[{"benchmark": "a", "primaryMetric": {}}]', "x.json is JSON of JMH"),
        (b'{"traceEvents": []}', "x.json is a Chrome trace, as torch.profiler writes it: `gpuexplore trace FILE`"),
        (b'{"commit_hash": "a", "results": {}}', "x.json is JSON of asv"),
        (b'{"cells": [], "nbformat": 4}', "its keys are cells, nbformat"),
    ],
)
def test_what_a_file_cannot_hold_or_is_instead_is_named(content, named):
    with pytest.raises(InvalidInput) as refused:
        read_runs("x.json", content)

    assert named in str(refused.value)


@pytest.mark.parametrize(
    ("first", "named"),
    [
        ("N,Triton (GB/s),Torch (GB/s)", "is a Triton perf_report CSV; it has one rate per size, without samples"),
        ("M,N,K,cuBLAS (TFLOPS),Triton (TFLOPS)", "is a Triton perf_report CSV"),
        ("operation,m,size,median_s", "is CSV exported by gpuexplore; import its JSON"),
        ('"ID","Process ID","Process Name"', "is CSV of Nsight Compute"),
        ("a,b", "file type '.csv': expected .json, .jsonl"),
    ],
)
def test_a_table_is_called_by_its_kind(first, named):
    with pytest.raises(InvalidInput, match=named.replace("(", "\\(")):
        read_runs("x.csv", f"{first}\n1,2,3\n".encode())


def test_the_commands_take_such_files_keep_what_can_be_read_and_exit_with_2_for_another(capsys, home):
    other = FILES / "triton_perf_report.csv"

    assert main(["import", str(PYPERF), str(other), str(NVBENCH)]) == EXIT_UNUSABLE
    said = capsys.readouterr()
    assert "pyperf: matmul_256  (pyperf_base.json of pyperf; correctness was not checked by gpuexplore)" in said.out
    assert "nvbench: gemm[N=4096]" in said.out
    assert "triton_perf_report.csv is a Triton perf_report CSV" in said.err
    assert main(["compare", str(PYPERF), str(FILES / "pyperf_new.json")]) == EXIT_OK
    assert "matmul_256  20.1 µs  16.0 µs  0.796×  0.790× to 0.808×  faster" in capsys.readouterr().out
    assert main(["compare", str(PYPERF), str(other)]) == EXIT_UNUSABLE
    with open_store() as kept:
        assert len(kept.listed()) == 2


@pytest.mark.parametrize("path", [PYPERF, PYTEST, NVBENCH])
def test_pages_and_files_show_such_a_run_with_what_is_unknown_of_it(page, store, path):
    app = page("runs").file_uploader[0].upload(path.name, path.read_bytes(), "application/json").run()
    run_id = store.listed()[0].id
    shown = page("benchmark", run=run_id)
    run = store.load(run_id)

    assert "Imported: " in texts(app.success)
    assert not [each.value for each in (*shown.exception, *shown.error)]
    assert "timed by another harness, so FLOPs, bytes" in texts(shown.markdown)
    assert "correctness was not checked by gpuexplore" in texts(shown.caption)
    assert not page("compare", a=run_id, b=run_id).exception
    analysis = analyze(run.results)
    assert all(export(suffix, Exported(run.experiment, analysis, run)) for suffix in EXPORTS)
    (again,) = read_runs("x.json", export(".json", Exported(run.experiment, analysis, run)))
    assert again.results == run.results
