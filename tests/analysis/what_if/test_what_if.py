from dataclasses import replace

import pytest

from gpuexplore.analysis.prediction import Prediction, UncertainValue
from gpuexplore.analysis.what_if import what_if as module
from gpuexplore.analysis.what_if.rounding_error import expected_error
from gpuexplore.analysis.what_if.summary import explain_entered, summarize
from gpuexplore.analysis.what_if.what_if import Known, fastest, format_in, what_if
from gpuexplore.analysis.what_if.workload import Workload, WorkloadLayer
from gpuexplore.core.dtypes import DTYPES, FORMATS
from gpuexplore.core.model import Accuracy, Contrast, Options, Origin, Peak, Shape
from gpuexplore.hardware import ACCELERATORS, as_device
from tests.analysis.made import calibration, device, ok, with_contrasts
from tests.hardware.processors import ZEN_4, ZEN_5, measured_on

SIZE = 1000
SQUARE = Shape.of(m=SIZE, k=SIZE, n=SIZE)
FLOPS = 2 * SIZE**3
ONE = Workload("one product", (WorkloadLayer("product", "matmul", SQUARE),))
TWO = Workload(
    "two layers", (WorkloadLayer("product", "matmul", SQUARE, 2), WorkloadLayer("sum", "vector_add", Shape.of(n=10**6)))
)
T4 = next(as_device(accelerator) for accelerator in ACCELERATORS if accelerator.key == "t4")
SECONDS = {"fp64": 8e-3, "fp32": 4e-3, "bf16": 1e-3, "fp16": 16e-3}


def made_up(case, on, calls):
    """Answer like the prediction core, with times that can be checked by hand."""
    if case.dtype == "fp8":
        return Prediction(case, on, "unsupported", "no fp8 units")
    if (case.dtype, case.operation) == ("tf32", "matmul"):
        return Prediction(case, on, "native", "no peak is known")
    seconds = SECONDS[case.dtype] if case.operation == "matmul" else 1e-3
    support = "emulated" if case.dtype == "fp16" else "native"
    reason = "no fp16 units" if support == "emulated" else None
    peak = Peak(case.dtype, "matrix", 1e12, "datasheet", "a test")
    known = (seconds, seconds / 2, seconds * 2, "compute", peak, "made up")
    return Prediction(case, on, support, reason, *known, calls=calls)


def made_up_each(asked, _, conditions):
    return tuple(made_up(case, on, conditions.calls) for case, on in asked)


@pytest.fixture(autouse=True)
def core(monkeypatch):
    monkeypatch.setattr(module, "predict_each", made_up_each)
    module._predicted.cache_clear()
    yield
    module._predicted.cache_clear()


def rows(workload=ONE, on=None, *, dtypes=("fp32", "bf16"), baseline="fp32", **known):
    found = what_if(workload, [on or device()], dtypes=dtypes, baseline=baseline, known=Known(calibration(), **known))
    return {row.dtype: row for row in found}


def test_speedup_is_over_the_baseline_which_need_not_be_shown():
    found = rows()["bf16"]

    assert found.time == UncertainValue(1e-3, 0.5e-3, 2e-3)
    assert found.speedup.value == pytest.approx(4)
    assert (found.speedup.low, found.speedup.high) == (pytest.approx(4 / 2**2**0.5), pytest.approx(4 * 2**2**0.5))
    assert rows()["fp32"].speedup == UncertainValue(1, 1, 1)

    found = rows(dtypes=("bf16",), baseline="fp64")

    assert list(found) == ["bf16"]
    assert found["bf16"].speedup.value == pytest.approx(8)


def test_layers_add_up_and_mfu_is_relative_to_the_peak_of_the_heaviest():
    assert rows()["bf16"].mfu == pytest.approx(FLOPS / 1e-3 / 1e12)
    assert rows(TWO)["bf16"].mfu == pytest.approx((2 * FLOPS + 10**6) / 3e-3 / 1e12)

    assert rows(TWO)["fp32"].time == UncertainValue(
        pytest.approx(2 * 4e-3 + 1e-3), pytest.approx(4.5e-3), pytest.approx(18e-3)
    )


def test_measured_here_replaces_the_prediction():
    result = ok(2e-3, size=SIZE, dtype="bf16", spread=0.1)
    found = rows(measured=[result])["bf16"]

    assert (found.origin, found.basis) == (Origin.LIVE, "measured here with torch")
    assert found.time == UncertainValue(2e-3, *(pytest.approx(ci95_) for ci95_ in result.measurement.ci95_s))
    assert found.peak.flop_per_s == 4e12  # of the device it was measured on
    assert rows(measured=[result])["fp32"].origin is Origin.PREDICTED


