import json
from dataclasses import replace

from gpuexplore.hardware import ACCELERATORS
from gpuexplore.hardware.cpu_ceiling.cache import with_ceiling
from gpuexplore.hardware.cpu_ceiling.ceiling import Ceiling
from gpuexplore.hardware.discovery import _device_from
from gpuexplore.hardware.nvml import GpuFacts
from gpuexplore.ui import session
from tests.analysis.made import device
from tests.hardware.torch_answers import found_on
from tests.pages.conftest import OWNER, texts


def saves(app):
    """Return the buttons that keep a peak, then a bandwidth."""
    return [button for button in app.button if button.label == "Save"]


def test_a_device_without_known_peaks_shows_no_figures(page, monkeypatch):
    monkeypatch.setattr(session, "discover", lambda: (device(peaks=(), bandwidth=None),))
    app = page("devices")
    assert not app.exception
    assert not app.metric


def test_a_long_name_of_a_processor_is_short_in_headings_and_whole_in_its_facts(page, monkeypatch):
    whole = "Intel(R) Xeon(R) Processor (with AMX, Sapphire Rapids or newer)"
    monkeypatch.setattr(session, "discover", lambda: (replace(device(), name=whole),))
    app, roofs = page("devices"), page("roofline")
    assert app.subheader[0].value == "Intel Xeon"
    assert "Intel(R) Xeon(R) Processor" in texts(app.caption)
    assert "Intel Xeon" in [header.value for header in roofs.subheader]


def test_a_warming_process_is_told(page, store, beat):
    beat("warming", device())
    assert "being measured" in texts(page("devices").info)


def test_page_shows_the_devices_of_this_machine_and_the_table_of_accelerators(page):
    app = page("devices")
    shown = app.dataframe[-1]
    table = shown.value.set_index("Name")
    columns = json.loads(shown.proto.columns)

    assert not app.exception
    assert app.metric[1].label == "fp32 matmul"
    assert "FLOP/s" in app.metric[1].value
    assert "No CUDA device was found" in texts(app.caption)
    assert "measuring process is not running" in texts(app.warning)
    assert len(table) == len(ACCELERATORS)
    assert table["Source"].str.startswith("https://").all()
    assert table.loc["A100 SXM4 80GB", "Memory"] == 80
    assert table.loc["A100 SXM4 80GB", "bf16"] == 312
    assert columns["Memory"]["type_config"]["format"] == "%.3g GiB"
    assert columns["bf16"]["type_config"]["format"] == "%.4g TFLOP/s"
    assert table["tf32"].isna().any()
    assert not (table["tf32"] == 0).any()
    assert table.loc["L40S", "Derived"] == "fp64, bf16, fp16"
    assert table.loc["B200 SXM (HGX)", "Derived"] == "fp64, fp32, tf32, Bandwidth"
    assert table.loc["A100 SXM4 80GB", "Derived"] in ("", None)
    assert table.loc["GeForce RTX 4060 Ti 8GB", "Notes"].startswith("The 16 GB card has the same driver name")
    assert {"GeForce RTX 4060 Ti 16GB", "RTX A2000 12GB", "GeForce GTX 1650 (GDDR6)"} <= set(table.index)


def test_notes_of_a_few_rows_are_shown_in_full(page):
    told = texts(page("devices", q="4060 Ti").caption)

    assert "GeForce RTX 4060 Ti 8GB: The 16 GB card has the same driver name" in told.replace("*", "")
    assert "same compute and bandwidth, 165 W instead of 160 W" in told
    assert "165 W instead of 160 W" not in texts(page("devices").caption)


def test_a_device_that_was_found_has_the_notes_of_its_row(page, monkeypatch):
    facts = GpuFacts("NVIDIA GeForce RTX 5060 Ti", memory_bytes=8 * 2**30, multiprocessors=36)
    monkeypatch.setattr(session, "discover", lambda: (device(), _device_from(0, facts)))

    told = texts(page("devices").caption)
    assert "Peaks are from the table's row rtx-5060-ti-8gb" in told
    assert "Of that row: Same driver name as the 16 GB card" in told


def test_a_device_whose_name_is_ambiguous_says_which_it_may_be(page, monkeypatch):
    monkeypatch.setattr(session, "discover", lambda: (device(), _device_from(0, GpuFacts("NVIDIA GeForce RTX 3060"))))

    told = texts(page("devices").caption)
    assert "the driver does not state which of rtx-3060-12gb, rtx-3060-8gb it is" in told


def test_a_device_that_torch_alone_finds_says_that_nobody_tried_it(page, monkeypatch, tmp_path):
    monkeypatch.setattr(session, "discover", lambda: (device(), found_on(tmp_path, "rocm")))

    app = page("devices")
    told = texts(app.caption)
    assert not app.exception
    assert "`rocm:0` · 304 multiprocessors" in told
    assert "architecture gfx942 · driver HIP 6.4" in told
    assert "gpuexplore has never been tested on AMD ROCm" in told
    assert "No CUDA device was found" not in told


