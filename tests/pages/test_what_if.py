from dataclasses import replace

import pytest

from gpuexplore.analysis.prediction import CALLS
from gpuexplore.analysis.prediction.calls import CALLS_WORDS
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.model import Accuracy, Experiment, Result, Shape, Status
from gpuexplore.ui import session, shared
from gpuexplore.ui.what_if.choice import CALL_TITLES, NOTEBOOK
from tests.analysis.made import device, ok
from tests.pages.conftest import OWNER, only, specs, texts

ALONE = {"gpus": ""}  # no other devices: quicker
SQUARE = Shape.of(m=1000, k=1000, n=1000)


def table(app, place=0):
    return app.dataframe[place].value.set_index("Dtype")


def widget(app, kind, label):
    return next(each for each in getattr(app, kind) if each.label == label)


def measure_buttons(app):
    return [button for button in app.button if "Measure" in button.label]


def test_the_first_visit_tells_something(page):
    app = page("what-if")

    assert not app.exception
    assert not app.error
    headline = texts(app.markdown)
    assert "#### On H100 SXM5 80GB, bf16 is predicted to be 15 times as fast as fp32" in headline
    assert "correct to 3 significant digits." in headline
    assert "**fp8** is predicted to be" in headline
    assert "In bf16 (predicted), from the fastest on: B200 SXM (HGX)" in headline
    assert list(table(app).index) == list(FORMATS)
    assert set(table(app)["From"]) == {"predicted"}
    assert len(specs(app)) == 4
    assert dict(app.query_params) == {}


def test_models_in_a_link_are_the_usual_variants_and_that_is_said_while_they_are_chosen(page):
    app = page("what-if", device="RTX 4090", gpus="h100,l4", price="a100:2,h100:3").run()

    assert not app.error
    assert widget(app, "selectbox", "Device").value == "rtx-4090"
    assert widget(app, "multiselect", "Compare with").value == ["h100-sxm5-80gb", "l4"]
    said = texts(app.caption)
    assert "RTX 4090 read as GeForce RTX 4090" in said
    assert "H100 read as H100 SXM5 80GB; also PCIe, NVL" in said

    widget(app, "multiselect", "Compare with").set_value(["l4"]).run()
    assert "H100 read as" not in texts(app.caption)


def test_notebooks_t4_shows_both_mfus_and_why_bf16_was_slower(page):
    app = page("what-if", **NOTEBOOK)
    told, claims = texts(app.markdown), specs(app)[0]

    assert not app.error
    assert "8.80 TFLOPs" in texts(app.markdown)
    for share in ("63.5 %", "62.7 %", "14.2 %", "28.0 %"):
        assert share in claims
    assert "fp32 of the advertised peak (entered), 8.00 TFLOP/s" in claims
    assert "fp32 of the datasheet peak, 8.10 TFLOP/s" in claims
    assert "bf16** took 2.2 times as long as fp32: Tesla T4 has no bf16 units" in told
    assert "with a peak of 65.0 TFLOP/s" in told
    assert "fp32**: 1.73 s (entered), 5.08 TFLOP/s" in told
    assert table(app).loc["bf16", "Support"] == "emulated"
    assert table(app).loc["fp16", "From"] == "predicted"


def test_the_notebooks_t4_is_a_click_away_and_then_in_the_url(page):
    app = page("what-if", what="block", price="t4:1")
    widget(app, "button", "A notebook's T4").click().run()

    assert not app.exception
    assert {name: only(value) for name, value in app.query_params.items()} == NOTEBOOK
    assert "On Tesla T4, fp16 is predicted to be" in texts(app.markdown)


def test_what_is_being_measured_is_not_offered_again(page, store):
    app = page("what-if", **ALONE, device="cpu", shape="64")
    measure_buttons(app)[0].click().run()

    assert not measure_buttons(app)
    assert widget(app, "button", "Cancel")


