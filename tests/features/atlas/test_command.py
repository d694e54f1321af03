"""`gpuexplore atlas`: what was measured, by whom and under which licence, and GPUs ranked for a call."""

import csv
import io

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.features.atlas.analysis import citations, points
from gpuexplore.features.atlas.atlas_command import MOST_ROWS, _citation_words, _csv_text
from tests.cli.conftest import answered, home
from tests.features.calibrated import one_calibration

WHICH = ("atlas", "matmul", "--which", "--size", "8192", "--dtype", "fp16")


def printed(capsys, *words):
    assert main(words) == EXIT_OK
    return capsys.readouterr().out


def test_without_an_operation_it_counts_what_there_is_and_cites_every_source(capsys):
    told = printed(capsys, "atlas")

    assert "Tesla T4" in told
    for citation in citations(points()):
        assert f"- {_citation_words(citation)}" in told
    assert "NeuSight: S. Lee, A. Phanishayee, D. Mahajan" in told
    assert "; MIT; https://github.com/sitar-lab/NeuSight" in told


def test_counts_add_up(answered):
    code, told = answered("atlas", "--json")

    assert code == EXIT_OK
    for part in ("operations", "gpus", "sources"):
        assert sum(row["points"] for row in told[part]) == len(points())
    triads = {"operation": "triad", "points": len(points("triad")), "operations": ["triad"]}
    assert any(triads.items() <= row.items() for row in told["operations"])


def test_few_measurements_are_all_in_the_table(capsys):
    told = printed(capsys, "atlas", "triad")

    assert told.count("BabelStream of the University of Bristol\n") == 4
    assert "more with --json" not in told
    assert "UoB-HPC: performance-portability" in told


def test_of_many_the_table_has_the_fastest_of_each_gpu_and_dtype_and_says_how_many_are_left(capsys):
    table, _, _ = printed(capsys, "atlas", "linear", "--gpu", "t4,h100-sxm5-80gb").partition("\nSources:")
    found = points("linear", ["t4", "h100-sxm5-80gb"])
    kinds = {(point.device.title, point.dtype) for point in found}

    assert len(table.splitlines()) == 1 + len(kinds) + 1
    assert f"{len(found) - len(kinds):,} more with --json or --csv" in table


def test_json_has_every_measurement_with_its_licence_and_link(answered):
    code, told = answered("atlas", "linear", "--dtype", "fp8", "--json")

    assert code == EXIT_OK
    assert len(told["points"]) == len(points("linear", dtypes=["fp8"])) > MOST_ROWS
    point = told["points"][0]
    assert set(point["shape"]) == {"b", "d", "k"}
    assert (point["licence"], point["origin"], point["calls"]) == ("Apache-2.0", "published", "graph")
    assert point["url"].startswith("https://github.com/ai-dynamo/aiconfigurator/")
    assert [source["source"] for source in told["sources"]] == ["AIConfigurator"]


def test_csv_has_the_same_rows_and_a_spreadsheet_computes_nothing_of_it(capsys):
    rows = list(csv.DictReader(io.StringIO(printed(capsys, "atlas", "softmax", "--gpu", "t4", "--csv"))))
    found = points("softmax", ["t4"])

    assert [float(row["time_s"]) for row in rows] == [point.time_s for point in found]
    assert {row["run"] for row in rows} == {""}
    assert rows[0]["shape"] == str(found[0].shape)

    text = _csv_text([{"gpu": "=HYPERLINK(1)", "time_s": -1.5, "url": None}])

    assert text == "gpu,time_s,url\n'=HYPERLINK(1),-1.5,\n"


def test_one_source_can_be_asked_for(answered):
    told = answered("atlas", "vector_add", "--source", "GPUexplore", "--json")[1]

    assert {point["origin"] for point in told["points"]} == {"recorded"}
    runs = {f"recorded-nvidia-{file}-vector_add" for file in ("h100-memory", "h200-vector_add", "h200-memory")}
    assert {point["run"] for point in told["points"]} == runs


def test_nothing_measured_is_said_and_no_failure(capsys):
    assert main(("atlas", "cnn_step")) == EXIT_OK
    assert "`gpuexplore predict` gives a prediction" in capsys.readouterr().err
    assert main(("atlas", "cnn_step", "--csv")) == EXIT_OK
    assert capsys.readouterr().out == ""