@pytest.mark.parametrize(
    "other",
    [
        {"size": 999},
        {"size": SIZE, "dtype": "fp32"},
        {"size": SIZE, "on": "cuda:0", "spec": {"memory_bytes": 1}, "name": "another"},
    ],
)
def test_other_cases_and_other_devices_are_no_measurement_of_this_one(other):
    name = other.pop("name", None)
    result = ok(2e-3, **{"dtype": "bf16", **other})
    if name:
        spec = replace(result.environment.device, name=name)
        result = replace(result, environment=replace(result.environment, device=spec))

    assert rows(measured=[result])["bf16"].origin is Origin.PREDICTED


def test_processor_of_the_same_name_with_other_cores_is_another_device():
    result = ok(2e-3, size=SIZE, dtype="bf16")
    two = replace(result, environment=replace(result.environment, device=replace(device(), cores=2)))

    assert rows(on=replace(device(), cores=2), recorded=[two])["bf16"].origin is Origin.RECORDED
    assert rows(on=replace(device(), cores=64), recorded=[two])["bf16"].origin is Origin.PREDICTED


def test_impossible_times_and_zeros_are_no_measurement():
    launched, computed = ok(1e-6, size=SIZE, dtype="bf16"), ok(2e-3, size=SIZE, dtype="bf16")

    assert fastest([launched, computed], device(), ONE.layers[0], "bf16") is computed

    result = ok(2e-3, size=SIZE, dtype="bf16")
    zeros = replace(result, case=replace(result.case, options=Options(data="zeros")))

    assert fastest([zeros], device(), ONE.layers[0], "bf16") is None
    assert fastest([zeros, result], device(), ONE.layers[0], "bf16") is result


def test_a_row_of_the_table_is_known_by_its_key_and_recorded_results_say_so():
    result = ok(2e-3, size=SIZE, dtype="bf16")
    t4 = replace(result.environment.device, name="Tesla T4", spec_key="t4")
    recorded = replace(result, environment=replace(result.environment, device=t4))
    found = rows(on=T4, recorded=[recorded])["bf16"]

    assert (found.origin, found.basis) == (Origin.RECORDED, "recorded on such a device with torch")
    assert rows(recorded=[recorded])["bf16"].origin is Origin.PREDICTED  # the made-up processor is no T4


def test_one_predicted_layer_makes_it_a_prediction_that_counts_the_measured_ones():
    found = rows(TWO, measured=[ok(2e-3, size=SIZE, dtype="bf16")])["bf16"]

    assert found.origin is Origin.PREDICTED
    assert found.basis == "1 of 2 layers measured here; made up"
    assert found.time.value == pytest.approx(2 * 2e-3 + 1e-3)


def on_gpu(median_s, *contrasts, **about):
    """Return a result of a GPU in bf16, whose calls were queued."""
    return with_contrasts(ok(median_s, size=SIZE, dtype="bf16", on="cuda:0", **about), *contrasts)


GPU = device(device_id="cuda:0")
REPLAYED = Contrast("graph", (1.5e-3,) * 9)


def test_a_measurement_is_of_the_kind_of_calls_that_is_asked_for_or_says_of_which():
    assert rows(on=GPU)["bf16"].calls == "queued"
    assert rows(on=GPU, calls="single")["bf16"].calls == "single"
    assert rows(on=GPU, calls="single")["bf16"].notes == ()

    measured = [on_gpu(2e-3)]

    assert rows(on=GPU, measured=measured)["bf16"].notes == ()
    for calls in ("single", "graph"):
        found = rows(on=GPU, measured=measured, calls=calls)["bf16"]
        assert (found.origin, found.time.value, found.calls) == (Origin.LIVE, 2e-3, "queued")
        assert found.notes == ("measured with queued calls",)

    found = rows(on=GPU, measured=[on_gpu(1e-3), on_gpu(2e-3, REPLAYED)], calls="graph")["bf16"]

    assert (found.time.value, found.calls, found.notes) == (1.5e-3, "graph", ())
    assert rows(on=GPU, measured=[on_gpu(2e-3, REPLAYED)])["bf16"].time.value == 2e-3

    found = rows(on=GPU, recorded=[on_gpu(2e-3)], calls="single")["bf16"]

    assert (found.origin, found.notes) == (Origin.RECORDED, ("measured with queued calls",))

    found = rows(TWO, on=GPU, measured=[on_gpu(2e-3)], calls="single")["bf16"]

    assert found.calls is None
    assert found.notes == ("1 of 2 layers measured with queued calls",)