@pytest.mark.parametrize(
    "named",
    [
        {
            "what": ("novel", "what 'novel': expected operation, block, layers, run"),
            "op": ("abacus", "op 'abacus': expected matmul"),
            "shape": ("0", "shape of matmul '0': expected lengths like m=128,k=128,n=128"),
        },
        {"shape": ("m=3", "shape of matmul 'm=3'")},
        {"shape": ("m=2097152M,k=1,n=1", "m of matmul '2199023255552': expected 1 to 1099511627776")},
        {"what": ("layers", ""), "layers": ("abacus 3;matmul 64", "layer 'abacus 3': operation 'abacus'")},
        {"what": ("layers", ""), "layers": ("", "no layers: give at least one")},
        {"what": ("block", ""), "batch": ("many", "batch 'many': expected whole numbers")},
        {"what": ("block", ""), "heads": ("33", "heads 33: expected divisors of the hidden size, 4096")},
        {"what": ("run", ""), "run": ("nothere", "no run 'nothere': check the link")},
        {
            "device": ("voodoo2", "device 'voodoo2'"),
            "gpus": ("voodoo2,t4", "gpus 'voodoo2'"),
            "dtype": ("fp4,fp32", "dtype 'fp4': expected fp64, fp32, tf32, bf16, fp16, fp8"),
            "calls": ("fast", "calls 'fast': expected queued, graph, single"),
            "baseline": ("int3", "baseline 'int3': expected fp32"),
            "per": ("beauty", "per 'beauty': expected time, energy, cost"),
            "times": ("fp32:fast", "times 'fp32:fast': expected numbers from"),
            "peaks": ("int3:1", "peaks 'int3:1': expected fp64, fp32"),
            "price": ("voodoo2:1", "price 'voodoo2:1': expected devices of the table by their key"),
        },
    ],
)
def test_bad_values_in_the_url_are_named_and_the_rest_of_the_page_survives(page, named):
    app = page("what-if", **ALONE | {name: value for name, (value, _) in named.items()})

    assert not app.exception
    assert [said for _, said in named.values() if said not in texts(app.error)] == []
    assert widget(app, "selectbox", "Device").value == "h100-sxm5-80gb"
    workload_is_bad = any(button.label == "Reset to default" for button in app.button)
    assert workload_is_bad or "On H100 SXM5 80GB" in texts(app.markdown)


def test_a_workload_that_cannot_be_leads_back_to_the_usual_one(page):
    app = page("what-if", what="layers", layers="abacus")
    widget(app, "button", "Reset to default").click().run()

    assert not app.error
    assert "Matrix multiplication, 4,096" in texts(app.markdown)
    assert "what" not in app.query_params


def test_without_a_run_the_page_says_where_to_get_one(page):
    app = page("what-if", what="run")

    assert "you have no runs yet: measure one on the page Benchmark" in texts(app.error)


def test_a_run_brings_its_workload_and_its_measurements(page, finished):
    app = page("what-if", **ALONE, what="run", run=finished, device="cpu", dtype="fp32,bf16")
    found = table(app)

    assert not app.error
    assert "Matrix multiplication, 128 × 128 × 128" in texts(app.markdown)
    assert list(found["From"]) == ["measured here", "measured here"]
    assert found.loc["fp32", "Time"] == pytest.approx(1)  # ms
    assert "On a made-up processor, bf16 is no faster than fp32" in texts(app.markdown)


def test_a_run_is_chosen_among_ones_own_and_its_shapes(page, finished):
    app = page("what-if", what="run")
    widget(app, "selectbox", "Shape").select("m=64,k=64,n=64").run()

    assert "64 × 64 × 64" in texts(app.markdown)
    assert only(app.query_params["at"]) == "m=64,k=64,n=64"


def test_a_block_and_layers_are_workloads_too(page):
    block = page("what-if", **ALONE, what="block", batch="1", seq="128", hidden="256", heads="4", ff="1024")
    layers = page("what-if", **ALONE, what="layers", layers="linear b=128,d=256,k=768;layer_norm m=128,n=256 x2")

    assert "Transformer block, 1 × 128 tokens, hidden 256" in texts(block.markdown)
    assert "layer norms, residual sums in bf16: they have no fp8" in texts(block.markdown)
    assert "2 layers: " in texts(layers.markdown)


