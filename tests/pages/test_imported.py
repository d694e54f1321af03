"""Runs that were measured elsewhere: whose they are, what is shown of where, and false numbers among them."""

import json
from dataclasses import replace

import pytest

from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.utilization.best_results import is_plausible
from gpuexplore.analysis.utilization.utilization import default_peak
from gpuexplore.charts.exports import Exported, export
from gpuexplore.core.model import Accuracy, Experiment, Shape
from gpuexplore.hardware.accelerators import peaks_of
from gpuexplore.hardware.specs import accelerator_named
from gpuexplore.jobs.run_sources import keep_run
from gpuexplore.recorded.files import ReadRun, read_runs
from gpuexplore.store import Wanted
from tests.analysis.made import ok
from tests.pages.conftest import OWNER, texts
from tests.recorded.test_files import RESULTS, report

__all__ = ["report"]  # a fixture
SIZE = 1024


@pytest.fixture
def sent(store):
    """Return how to keep a product of matrices that somebody sent, at a multiple of its device's peak."""

    def kept(times_peak):
        asked = Experiment("matmul", (Shape.of(m=SIZE, k=SIZE, n=SIZE),), ("fp32",), ("numpy",))
        peak = default_peak(ok(1.0, size=SIZE, implementation="numpy"))
        result = ok(2 * SIZE**3 / (times_peak * peak.flop_per_s), size=SIZE, implementation="numpy")
        results = [replace(result, accuracy=Accuracy(1e-8, 1e-7))]
        (run,) = read_runs("report.json", export(".json", Exported(asked, analyze(results), None)))
        return keep_run(store, run, "sent:somebody", origin="sent by Ada, measured on a made-up processor").id

    return kept


def test_a_file_dropped_on_the_page_runs_is_the_visitors_own(page, store, report):
    app = page("runs").file_uploader[0].upload("lab.json", json.dumps(report).encode(), "application/json").run()

    (run,) = store.listed()
    assert "Imported: Before the fan" in texts(app.success)
    assert run.owner == OWNER
    assert store.load(run.id).results == RESULTS
    assert run.origin == "lab.json, measured on a made-up processor"
    assert [found.id for found in store.listed(Wanted(owner=OWNER))] == [run.id]


def test_a_run_that_was_sent_shows_where_it_comes_from_and_its_device(page, sent):
    app = page("benchmark", run=sent(0.5))

    assert "imported" in texts(app.markdown)
    assert "sent by Ada, measured on a made-up processor · " in texts(app.caption)
    assert "far above the measured peak" not in texts(app.markdown)


def test_a_time_ten_times_above_the_peak_is_called_wrong_and_ranked_nowhere(page, sent):
    run_id = sent(10.0)
    app = page("benchmark", run=run_id)

    assert "numpy in fp32 is far above the measured peak, so the measurement is wrong" in texts(app.markdown)
    assert "excluded from rankings and comparisons" in texts(app.markdown)
    assert "1000 % of the measured peak" in app.dataframe[-1].value["Remarks"][0]
    (row,) = page("runs").dataframe[0].value.to_dict("records")
    assert (row["Best rate"], row["Quality"]) == ("—", "imported")


@pytest.mark.parametrize("named", [{"spec_key": "h100-pcie-80gb"}, {"name": "NVIDIA H100 PCIe"}])
def test_a_gpu_that_claims_more_than_the_table_gives_it_is_judged_by_the_table(store, named):
    row = accelerator_named("NVIDIA H100 PCIe")
    most = {(peak.dtype, peak.unit): peak.flop_per_s for peak in peaks_of(row)}
    rate = 20 * most["fp32", "vector"]
    claimed = ok(2 * SIZE**3 / rate, size=SIZE, implementation="torch", on="cuda:0")
    device = replace(claimed.environment.device, bandwidth=None, **named)
    device = replace(device, peaks=tuple(replace(peak, flop_per_s=1e18) for peak in peaks_of(row)))
    result = replace(claimed, environment=replace(claimed.environment, device=device))
    asked = Experiment("matmul", (Shape.of(m=SIZE, k=SIZE, n=SIZE),), ("fp32",), ("torch",), ("cuda:0",))

    run = keep_run(store, ReadRun("", asked, (result,), ""), "sent:somebody", origin="sent by Eve")
    (kept,) = store.load(run.id).results
    assert is_plausible(result)
    assert not is_plausible(kept)