def test_on_a_cpu_calls_are_of_every_kind_and_an_entered_time_is_of_none():
    result = ok(2e-3, size=SIZE, dtype="bf16")

    for known in ({}, {"measured": [result]}):
        found = rows(calls="single", **known)["bf16"]
        assert (found.calls, found.notes) == (None, ())

    found = rows(on=GPU, measured=[on_gpu(2e-3)], calls="single", times_s={"bf16": 1.0})["bf16"]

    assert (found.origin, found.calls, found.notes) == (Origin.ENTERED, None, ())


def test_note_on_several_formats_is_told_once():
    measured = [on_gpu(2e-3), replace(on_gpu(3e-3), case=replace(on_gpu(3e-3).case, dtype="fp32"))]
    found = rows(on=GPU, measured=measured, calls="single")
    (said,) = [detail for detail in summarize(list(found.values()), baseline="fp32").details if "queued" in detail]

    assert said == "**fp32 and bf16**: measured with queued calls."


def test_an_entered_time_counts_for_the_first_device_only():
    found = what_if(
        ONE, [device(), T4], dtypes=["fp32"], baseline="fp32", known=Known(calibration(), times_s={"fp32": 1.0})
    )

    assert [row.origin for row in found] == [Origin.ENTERED, Origin.PREDICTED]
    assert found[0].time == UncertainValue(1, 1, 1)
    assert found[0].mfu == pytest.approx(FLOPS / 1e12)


def test_a_format_without_a_time_has_no_figures_that_follow_from_one_and_says_why():
    found = rows(dtypes=("tf32", "fp8"), prices_per_hour={"cpu": 1.0})

    assert (found["fp8"].support, found["fp8"].reason) == ("unsupported", "no fp8 units")
    assert (found["tf32"].support, found["tf32"].reason) == ("native", "no peak is known")
    for row in found.values():
        assert (row.time, row.speedup, row.mfu, row.energy_j, row.cost, row.origin) == (None,) * 6


def test_layers_that_do_not_exist_in_a_format_run_beside_it():
    product, addition = TWO.layers

    assert format_in(product, FORMATS["fp8"]).name == "fp8"
    assert format_in(addition, FORMATS["fp8"]).name == "bf16"
    assert format_in(addition, FORMATS["tf32"]).name == "fp32"
    assert rows(TWO, dtypes=("tf32",))["tf32"].notes == ("sum in fp32: they have no tf32",)


def test_a_workload_of_which_nothing_exists_in_a_format_is_unsupported_there(monkeypatch):
    monkeypatch.undo()
    addition = Workload("sum", TWO.layers[1:])
    found = rows(addition, dtypes=("fp8",))["fp8"]

    assert found.support == "unsupported"
    assert "not a matmul" in found.reason


@pytest.mark.parametrize(("memory_bytes", "fits"), [(10**9, True), (13 * 10**6, None), (10**6, False), (None, None)])
def test_memory_fits_surely_perhaps_or_not(memory_bytes, fits):
    found = rows(TWO, device(memory_bytes=memory_bytes))["fp32"]

    assert found.memory_bytes == 2 * 3 * SIZE**2 * 4 + 3 * 10**6 * 4
    assert found.fits is fits


def test_energy_is_the_time_at_the_boards_power_and_cost_at_the_entered_price():
    found = rows(on=T4, prices_per_hour={"t4": 3.6})["fp32"]

    assert found.energy_j == pytest.approx(4e-3 * 70)
    assert found.cost == pytest.approx(4e-3 / 3600 * 3.6)
    assert rows()["fp32"].energy_j is None  # nobody states the power of a made-up processor
    assert rows()["fp32"].cost is None


def test_error_is_expected_until_it_was_measured():
    result = replace(ok(2e-3, size=SIZE, dtype="bf16"), accuracy=Accuracy(5e-3, 1e-2))

    assert rows()["bf16"].error == expected_error("matmul", SQUARE, DTYPES["bf16"])
    assert rows()["bf16"].error_origin == "expected"
    measured = rows(measured=[result])["bf16"]
    assert measured.error_origin == "measured"
    assert measured.error == pytest.approx((5e-3**2 + (2**0.5 * 0.4254 / 256) ** 2) ** 0.5, rel=0.02)