def test_a_device_without_peaks_has_no_times_and_says_why(page, monkeypatch):
    monkeypatch.setattr(session, "discover", lambda: (device(peaks=(), bandwidth=None),))
    app = page("what-if", **ALONE, device="cpu")

    assert not app.exception
    assert "On a made-up processor, no time is known: " in texts(app.markdown)
    assert specs(app) == []
    assert "Time" not in table(app)


def test_everything_unsupported_is_said_with_the_reason(page):
    app = page("what-if", device="t4", gpus="", dtype="tf32,fp8")

    assert "no time is known: tf32 exists only inside matrix units, and Tesla T4 has none" in texts(app.markdown)
    assert set(table(app)["Support"]) == {"unsupported"}
    assert specs(app) == []


def test_no_dtype_is_an_empty_state(page):
    app = page("what-if", dtype="")

    assert not app.exception
    assert "Choose at least one dtype." in texts(app.markdown)


def test_a_baseline_without_a_time_leaves_the_times(page):
    app = page("what-if", device="t4", gpus="", baseline="fp8")

    assert "No time is known for fp8: choose another baseline." in texts(app.info)
    assert len(specs(app)) == 1


def test_what_is_missing_on_a_device_of_this_machine_is_measured_at_a_click(page, store):
    app = page("what-if", **ALONE, device="cpu", shape="64", dtype="fp32,bf16,fp8")
    widget(app, "button", "Measure it here: fp32, bf16 on cpu").click().run()
    run = store.load(only(app.query_params["measuring"]))

    assert run.owner == OWNER
    assert run.experiment == Experiment("matmul", (Shape.of(m=64, k=64, n=64),), ("fp32", "bf16"), ("torch",), ("cpu",))


def test_what_a_device_has_no_units_for_is_not_offered(page, monkeypatch):
    monkeypatch.setattr(session, "discover", lambda: (replace(device(), native=("fp32", "bf16")),))
    app = page("what-if", **ALONE, device="cpu", shape="64")

    assert [button.label for button in measure_buttons(app)] == ["Measure it here: fp32, bf16, fp16 on cpu"]


def test_a_block_is_measured_with_a_run_for_each_operation(page, store):
    query = {"batch": "1", "seq": "16", "hidden": "32", "heads": "2", "ff": "64"}
    app = page("what-if", what="block", device="cpu", dtype="fp32,tf32", **query)
    measure_buttons(app)[0].click().run()
    runs = [store.load(word).experiment for word in only(app.query_params["measuring"]).split(".")]

    assert [run.operation for run in runs] == ["layer_norm", "linear", "attention", "vector_add"]
    assert len(runs[1].shapes) == 4
    assert runs[0].dtypes == ("fp32",)  # a norm has no tf32
    assert runs[1].dtypes == ("fp32", "tf32")


def test_a_run_that_ends_while_the_page_is_drawn_is_not_missed(page, store, monkeypatch):
    experiment = Experiment("matmul", (SQUARE,), ("fp32",), ("torch",), ("cpu",))
    run_id = store.record(experiment, OWNER, results=[ok(4e-3, size=1000)])
    looks = iter([0])  # the first look is from before the result came
    newest = type(store).newest_result
    monkeypatch.setattr(type(store), "newest_result", lambda self: next(looks, None) or newest(self))
    monkeypatch.setattr(shared, "LOOK_S", 60.0)
    app = page("what-if", **ALONE, device="cpu", shape="1000", dtype="fp32", measuring=run_id)
    assert table(app).loc["fp32", "From"] == "measured here"


def test_nothing_is_offered_for_devices_that_are_not_here_or_once_it_is_measured(page, store):
    experiment = Experiment("matmul", (SQUARE,), ("fp32",), ("torch",), ("cpu",))
    result = replace(ok(4e-3, size=1000), accuracy=Accuracy(1e-6, 1e-3))
    store.record(experiment, OWNER, results=[result])

    assert not measure_buttons(page("what-if"))
    app = page("what-if", **ALONE, device="cpu", shape="1000", dtype="fp32")
    assert not measure_buttons(app)
    assert (table(app).loc["fp32", "From"], table(app).loc["fp32", "Error is"]) == ("measured here", "measured")


