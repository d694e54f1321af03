"""The Python API: a tiny run in this process, and an import that costs nothing."""

import subprocess
import sys
from functools import cache, partial
from itertools import count

import altair as alt
import pytest

import gpuexplore as gx
from gpuexplore.api import SETTINGS, experiment_asked
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Status
from tests.made_ceiling import save_made_ceiling

TINY = {"dtypes": ["fp32"], "implementations": "numpy", "devices": ["cpu"], "budget": 0.01}
COLUMNS = [
    "operation",
    "n",
    "size",
    "dtype",
    "implementation",
    "device",
    "median_s",
    "p20_s",
    "p80_s",
    "speedup",
    "mfu",
]


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    save_made_ceiling()


@cache
def measured_once():
    return gx.run("vector_add", sizes=[8, 16], **TINY)


@pytest.fixture
def outcome():
    """Return the outcome of a run that is measured in the first test that looks at one."""
    return measured_once()


WHEN_NUMPY_IS_LOADED = """
import os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print("spins for", os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
sys.meta_path.insert(0, Watch())
"""


@pytest.mark.parametrize(
    "use", ["import gpuexplore as gx; gx.run", "import gpuexplore.__main__ as m; sys.argv[1:] = ['list']; m.start()"]
)
@pytest.mark.parametrize(("own", "told"), [(None, "18"), ("20", "20")])
def test_pools_spin_shortly_because_that_is_set_before_numpy_is_loaded(monkeypatch, use, own, told):
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    if own:
        monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", own)

    said = subprocess.check_output([sys.executable, "-c", WHEN_NUMPY_IS_LOADED + use], text=True)

    assert said.splitlines()[0] == f"spins for {told}"


def test_run_measures_every_case_in_order(outcome):
    assert [(tuple(result.case.shape), result.status) for result in outcome.results] == [
        ((8,), Status.OK),
        ((16,), Status.OK),
    ]
    assert "numpy" in str(outcome)


def test_frame_has_a_row_a_case_with_units_in_its_columns(outcome):
    frame = outcome.to_pandas()

    assert frame["n"].tolist() == frame["flop_count"].tolist() == [8, 16]
    assert [column for column in COLUMNS if column not in frame] == []
    assert (frame["median_s"] > 0).all()


def test_dictionary_is_the_report_of_the_command_line(outcome):
    assert list(outcome.to_dict()) == [
        "schema_version",
        "run",
        "experiment",
        "environment",
        "comparison",
        "machines",
        "summary",
        "results",
    ]


def test_outcome_can_be_charted(outcome):
    chart = gx.chart.time(outcome)

    assert isinstance(chart, alt.TopLevelMixin)
    assert "numpy" in str(chart.to_dict())


def test_shapes_and_text_are_taken_as_on_the_command_line(outcome):
    for asked in ({"sizes": "8:16:x2"}, {"shapes": ["n=8", "n=16"]}):
        assert experiment_asked("vector_add", TINY | asked)[0].shapes == outcome.experiment.shapes


def test_what_cannot_run_has_its_reason():
    (result,) = gx.run("vector_add", sizes=8, **TINY | {"dtypes": "tf32"}).results

    assert (result.status, result.measurement) == (Status.UNSUPPORTED, None)
    assert "not a matmul" in result.reason


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"sizes": 0}, "size '0': expected whole numbers from 1"),
        ({"sizes": 1.5}, "size '1.5': expected whole numbers from 1"),
        ({"sizes": 8, "dtypes": "fp8"}, "dtype 'fp8': expected fp64"),
        ({"sizes": 8, "threads": 0}, "threads '0': expected whole numbers from 1"),
        ({"sizes": 8, "budget": float("nan")}, "budget 'nan': expected a number of seconds above 0"),
        ({"sizes": 8, "devices": ["cuda:9"]}, "device 'cuda:9': expected cpu"),
        ({"sizes": 2**31, "dtypes": "fp64"}, "the largest case needs"),
    ],
)
def test_bad_setting_is_named_with_the_accepted_ones(settings, text):
    with pytest.raises(InvalidInput) as error:
        gx.run("vector_add", **TINY | settings)
    assert text in str(error.value)


