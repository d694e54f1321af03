"""Whatever shows a run tells the same figures: one analysis, and every reader gets it.

Random results, choices, custom peaks and recordings beside; then the table of the page, the tooltips of every chart,
the headline, JSON, CSV, Parquet, the table of the command line and `Outcome` are compared.
"""

import csv
import json
from functools import partial
from io import BytesIO, StringIO
from math import isnan

import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import gpuexplore.charts as chart
from gpuexplore.analysis.model import Comparison, Context
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.json_report import rows, run_report
from gpuexplore.analysis.utilization.best_results import baselines
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.api import Outcome
from gpuexplore.charts.exports import Exported, export
from gpuexplore.charts.points import TOOLTIPS
from gpuexplore.cli.run_report import _table_row
from gpuexplore.core.model import Bandwidth, Experiment, Flag, Peak, Shape, Status
from gpuexplore.core.units import UNKNOWN, format_percent, format_ratio
from gpuexplore.ui.run.table import shown_row
from tests.analysis.made import custom, failed, ok
from tests.unchanged import heavy

PHASES = (Phase.explicit, Phase.generate)  # shrinking would draw charts for minutes
CHARTS = (chart.time, chart.speedup, partial(chart.share, by_memory=False), chart.throughput, chart.bandwidth)
SIZES, DTYPES, IMPLEMENTATIONS = (30, 600), ("fp32", "bf16"), ("numpy", "torch")
EXPERIMENT = Experiment("matmul", tuple(Shape.of(m=n, k=n, n=n) for n in SIZES), DTYPES, IMPLEMENTATIONS)
FLAGS = st.lists(st.sampled_from([Flag("noisy", "IQR 20 %"), Flag("contended", "others ran"), Flag("cold", "flushed")]))
PEAKS = [Peak(dtype, "matrix", 3e12, "own", "me") for dtype in DTYPES]
CUSTOM = custom(*PEAKS, bandwidth=Bandwidth(7e10, "own", "me"))


@st.composite
def results_of(draw, on="cpu"):
    """Return a result for each case of the experiment: measured at some time, or failed."""
    found = []
    for case in EXPERIMENT.cases():
        about = {"shape": case.shape, "dtype": case.dtype, "implementation": case.implementation, "on": on}
        seconds = draw(st.one_of(st.none(), st.floats(1e-7, 1e-1)))
        status = draw(st.sampled_from([Status.SKIPPED, Status.INCORRECT, Status.CANCELLED]))
        found.append(ok(seconds, flags=draw(FLAGS), **about) if seconds else failed(status, "a reason", **about))
    return found


COMPARISONS = st.builds(
    Comparison, st.sampled_from([None, *baselines(EXPERIMENT)]), st.sampled_from([None, *PEAK_SOURCES])
)
CONTEXTS = st.builds(
    Context,
    st.sampled_from([{}, CUSTOM]),
    st.just(()),
    st.one_of(st.just(()), results_of().map(tuple)),
)


@heavy("gpuexplore.operations.*")
@pytest.mark.long
@settings(max_examples=20, deadline=None, phases=PHASES)
@given(results_of(), COMPARISONS, CONTEXTS)
def test_every_reader_tells_the_same(results, comparison, context):
    analysis = analyze(results, comparison, context)
    flat = rows(analysis)
    assert_files_agree(analysis, flat)
    assert_tooltips_agree(analysis)
    assert_tables_agree(analysis, flat)


def assert_files_agree(analysis, flat):
    """JSON, CSV and Parquet hold the numbers of the rows."""
    report = run_report(EXPERIMENT, analysis)["results"]
    assert report == json.loads(export(".json", Exported(EXPERIMENT, analysis)))["results"]
    table = list(csv.DictReader(StringIO(export(".csv", Exported(EXPERIMENT, analysis)).decode())))
    parquet = pd.read_parquet(BytesIO(export(".parquet", Exported(EXPERIMENT, analysis))))
    for row, entry, line, (_, column) in zip(flat, report, table, parquet.iterrows(), strict=True):
        speedup = entry["speedup"] or {"ratio": None, "baseline": None}
        told = {
            "speedup": speedup["ratio"],
            "baseline": speedup["baseline"],
            "mfu": entry["mfu"],
            "peak_kind": entry["peak"]["kind"],
            "bandwidth_utilization": entry["bandwidth_utilization"],
            "bound": entry["bound"],
            "diagnosis": " ".join(diagnosis["kind"] for diagnosis in entry["diagnosis"]),
            "flags": " ".join(flag["name"] for flag in entry["flags"]),
        }
        assert told == {name: row[name] for name in told}
        assert told == {name: cell(column[name]) for name in told}
        assert {name: as_text(value) for name, value in told.items()} == {name: as_text(line[name]) for name in told}


