"""Charts made with less copying are the charts that Altair makes."""

from dataclasses import replace

import pytest

import gpuexplore.charts as chart
from gpuexplore.charts.quick_altair import quick_altair, unchecked
from gpuexplore.recorded import recordings, run_id_of
from gpuexplore.ui.run import live_charts
from gpuexplore.ui.shared import charts
from tests.charts.test_charts import beside, sweep, swept
from tests.measure.made_block import block_run

RECORDED = run_id_of(recordings()[0].name, "matmul")
TIMES = {"times": "fp32:1.7327,bf16:3.874", "peaks": "fp32:8e12,bf16:16e12"}
KERNEL = {"op": "matmul", "gpu": "t4", "shape": "512"}
PAGES = [  # with how many charts at least
    ("what-if", {**TIMES, "op": "linear", "shape": "notebook-linear", "device": "t4", "gpus": "l4"}, 5),
    ("roofline", {"device": "h100-sxm5-80gb"}, 1),
    ("atlas", {"op": "matmul", "dtype": "fp16,fp32", "gpus": "t4,v100-sxm2-16gb"}, 1),
    *(("which-gpu", {"op": "matmul", "by": by}, 1) for by in ("time", "energy", "memory", "price")),
    ("kernels", {**KERNEL, "tab": "interpreter"}, 2),
    ("kernels", {**KERNEL, "tab": "launch"}, 1),
    ("kernels", {**KERNEL, "tab": "ladder"}, 2),
    ("memory", {"gpu": "t4"}, 1),
    ("model", {"gpu": "t4", "model": "gpt2"}, 3),
    ("tensors", {"expression": "x = 4x4; x.t()"}, 1),
    ("transfers", {}, 2),
    ("benchmark", {"run": RECORDED}, 2),
]


@pytest.mark.parametrize(("name", "query", "count"), PAGES)
def test_charts_of_a_page_are_those_of_altair(name, query, count, page, monkeypatch):
    made, spec_of = [], charts.spec_of

    def both(build):
        quick = spec_of(build)
        with monkeypatch.context() as patched:
            patched.setattr(charts, "quick_altair", unchecked)
            made.append((quick, spec_of(build)))
        return quick

    monkeypatch.setattr(charts, "spec_of", both)
    monkeypatch.setattr(live_charts, "spec_of", both)
    monkeypatch.setattr("gpuexplore.features.machine_code.ui.interpreter.kept_block", lambda _: block_run(pitch=8))
    assert not page(name, **query).exception

    assert len(made) >= count
    for quick, plain in made:
        assert quick == plain


@pytest.mark.parametrize("draw", [chart.time, chart.speedup])
@pytest.mark.parametrize(
    "analysis",
    [
        swept(),
        swept(sizes=(64,)),
        beside(),
        beside(tuple(replace(each, provisional=place % 2 == 0) for place, each in enumerate(sweep()))),
    ],
    ids=["sweep", "one size", "recorded", "first pass"],
)
def test_charts_of_a_run_are_those_of_altair(draw, analysis):
    with unchecked():
        plain = draw(analysis).to_dict(validate=False)
        with quick_altair():
            assert draw(analysis).to_dict(validate=False) == plain