def test_a_case_that_could_not_be_measured_says_why(page, store):
    experiment = Experiment("matmul", (SQUARE,), ("fp32", "bf16"), ("torch",), ("cpu",))
    done, slow = (case for case in experiment.cases())
    results = [ok(4e-3, size=1000), Result(slow, Status.SKIPPED, "too slow for its budget")]
    run_id = store.record(experiment, OWNER, results=results)
    app = page("what-if", **ALONE, device="cpu", shape="1000", dtype="fp32,bf16", measuring=run_id)

    assert done.dtype == "fp32"
    assert "skipped: too slow for its budget" in texts(app.caption)
    assert list(table(app)["From"]) == ["measured here", "predicted"]


def test_a_link_to_a_measurement_of_another_server_says_so(page):
    assert "no run 'gone'" in texts(page("what-if", measuring="gone").warning)


def test_a_case_too_large_for_this_machine_is_refused_before_it_is_queued(page, store):
    app = page("what-if", **ALONE, device="cpu", shape="60000", dtype="fp32")
    measure_buttons(app)[0].click().run()

    assert "the largest case needs" in texts(app.error)
    assert store.history() == ()


def test_cost_needs_a_price_and_energy_a_power_limit(page):
    without = page("what-if", per="cost")
    assert "Nothing to draw: enter a price per hour" in texts(without.info)

    priced = page("what-if", per="cost", price="t4:0.35")
    assert "Not drawn: H100 SXM5 80GB" in texts(priced.caption)
    assert "Cost per million calls" in specs(priced)[-1]

    energy = page("what-if", per="energy")
    assert "Energy at the board's power limit" in specs(energy)[-1]


CONTROLS = [
    ("selectbox", "Operation", "linear", "op", "linear"),
    ("text_input", "Shape", "512", "shape", "512"),
    ("selectbox", "Device", "t4", "device", "t4"),
    ("selectbox", "Baseline dtype", "fp64", "baseline", "fp64"),
    ("multiselect", "Compare with", ["t4", "l4"], "gpus", "t4,l4"),
    ("multiselect", "Dtypes", ["fp32", "bf16"], "dtype", "fp32,bf16"),
    ("text_input", "Times measured elsewhere (s)", "fp32:1", "times", "fp32:1"),
    ("text_input", "Advertised peaks (FLOP/s)", "fp32:1e13", "peaks", "fp32:1e13"),
    ("text_input", "Price per hour", "t4:1", "price", "t4:1"),
    ("button_group", "Calls", "single", "calls", "single"),
    ("button_group", "Compare", "energy", "per", "energy"),
]


def test_every_control_is_written_to_the_url_and_read_from_it(page):
    app = page("what-if", gpus="l4")
    for kind, label, value, _, _ in CONTROLS:
        widget(app, kind, label).set_value(value)
    app.run()
    linked = page("what-if", **{name: written for *_, name, written in CONTROLS})

    assert not app.exception
    for kind, label, value, name, written in CONTROLS:
        assert only(app.query_params[name]) == written
        assert widget(linked, kind, label).value == value


def test_kind_of_workload_and_its_fields_are_written_to_the_url(page):
    app = page("what-if", **ALONE)
    widget(app, "button_group", "Workload").set_value("block").run()
    widget(app, "text_input", "Sequence").set_value("512").run()
    layers = page("what-if", **ALONE, what="layers")
    widget(layers, "text_area", "Layers").set_value("matmul 64").run()

    assert only(app.query_params["what"]) == "block"
    assert only(app.query_params["seq"]) == "512"
    assert only(layers.query_params["layers"]) == "matmul 64"


def test_every_kind_of_calls_has_a_button():
    assert set(CALL_TITLES) == set(CALLS)