def test_unknown_setting_is_a_type_error():
    with pytest.raises(TypeError, match="size"):
        gx.run("vector_add", size=8)


def test_specs_are_those_of_the_command_line():
    assert gx.specs("NVIDIA Nonsense 9000")["key"] is None
    assert gx.specs("NVIDIA A100-SXM4-80GB")["peaks"]["bf16"]["flop_per_s"] == pytest.approx(312e12)


def test_unknown_attribute_is_answered_with_what_there_is():
    with pytest.raises(AttributeError, match="no attribute 'plot': it offers __version__, atlas, chart, check_claims"):
        _ = gx.plot


def test_every_public_name_exists():
    assert all(getattr(gx, name) is not None for name in gx.__all__)


@pytest.mark.long
def test_importing_the_package_loads_nothing_else():
    code = "import sys, gpuexplore; print(sorted({'numpy', 'streamlit', 'torch', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_predictions_are_those_of_the_command_line():
    fp32, bf16 = gx.predict("matmul", "Tesla T4", sizes=4096, dtypes=["fp32", "bf16"])
    assert (fp32.support, bf16.support) == ("native", "emulated")
    assert fp32.low_s < fp32.time_s < fp32.high_s
    with pytest.raises(InvalidInput, match="gpu 'Abacus'"):
        gx.predict("matmul", ["Abacus"], sizes=[64])


def test_kind_of_calls_is_asked_for_in_python_too():
    (found,) = gx.predict("matmul", "t4", sizes=64, dtypes="fp32", calls="single")
    assert found.calls == "single"
    assert gx.is_possible("matmul", "t4", "1s", sizes=64, calls="graph").prediction.calls == "graph"
    with pytest.raises(InvalidInput, match="calls 'fast': expected graph, queued, single"):
        gx.predict("matmul", "t4", sizes=64, calls="fast")


UNUSABLE = [b"matmul", {"a": 1}, object(), [None], [[8]], [True], True, 2 + 1j, print, 10**5000, count()]


@pytest.mark.parametrize(
    "value", [None, 1, 1.5, [], ["matmul"], "", "nul \x00", *UNUSABLE], ids=lambda value: type(value).__name__
)
def test_a_name_that_is_none_is_refused_by_its_own(value):
    ranked = partial(gx.which_gpu, sizes=8)
    for use in (gx.specs, gx.run, ranked, lambda name: gx.predict(name, "t4", sizes=8)):
        with pytest.raises(InvalidInput, match=r"(name|operation) ['\"].*: expected"):
            use(value)


def predicted(**asked):
    return gx.predict("matmul", **{"gpus": "t4", "sizes": 8} | asked)


def ranked(**asked):
    return gx.which_gpu("matmul", **{"gpus": "t4", "sizes": 8} | asked)


SETTINGS_OF = {
    partial(gx.run, "vector_add"): ("sizes", "shapes", *SETTINGS),
    predicted: ("gpus", "sizes", "shapes", "dtypes", "implementation", "calls"),
    ranked: ("gpus", "sizes", "shapes", "dtypes"),
    gx.atlas: ("operation", "gpus", "dtypes", "source"),
}


@pytest.mark.parametrize(("ask", "settings"), SETTINGS_OF.items(), ids=["run", "predict", "which_gpu", "atlas"])
def test_setting_of_a_wrong_type_is_named_with_the_accepted_ones(ask, settings):
    for setting in settings:
        for value in UNUSABLE:
            with pytest.raises(InvalidInput, match=f"{setting} ['\"].*: expected"):
                ask(**{setting: value})