def test_a_search_narrows_the_table(page):
    app = page("devices")
    app.text_input(key="q").set_value("H100").run()
    names = app.dataframe[-1].value["Name"]
    assert 0 < len(names) < 20
    assert names.str.contains("H100").any()


def test_a_search_without_a_match_says_what_to_try(page):
    app = page("devices")
    app.text_input(key="q").set_value("abacus").run()
    assert "'abacus'" in texts(app.info)


def enter(app, rate, source="data sheet"):
    rates = next(one for one in app.text_input if one.label == "TFLOP/s")
    rates.set_value(rate)
    next(one for one in app.text_input if one.label == "Source").set_value(source)
    return saves(app)[0].click().run()


def test_own_peak_is_kept_for_its_owner_alone_until_it_is_deleted(page, store):
    app = enter(page("devices"), "0.53")
    assert "Saved: 530 GFLOP/s in fp32" in texts(app.success)
    assert [(peak.dtype, peak.unit, peak.flop_per_s) for peak in store.own_peaks(OWNER, device())] == [
        ("fp32", "matrix", 0.53e12)
    ]
    assert store.own_peaks("somebody else", device()) == ()

    app = page("devices")
    next(button for button in app.button if button.label == "Delete").click().run()
    assert store.own_peaks(OWNER, device()) == ()


def test_a_peak_of_the_vector_units_is_another_one(page, store):
    app = page("devices")
    next(one for one in app.selectbox if one.label == "Of").set_value("vector")
    enter(app, "0.26")
    enter(page("devices"), "0.53")
    assert {peak.unit: peak.flop_per_s for peak in store.own_peaks(OWNER, device())} == {
        "vector": 0.26e12,
        "matrix": 0.53e12,
    }
    assert "element-wise (vector units): 260 GFLOP/s" in texts(page("devices").markdown)


def test_bad_own_peak_is_named_and_not_kept(page, store):
    app = page("devices")
    for rate in ("0", "-1", "fast", "", "nan", "inf", "1e9"):
        enter(app, rate)
        assert f"peak {rate!r}: expected numbers above 0" in texts(app.error)
    assert store.own_peaks(OWNER, device()) == ()


def test_an_own_peak_becomes_the_denominator_of_the_mfu(page, finished):
    before = page("benchmark", run=finished).dataframe[0].value["MFU"]
    enter(page("devices"), "1000")
    after = page("benchmark", run=finished).dataframe[0].value["MFU"]
    assert (before != after).any()


def enter_bandwidth(app, rate, source=""):
    next(one for one in app.text_input if one.label == "GB/s").set_value(rate)
    [one for one in app.text_input if one.label == "Source"][1].set_value(source)
    return saves(app)[1].click().run()


def test_an_own_bandwidth_is_kept_shown_and_deleted(page, store):
    app = enter_bandwidth(page("devices"), "3350")
    assert "Saved: 3.35 TB/s of memory" in texts(app.success)
    kept = store.own_bandwidth(OWNER, device())
    assert (kept.bytes_per_s, kept.kind, kept.source) == (3.35e12, "own", "entered by you")
    app = page("devices")
    assert "memory**: 3.35 TB/s, entered by you" in texts(app.markdown)
    next(one for one in app.button if one.label == "Delete").click().run()
    assert store.own_bandwidth(OWNER, device()) is None


def test_bad_own_bandwidth_is_named_and_not_kept(page, store):
    app = page("devices")
    for rate in ("0", "fast", "1e9"):
        enter_bandwidth(app, rate)
        assert f"bandwidth {rate!r}: expected numbers above 0, up to 1,000,000 (GB/s)" in texts(app.error)
    assert store.own_bandwidth(OWNER, device()) is None


def test_a_cpu_without_units_of_a_format_says_that_its_peak_is_the_rate_of_fp32(page, monkeypatch):
    rates = {"fp64": 103e9, "fp32": 206e9}
    ceiling = Ceiling("Haswell", 2, rates, 20e9, 60, "2026-11-30T00:00:00+00:00")
    cpu = with_ceiling(replace(device(peaks=()), native=("fp64", "fp32")), ceiling)
    monkeypatch.setattr(session, "discover", lambda: (cpu,))
    app = page("devices")

    assert {metric.label: (metric.value, metric.delta) for metric in app.metric} == {
        "fp64 matmul": ("103 GFLOP/s", ""),
        "fp32 matmul": ("206 GFLOP/s", ""),
        "bf16 matmul": ("206 GFLOP/s", "at the fp32 rate"),
        "fp16 matmul": ("206 GFLOP/s", "at the fp32 rate"),
        "Memory": ("20.0 GB/s", ""),
    }
    table = app.dataframe[0].value
    assert set(table[table["Rate"] == "at the fp32 rate"]["Dtype"]) == {"bf16", "fp16"}


def test_calibration_is_queued_as_runs_of_that_title(page, store):
    app = page("devices")
    app.button("calibrate.cpu").click().run()

    assert not app.exception
    queued = store.listed()
    assert {run.title for run in queued} == {"Calibration"}
    assert len(queued) == 6
    assert "of 6 runs ended" in texts(app.info)