def test_gpus_are_ranked_and_it_is_said_what_is_measured_and_what_is_asked_for_it(capsys):
    told = printed(capsys, *WHICH, "--gpu", "rtx-3090,l40,t4")
    rows = [line for line in told.splitlines() if line.startswith(("GeForce", "L40", "Tesla"))]

    assert [row.split("  ")[0] for row in rows] == ["L40", "GeForce RTX 3090", "Tesla T4"]
    assert rows[1].endswith("published")
    assert rows[0].endswith("predicted")
    assert "0.15 Akash" in rows[2]
    assert "- Akash, 2026-09-20, a marketplace: starting at: https://akash.network/pricing/gpus/" in told
    assert "cuBLAS benchmark of Fukushima Lab: Fukushima Lab: cuBLAS_benchmark; MIT" in told
    assert "384 MiB of arrays" in told
    assert told.splitlines()[1].endswith("time is")


def test_this_machines_cpu_can_be_ranked_too_and_nothing_is_cited_where_all_is_predicted(answered, capsys):
    assert "Sources:" not in printed(capsys, *WHICH, "--gpu", "l4")
    code, told = answered("atlas", "matmul", "--which", "--size", "512", "--gpu", "cpu,t4", "--json")

    assert code == EXIT_OK
    assert {choice["spec_key"] for choice in told["choices"]} == {None, "t4"}
    assert all(choice["time_s"] > 0 for choice in told["choices"])


@pytest.mark.parametrize(("by", "first"), [("time", "l40"), ("energy", "t4"), ("memory", "l40"), ("price", "rtx-3090")])
def test_what_it_ranks_by_can_be_chosen(by, first, answered):
    code, told = answered(
        *WHICH, "--gpu", "rtx-3090,l40,t4", "--by", by, "--price", "t4=9,l40=9,rtx-3090=0.01", "--json"
    )

    assert code == EXIT_OK
    assert told["choices"][0]["spec_key"] == first
    assert {choice["price_source"] for choice in told["choices"]} == {None}
    assert told["choices"][0]["shape"] == {"m": 8192, "k": 8192, "n": 8192}


def test_without_gpus_those_that_were_measured_or_have_a_price_are_ranked(capsys):
    told = printed(capsys, *WHICH, "--csv")
    rows = list(csv.DictReader(io.StringIO(told)))

    assert len(rows) > MOST_ROWS
    assert {"mi100", "rtx-4080", "t4"} <= {row["spec_key"] for row in rows}
    assert f"{len(rows) - MOST_ROWS} more with --json or --csv" in printed(capsys, *WHICH)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fft", "operation 'fft': expected matmul"),
        ("matmul --gpu Abacus", "gpu 'Abacus': expected names and keys"),
        ("matmul --gpu ,", "gpu ',': expected names and keys"),
        ("matmul --dtype fp4", "dtype 'fp4': expected fp64"),
        ("matmul --dtype ,", "dtype ',': expected fp64"),
        ("matmul --source arXiv", "source 'arXiv': expected NeuSight"),
        ("matmul --source=", "source '': expected a value"),
        ("matmul --size 64", "--size needs --which"),
        ("matmul --by time", "--by needs --which"),
        ("matmul --price t4=1", "--price needs --which"),
        ("--which --size 64", "operation '': expected matmul"),
        ("matmul --which", "no size and no shape"),
        ("matmul --which --size 64,128", "2 shapes: GPUs are ranked for one"),
        ("matmul --which --size x", "size 'x'"),
        ("matmul --which --size 64 --by beauty", "order 'beauty': expected time, energy, memory, price"),
        ("matmul --which --size 64 --price t4", "price 't4': expected devices of the table by their key"),
        ("matmul --which --size 64 --price t5=1", "price 't5=1'"),
        ("matmul --which --size 64 --price t4=0", "price 't4=0': expected numbers from"),
        ("matmul --which --size 64 --price t4=nan", "price 't4=nan'"),
        ("matmul --which --size 64 --source NeuSight", "--source cannot be combined with --which"),
        ("softmax --which --size 64 --dtype fp9", "dtype 'fp9'"),
    ],
)
def test_what_cannot_be_used_is_named(words, message, capsys):
    assert main(["atlas", *words.split()]) == EXIT_UNUSABLE
    told = capsys.readouterr()
    assert message in told.err
    assert told.out == ""