def test_the_atlas_has_what_was_measured_as_values_and_as_a_frame():
    found = gx.atlas("triad", ["t4", "Tesla V100 SXM2 16GB"], "fp64")
    (point,) = found
    (row,) = found.to_pandas().to_dict("records")

    assert (row["spec_key"], row["time_s"], row["licence"]) == ("v100-sxm2-16gb", point.time_s, "MIT")
    assert row["bandwidth_utilization"] == pytest.approx(point.share)
    assert repr(found) == "<1 measurements on 1 GPUs from 1 sources>"
    assert len(gx.atlas()) > 2600
    assert {point.origin for point in gx.atlas(source="gpuexplore")} == {"recorded"}
    assert gx.atlas("cnn_step").to_pandas().empty


def test_gpus_are_ranked_for_a_call_with_prices_of_ones_own():
    found = gx.which_gpu("matmul", sizes=4096, dtypes="fp16", gpus=["t4", "l4"], by="price", prices={"l4": 0.01})
    frame = found.to_pandas()

    assert list(frame["spec_key"]) == [choice.device.id for choice in found] == ["l4", "t4"]
    assert list(frame["price_per_hour"]) == [0.01, 0.15]
    assert (frame["low_s"] < frame["time_s"]).all()
    assert repr(found) == "<2 GPUs ranked, the first is L4>"
    assert len(gx.which_gpu("matmul", sizes=64)) > 40


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"by": "beauty"}, "order 'beauty': expected time, energy, memory, price"),
        ({"prices": {"t5": 1}}, "price 't5=1': expected devices of the table by their key"),
        ({"prices": {"t4": -1}}, "price 't4=-1': expected numbers from"),
        ({"prices": {"t4": "free"}}, "price 't4=free'"),
        ({"prices": [0.3]}, "prices '\\[0.3\\]': expected amounts by keys"),
        ({"sizes": [64, 128]}, "2 shapes: GPUs are ranked for one"),
        ({"gpus": "Abacus"}, "gpu 'Abacus'"),
        ({"dtypes": "fp7"}, "dtype 'fp7'"),
    ],
)
def test_what_cannot_be_ranked_is_named(asked, message):
    with pytest.raises(InvalidInput, match=message):
        gx.which_gpu("matmul", **{"sizes": 64, "gpus": "t4"} | asked)


def test_setting_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(TypeError, match=r"run\(\) has no setting 'baseline': expected dtypes, implementations, "):
        gx.run("matmul", baseline="numpy")


def test_a_notebook_shows_the_sentence_the_chart_and_the_table(outcome):
    cell = outcome._repr_html_()

    assert str(outcome) in cell.replace("&#39;", "'")
    assert (cell.count("<svg"), cell.count("<tr>")) == (1, 3)
    assert "Time per call" in cell


def test_a_notebook_shows_the_table_where_no_chart_can_be_drawn(outcome, monkeypatch):
    monkeypatch.setattr("gpuexplore.charts.exports.picture.PROCESS", "gpuexplore.charts.nothing")

    cell = outcome._repr_html_()

    assert "the image was not rendered" in cell
    assert (cell.count("<svg"), cell.count("<tr>")) == (0, 3)


def test_without_altair_a_notebook_shows_the_sentence(outcome, monkeypatch):
    monkeypatch.setitem(sys.modules, "gpuexplore.charts.exports.html_report", None)

    assert outcome._repr_html_() is None
    assert repr(outcome) == f"<vector_add 8 to 16, fp32: 2 results. {outcome}>"


@pytest.mark.parametrize(
    "ask",
    [
        lambda: gx.predict("matmul", "h100", sizes=512, dtypes="fp16"),
        lambda: gx.is_possible("matmul", "h100", 1.0, sizes=512),
        lambda: gx.which_gpu("matmul", gpus="h100", sizes=512),
        lambda: gx.atlas("matmul", "h100", "fp8"),
    ],
)
def test_python_takes_a_model_and_warns_which_variant_was_meant(ask):
    with pytest.warns(UserWarning, match="H100 read as H100 SXM5 80GB; also PCIe, NVL") as warned:
        ask()
    assert warned[0].filename == __file__
