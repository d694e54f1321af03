"""A sweep over two axes as a map."""

import pytest

import gpuexplore.charts as chart
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.core.model import Shape
from tests.analysis.made import failed, ok

LENGTHS = (64, 128, 256)


def swept(lengths=LENGTHS, **further):
    found = []
    for m in lengths:
        for n in lengths:
            shape = Shape.of(m=m, k=64, n=n)
            rate = 1e11 if m <= n else 5e10
            for name, factor in (("numpy", 1.0), ("torch", 2.0 if m > n else 0.5)):
                found.append(ok(2 * m * 64 * n / (rate * factor), shape=shape, implementation=name, **further))
    return analyze(tuple(found))


def cells(made):
    (name,) = {layer["data"]["name"] for layer in made.to_dict()["layer"] if "data" in layer} or {
        made.to_dict()["data"]["name"]
    }
    return made.to_dict()["datasets"][name]


def test_two_axes_that_are_swept_on_their_own_make_a_map():
    square = analyze(tuple(ok(size=size) for size in LENGTHS))
    diagonal = analyze(tuple(ok(shape=Shape.of(m=size, k=64, n=size)) for size in (*LENGTHS, 512)))

    assert chart.swept_axes(swept()) == ("m", "n")
    assert chart.swept_axes(square) is None
    assert chart.swept_axes(diagonal) is None
    assert chart.swept_axes(analyze(tuple(ok(shape=Shape.of(m=m, k=64, n=64)) for m in (*LENGTHS, 512)))) is None
    with pytest.raises(ValueError, match="a map needs a sweep over two axes"):
        chart.heat_map(square)


def test_each_cell_has_the_highest_rate_and_who_reached_it():
    found = {(row["m"], row["n"]): row for row in cells(chart.heat_map(swept()))}

    assert len(found) == 9
    assert {row["line"] for row in found.values()} == {"numpy fp32", "torch fp32"}
    assert found[64, 256]["line"] == "numpy fp32"
    assert found[256, 64]["line"] == "torch fp32"
    assert found[64, 256]["value"] == pytest.approx(1e11)
    assert found[64, 256]["rate"] == "100 GFLOP/s"


def test_only_the_lines_that_are_shown_count():
    found = cells(chart.heat_map(swept(), frozenset({("torch", "fp32")})))

    assert {row["line"] for row in found} == {"torch fp32"}
    assert cells(chart.heat_map(swept(), "fp32")) == cells(chart.heat_map(swept()))


def test_its_description_names_the_best():
    assert chart.heat_map(swept()).to_dict()["description"] == (
        "Highest rate by m and n, 9 shapes; the highest is 100 GFLOP/s at m = 64, n = 64."
    )
    nothing = analyze(tuple(failed(shape=Shape.of(m=m, k=64, n=n)) for m in LENGTHS for n in LENGTHS))
    assert chart.heat_map(nothing).to_dict()["description"] == "Highest rate by m and n: nothing to draw yet."