@pytest.mark.parametrize("calls", CALLS)
def test_kind_of_calls_is_said_and_in_the_table(page, calls):
    app = page("what-if", calls=calls, gpus="t4,cpu", dtype="fp32,bf16")
    told = texts(app.caption)

    assert not app.exception
    assert CALLS[calls][1:] in told
    assert f"Predictions: {CALLS_WORDS[calls]}, 90 % prediction intervals" in told
    assert f"On GPUs, predictions are of {CALLS_WORDS[calls]}." in told
    assert set(table(app)["Calls"]) == {calls}


def test_intervals_of_times_that_compare_are_in_one_unit(page):
    app = page("what-if", device="t4", shape="m=1100,k=1100,n=1100", dtype="fp32,fp16", gpus="")
    cells = [each for each in table(app)["Time interval"] if each]

    assert len(cells) > 1
    assert len({each.rpartition(" ")[2] for each in cells}) == 1
    assert all(each.split(" – ")[0].endswith(cells[0].rpartition(" ")[2]) for each in cells)


def test_on_a_cpu_no_kind_of_calls_is_said(page):
    app = page("what-if", **ALONE, device="cpu", calls="single", dtype="fp32")

    assert "Predictions: 90 % prediction intervals" in texts(app.caption)
    assert "Calls" not in table(app)


def test_what_was_measured_in_another_kind_of_calls_says_so(page, store, monkeypatch):
    monkeypatch.setattr(session, "discover", lambda: (device(device_id="cuda:0"),))
    experiment = Experiment("matmul", (SQUARE,), ("fp32",), ("torch",), ("cuda:0",))
    store.record(experiment, OWNER, results=[ok(4e-3, size=1000, on="cuda:0")])
    query = ALONE | {"device": "cuda:0", "shape": "1000", "dtype": "fp32"}
    queued, single = page("what-if", **query), page("what-if", **query, calls="single")

    assert not single.exception
    assert "**fp32**: measured with queued calls." in texts(single.markdown)
    assert table(single).loc["fp32", "From"] == "measured here"
    assert table(single).loc["fp32", "Calls"] == "queued"
    assert table(single).loc["fp32", "Basis"].endswith("with torch; measured with queued calls")
    assert "measured with" not in texts(queued.markdown)


def test_too_many_devices_are_cut_with_a_word(page):
    keys = "t4,l4,l40,l40s,a10,a40,a30,a2,a16,h20,b200-sxm-180gb,gb200,gb300"
    app = page("what-if", gpus=keys)

    assert "at most 12" in texts(app.error)
    assert not app.exception


def test_a_link_with_many_unknown_names_is_not_answered_by_as_many_messages(page):
    app = page("what-if", gpus=",".join(f"abacus-{number}" for number in range(300)))

    assert not app.exception
    assert len(app.error) == 6
    assert "gpus: 295 more are invalid" in texts(app.error)


def test_two_times_for_one_dtype_are_named(page):
    app = page("what-if", times="fp32:1,fp32:2")

    assert not app.exception
    assert "times 'fp32:2': expected only one number for fp32; 1 is used" in texts(app.error)


def test_a_time_that_the_device_cannot_have_reached_is_named(page):
    app = page("what-if", op="matvec", shape="m=100000,n=100", device="gtx-1650", times="fp32:10.4e-6")

    assert not app.exception
    assert "**Impossible** on a GeForce GTX 1650 (GDDR5): its memory gives at most 128 GB/s" in texts(app.markdown)
    assert "the time entered for fp32 is impossible, so nothing is compared with it" in texts(app.markdown)
    assert "The time entered for fp32 is impossible" in texts(app.info)


def test_predictions_name_the_measurements_they_rest_on_each_with_its_source(page):
    app = page("what-if", op="matmul", shape="4096", device="h100-sxm5-80gb", dtype="bf16,fp16")
    told = next(each.value for each in app.markdown if "based on" in each.value)

    assert not app.exception
    assert "published measurements, the nearest on H100 SXM5 80GB" in told
    assert "](https://github.com/" in told
    assert "bf16 in" in next(line for line in told.splitlines() if "fp16:" in line)  # measured in another format
    elsewhere = page("what-if", op="matmul", shape="4096", device="a100-sxm4-80gb", dtype="bf16")
    assert "To improve predictions" in texts(elsewhere.caption)