def test_headline_names_a_usual_format_that_is_faster_its_interval_and_digits_or_that_nothing_is():
    said = summarize(list(rows().values()), baseline="fp32")

    assert said.headline.startswith(
        "On a made-up processor, bf16 is predicted to be 4.0 times as fast as fp32 (1.5 to 11)"
    )
    assert said.headline.endswith(", correct to 3 significant digits.")

    both = [ok(2e-3, size=SIZE, dtype="bf16", spread=0), ok(4e-3, size=SIZE, spread=0)]

    assert (
        "bf16 is 2.0 times as fast as fp32, correct to 3 significant digits."
        in summarize(list(rows(measured=both).values()), baseline="fp32").headline
    )

    slow = rows(dtypes=("fp64", "fp32"))

    assert (
        "fp64 is predicted to be the fastest other dtype, at 2.0 times the time of fp32"
        in summarize(list(slow.values()), baseline="fp32").headline
    )


def test_headline_without_any_time_gives_the_reason():
    assert summarize(list(rows(dtypes=("fp8",)).values()), baseline="fp8").headline == (
        "On a made-up processor, no time is known: no fp8 units."
    )
    assert summarize([], baseline="fp32").headline == "Choose at least one dtype."
    alone = summarize(list(rows(dtypes=("fp32",)).values()), baseline="fp32").headline
    assert alone == "On a made-up processor, fp32 is predicted to take 4.00 ms; there is nothing to compare it with."


def test_details_tell_what_is_emulated_unsupported_or_too_large():
    said = " ".join(
        summarize(list(rows(TWO, device(memory_bytes=13 * 10**6), dtypes=FORMATS).values()), baseline="fp32").details
    )

    assert "**fp16**, emulated: no fp16 units." in said
    assert "**fp8**, unsupported: no fp8 units." in said
    assert "**fp32** may not fit: all its arrays take 34.3 MiB, and the memory is 12.4 MiB." in said
    assert "**fp64** does not fit" in said


def test_an_entered_time_in_an_emulated_format_is_explained_and_a_better_one_named():
    entered = rows(dtypes=("fp32", "bf16", "fp16"), times_s={"fp32": 1.0, "fp16": 2.5})
    (said,) = explain_entered(list(entered.values()), baseline="fp32")

    assert said == (
        "**fp16** took 2.5 times as long as fp32: no fp16 units. **bf16** has units of its own, with a peak of "
        "1.00 TFLOP/s: it is predicted to take 0.500 ms to 2.00 ms."
    )


def test_nothing_that_another_processor_of_the_same_name_did_stands_for_this_one():
    result = measured_on(ZEN_4, ok(2e-2, size=SIZE, dtype="bf16"))

    assert rows(on=ZEN_4, recorded=[result])["bf16"].origin is Origin.RECORDED
    for known in ({"recorded": [result]}, {"measured": [result]}):
        assert rows(on=ZEN_5, **known)["bf16"].origin is Origin.PREDICTED


def test_faster_format_that_is_not_usual_stands_below_and_devices_are_compared_in_the_usual_one():
    known = rows(dtypes=("fp32", "bf16", "fp8"))
    quick = replace(known["bf16"], dtype="fp8", speedup=UncertainValue(9.0, 8.0, 10.0), error=0.04)
    here = [known["fp32"], known["bf16"], quick]
    slower = UncertainValue(2 * known["bf16"].time.value, 1e-3, 1e-2)
    other = replace(known["bf16"], device=replace(known["bf16"].device, id="other", name="another"), time=slower)

    said = summarize(here, baseline="fp32", elsewhere=[other])

    assert "bf16 is predicted" in said.headline
    assert said.details[:3] == (
        "On another, bf16 is predicted to be 4.0 times as fast as fp32 (1.5 to 11), correct to 3 significant digits.",
        "In bf16 (predicted), from the fastest on: a made-up processor 1.00 ms, another 2.00 ms (2.0 times as long).",
        "**fp8** is predicted to be 9.0 times as fast as fp32 (8.0 to 10), correct to 2 significant digits.",
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (5e-3, "3 significant digits"),
        (5.1e-3, "2 significant digits"),
        (0.4, "1 significant digit"),
        (0.6, "0 significant digits"),
    ],
)
def test_digits_are_counted_by_a_relative_error_of_at_most_five_behind_the_last(error, said):
    known = rows(dtypes=("fp32", "bf16"))
    headline = summarize([known["fp32"], replace(known["bf16"], error=error)], baseline="fp32").headline

    assert headline.endswith(f", correct to {said}.")