def cell(value):
    return None if value is pd.NA or (isinstance(value, float) and isnan(value)) else value


def as_text(value):
    """Return how CSV writes a value; numbers by their shortest digits."""
    if value in (None, ""):
        return ""
    try:
        return repr(float(value))
    except ValueError:
        return str(value)


def assert_tooltips_agree(analysis):
    """Every chart shows of every point what the analysis says."""
    words = {}
    for analyzed in analysis.shown:
        if analyzed.measurement:
            words[(analyzed.origin.value, *key(analyzed))] = expected_words(analyzed)
    for draw in CHARTS:
        spec = draw(analysis).to_dict(validate=False)
        points = [row for rows in spec["datasets"].values() for row in rows if set(TOOLTIPS) <= set(row)]
        for point in (point for point in points if not point["condition"]):
            found = words[(point["origin"], point["implementation"], point["dtype"], point["shape"])]
            assert found == {name: point[name] for name in found}


def key(analyzed):
    shape = " × ".join(f"{length:,}" for length in analyzed.case.shape)
    return analyzed.case.implementation, analyzed.case.dtype, shape


def expected_words(analyzed):
    speedup = analyzed.speedup
    found = {
        "faster": f"{format_ratio(speedup.ratio)} over {speedup.baseline}" if speedup else "no baseline",
        "bound": analyzed.bound or "unknown",
        "diagnosis": ", ".join(diagnosis.kind.replace("_", " ") for diagnosis in analyzed.diagnoses) or "none",
        "flags": ", ".join(flag.name for flag in analyzed.flags) or "none",
    }
    if analyzed.mfu is not None and not analyzed.above_peak:
        label = PEAK_SOURCES[analyzed.peak.kind].label
        found["share"] = f"{format_percent(analyzed.mfu)} of the {label}"
    if analyzed.bandwidth_utilization is not None and not analyzed.above_bandwidth:
        label = PEAK_SOURCES[analyzed.bandwidth.kind].bandwidth_label
        found["memory"] = f"{format_percent(analyzed.bandwidth_utilization)} of the {label}"
    return found


def assert_tables_agree(analysis, flat):
    """The tables of page and command line show the numbers of the rows, and the headline that of the fastest."""
    for analyzed, row in zip(analysis.results, flat, strict=True):
        page, line = shown_row(analyzed), _table_row(analyzed)
        assert page["Speedup"] == row["speedup"]
        assert page["MFU"] == row["mfu"]
        assert page["Bound"] == row["bound"]
        assert page["Flags"] == [flag.name for flag in analyzed.flags]
        assert line[5] == (UNKNOWN if row["speedup"] is None else format_ratio(row["speedup"]))
        assert line[7:9] == (format_percent(row["mfu"]), row["bound"] or UNKNOWN)
    fastest = analysis.fastest
    if fastest and fastest.mfu is not None:
        label = PEAK_SOURCES[fastest.peak.kind].label
        assert f"{format_percent(fastest.mfu)} of the {label}" in analysis.summary.headline


@settings(max_examples=10, deadline=None, phases=PHASES)
@given(results_of(), st.sampled_from(["", *baselines(EXPERIMENT)]), st.sampled_from(["", *PEAK_SOURCES]))
def test_an_outcome_in_python_tells_what_the_command_line_tells(results, baseline, peak):
    outcome = Outcome(EXPERIMENT, tuple(results))
    analysis = outcome.analyze(baseline, peak)

    assert outcome.to_dict(baseline, peak) == run_report(EXPERIMENT, analysis)
    assert outcome.to_pandas(baseline, peak).equals(chart.to_frame(analysis))
    assert str(outcome) == outcome.analyze().summary.headline
