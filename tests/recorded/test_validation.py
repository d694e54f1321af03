"""A file without provenance is refused, with the file, the line and what is missing."""

import re
from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Accuracy, Shape
from gpuexplore.core.serialization import encode
from gpuexplore.measure.check.correctness import tolerance
from gpuexplore.operations import OPERATIONS
from gpuexplore.recorded import Provenance, validate
from gpuexplore.recorded.validation import check_result
from tests.analysis.made import ok
from tests.hardware.processors import ZEN_4, ZEN_5
from tests.recorded import made


def refused(path, written, **when):
    with pytest.raises(InvalidInput) as error:
        validate(made.write(path / "bad.jsonl", written), **when)
    return str(error.value)


def changed(number, **values):
    """Return the lines of a good recording with values of one line replaced; line 1 is the header."""
    written = made.lines()
    written[number - 1] = written[number - 1] | values
    return written


def test_a_good_file_is_a_recording(tmp_path):
    recording = validate(made.write(tmp_path / "made.jsonl"))

    assert recording.name == "made"
    assert recording.provenance == made.provenance()
    assert len(recording.results) == len(recording.experiments[0].cases()) == 8


@pytest.mark.parametrize("field", [field.name for field in fields(Provenance)])
@pytest.mark.parametrize("absent", [True, False])
def test_a_header_without_a_field_of_provenance_is_refused(tmp_path, field, absent):
    written = changed(1, **{field: None})
    if absent:
        del written[0][field]

    assert re.search(rf"^bad\.jsonl, line 1: .*missing: .*{field}", refused(tmp_path, written))


@pytest.mark.parametrize("nobody", ["", "  "])
def test_a_recording_by_nobody_is_refused(tmp_path, nobody):
    assert "missing: recorded_by" in refused(tmp_path, changed(1, recorded_by=nobody))


@pytest.mark.parametrize("version", [None, 0, 999])
def test_an_unknown_schema_is_refused(tmp_path, version):
    text = refused(tmp_path, changed(1, schema_version=version))

    assert text == f"bad.jsonl, line 1: schema_version '{version}': expected 1"


def test_a_gpu_without_its_driver_is_refused(tmp_path):
    devices = [made.lines()[0]["devices"][0] | {"driver": None}]

    assert "missing: driver of cuda:0" in refused(tmp_path, changed(1, devices=devices))


@pytest.mark.parametrize("commit", ["main", "0123456789ab-dirty", "12345"])
def test_a_commit_that_names_no_state_of_the_code_is_refused(tmp_path, commit):
    assert f"line 1: commit '{commit}'" in refused(tmp_path, changed(1, commit=commit))


@pytest.mark.parametrize("moment", ["2026-01-02T03:04:05", "2026-01-02T03:04:05+02:00", "yesterday"])
def test_a_moment_that_is_not_utc_is_refused(tmp_path, moment):
    assert refused(tmp_path, changed(1, recorded_utc=moment)).startswith("bad.jsonl, line 1: ")


def test_a_header_from_the_future_is_refused(tmp_path):
    text = refused(tmp_path, made.lines(), now=datetime(2026, 1, 1, tzinfo=UTC))

    assert "line 1: recorded_utc '2026-01-02T03:04:05+00:00': expected a time in the past" in text


@pytest.mark.parametrize("moment", ["2026-01-02T03:04:04+00:00", "2999-01-01T00:00:00+00:00"])
def test_a_result_from_before_the_recording_or_from_the_future_is_refused(tmp_path, moment):
    environment = made.lines()[1]["environment"] | {"started_utc": moment}

    assert f"line 2: started_utc '{moment}'" in refused(tmp_path, changed(2, environment=environment))


def test_experiments_are_needed_to_tell_results_from_a_selection(tmp_path):
    assert "line 1: no experiments" in refused(tmp_path, changed(1, experiments=[]))


def test_an_operation_stands_in_a_recording_once(tmp_path):
    twice = made.lines()[0]["experiments"] * 2

    assert "operations repeat: matmul, matmul" in refused(tmp_path, changed(1, experiments=twice))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("operation", "gemm", "operation 'gemm'"),
        ("implementations", ["fastest"], "implementation of matmul 'fastest'"),
        ("dtypes", ["fp9"], "dtype 'fp9'"),
        ("devices", ["cuda:7"], "device 'cuda:7': expected cuda:0"),
    ],
)
def test_names_that_this_version_or_the_header_does_not_know_are_refused(tmp_path, field, value, said):
    asked = made.lines()[0]["experiments"][0] | {field: value}

    assert f"line 1: {said}" in refused(tmp_path, changed(1, experiments=[asked]))


@pytest.mark.parametrize(
    ("field", "value"),
    [("device", "cuda:1"), ("dtype", "fp16"), ("implementation", "numpy"), ("operation", "triad")],
)
def test_a_result_of_no_case_of_the_header_is_refused(tmp_path, field, value):
    case = made.lines()[3]["case"] | {field: value}

    text = refused(tmp_path, changed(4, case=case))
    assert text.startswith("bad.jsonl, line 4: ")
    assert "is in no experiment of the header" in text


def test_a_case_that_stands_there_twice_is_refused(tmp_path):
    written = made.lines()

    assert "line 10: matmul m=64,k=64,n=64 fp32 numba-cuda on cuda:0 appears twice" in refused(
        tmp_path, [*written, written[1]]
    )


@pytest.mark.parametrize(("field", "value"), [("name", "another GPU"), ("driver", "1.0"), ("id", "cuda:1")])
def test_a_result_from_another_device_than_the_headers_is_refused(tmp_path, field, value):
    environment = made.lines()[1]["environment"]
    environment["device"][field] = value

    assert f"line 2: {field} of the device is '{value}'" in refused(tmp_path, changed(2, environment=environment))


def test_a_measurement_without_its_environment_is_refused(tmp_path):
    assert "line 2: a measurement without its environment" in refused(tmp_path, changed(2, environment=None))


@pytest.mark.parametrize("samples", [[], [float("nan")], [float("inf")], [0.0], [-1.0]])
def test_ok_needs_samples_that_are_numbers(tmp_path, samples):
    measurement = made.lines()[1]["measurement"] | {"samples_s": samples}

    assert refused(tmp_path, changed(2, measurement=measurement)).startswith("bad.jsonl, line 2: ")


def test_ok_without_a_measurement_is_refused(tmp_path):
    assert "line 2: a measurement exists with status ok" in refused(tmp_path, changed(2, measurement=None))


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_refused_wherever_it_stands(tmp_path, number):
    path = made.write(tmp_path / "bad.jsonl")
    path.write_text(path.read_text().replace('"first_call_s": 1.0', f'"first_call_s": {number}', 1))

    with pytest.raises(InvalidInput, match=f"line 2: number '{number}': expected finite numbers"):
        validate(path)


@pytest.mark.parametrize("text", ["", "\n", "not JSON", "[]", '{"schema_version": 1}'])
def test_a_file_that_is_no_recording_is_refused(tmp_path, text):
    path = tmp_path / "bad.jsonl"
    path.write_text(text)

    with pytest.raises(InvalidInput, match=r"bad\.jsonl, line 1: "):
        validate(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"nothere\.jsonl: "):
        validate(tmp_path / "nothere.jsonl")

    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match=r"binary\.jsonl: "):
        validate(tmp_path / "binary.jsonl")


def test_a_line_that_lacks_a_key_is_named(tmp_path):
    written = made.lines()
    del written[2]["measurement"]["samples_s"]

    assert refused(tmp_path, written).startswith("bad.jsonl, line 3: ")


def test_a_file_nested_too_deep_is_refused(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"a":' * 100_000)

    with pytest.raises(InvalidInput, match=r"bad\.jsonl, line 1: brackets are nested too deep"):
        validate(path)


def test_a_line_that_was_cut_off_is_shown(tmp_path):
    path = made.write(tmp_path / "bad.jsonl")
    path.write_text(path.read_text()[:-20])

    with pytest.raises(InvalidInput, match=r"line 9: '{.*' is not a JSON object on one line"):
        validate(path)


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ([], "axes of matmul '': expected m, k, n"),
        ([["m", 8]], "axes of matmul 'm=8': expected m, k, n"),
        ([["m", 8], ["k", 8], ["q", 8]], "axes of matmul 'm=8,k=8,q=8'"),
        ([["m", 8], ["k", 8], ["n", 10**12]], "n of matmul '1000000000000': expected 1 to"),
    ],
)
def test_a_shape_its_operation_does_not_have_is_refused(tmp_path, axes, said):
    asked = made.lines()[0]["experiments"][0] | {"shapes": [{"axes": axes}]}

    assert f"line 1: {said}" in refused(tmp_path, changed(1, experiments=[asked]))


@pytest.mark.parametrize("name", ["cores", "memory_bytes", "cache_bytes", "clock_hz"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_device_with_a_figure_that_is_not_above_zero_is_refused(tmp_path, name, value):
    devices = [made.lines()[0]["devices"][0] | {name: value}]

    assert f"line 1: {name} of cuda:0 '{value}" in refused(tmp_path, changed(1, devices=devices))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("flop_per_s", 0, "matrix peak of fp32"),
        ("flop_per_s", -1.0, "matrix peak of fp32"),
        ("dtype", "fp9", "peak of cuda:0 'fp9'"),
    ],
)
@pytest.mark.parametrize("number", [1, 2])
def test_a_peak_that_cannot_be_is_refused_in_the_header_and_beside_a_result(tmp_path, field, value, said, number):
    written = made.lines()
    device = written[0]["devices"][0] if number == 1 else written[1]["environment"]["device"]
    device["peaks"][0][field] = value

    assert f"line {number}: {said}" in refused(tmp_path, written)


@pytest.mark.parametrize("told", [{"relative_error": -1.0}, {"relative_error": 2.0}, {"tolerance": -1.0}])
def test_a_result_that_is_called_ok_against_its_own_accuracy_is_refused(tmp_path, told):
    accuracy = {"relative_error": 1e-7, "tolerance": 1e-6} | told

    assert refused(tmp_path, changed(2, accuracy=accuracy)).startswith("bad.jsonl, line 2: ")


@pytest.mark.parametrize("told", [{"first_call_s": -1.0}, {"first_call_s": 0.0}, {"batch": 0}])
def test_a_measurement_with_a_negative_time_or_count_is_refused(tmp_path, told):
    measurement = made.lines()[1]["measurement"] | told

    assert "line 2: first call and batch" in refused(tmp_path, changed(2, measurement=measurement))


def test_ok_without_its_accuracy_is_refused(tmp_path):
    assert "line 2: ok without an accuracy" in refused(tmp_path, changed(2, accuracy=None))


def test_a_tolerance_wider_than_rounding_explains_is_refused(tmp_path):
    told = {"relative_error": 0.9, "tolerance": 10.0}
    assert "line 2: tolerance '10.0': expected up to" in refused(tmp_path, changed(2, accuracy=told))


def test_units_of_a_relu_near_zero_widen_a_tolerance_as_far_as_the_seed_tells():
    shape = Shape.of(batch=33, inputs=17, hidden=65, outputs=11, layers=3)
    usual = tolerance(OPERATIONS["mlp_step"], shape, DTYPES["fp16"])
    wide = ok(operation="mlp_step", shape=shape, dtype="fp16", implementation="numpy")
    wide = replace(wide, accuracy=Accuracy(usual, 30 * usual))

    check_result(replace(wide, seed=0))
    for seed in (7, None):
        with pytest.raises(InvalidInput, match="tolerance"):
            check_result(replace(wide, seed=seed))


@pytest.mark.parametrize(("field", "value"), [("cores", 7), ("spec_key", "t4"), ("compute_capability", "1.0")])
def test_a_device_that_changed_since_the_header_is_refused(tmp_path, field, value):
    environment = made.lines()[1]["environment"]
    environment["device"][field] = value
    assert f"line 2: {field} of the device is {value!r}" in refused(tmp_path, changed(2, environment=environment))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"commit": "9999999"}, "measured at commit '9999999'"),
        ({"libraries": {}}, "without the versions of its libraries"),
    ],
)
def test_a_result_of_other_code_or_of_unknown_libraries_is_refused(tmp_path, values, said):
    environment = made.lines()[1]["environment"] | values
    assert said in refused(tmp_path, changed(2, environment=environment))


def test_a_result_from_another_processor_of_the_headers_name_is_refused(tmp_path):
    written = made.lines(made.experiment(on=("cpu",)), told=made.provenance(ZEN_4))
    written[1]["environment"]["device"]["identity"] = encode(ZEN_5.identity)
    assert "line 2: identity of the device is" in refused(tmp_path, written)


def test_a_recording_tells_which_processor_it_is_of_and_an_older_one_still_opens(tmp_path):
    written = made.lines(made.experiment(on=("cpu",)), told=made.provenance(ZEN_4))
    assert validate(made.write(tmp_path / "new.jsonl", written)).title == "AMD EPYC (Zen 4), 2026-01-02"
    for device in (*written[0]["devices"], *(line["environment"]["device"] for line in written[1:])):
        del device["identity"]

    old = validate(made.write(tmp_path / "old.jsonl", written))

    assert old.title == "AMD EPYC, 2026-01-02"
    assert {result.environment.device.identity for result in old.results} == {None}


def test_devices_that_share_an_id_are_refused(tmp_path):
    written = made.lines()
    written[0]["devices"] = [*written[0]["devices"], *written[0]["devices"]]
    assert "line 1: devices repeat: cuda:0, cuda:0" in refused(tmp_path, written)


def measured(**values):
    """Return the lines of a good recording, with values of its first measurement replaced."""
    written = made.lines()
    number = next(i for i, line in enumerate(written) if line.get("measurement"))
    written[number] = written[number] | {"measurement": written[number]["measurement"] | values}
    return written


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"samples_s": ["1e-6"] * 30}, "samples_s: text '1e-6': expected numbers"),
        ({"samples_s": "111111"}, "samples_s: text '111111': expected lists"),
        ({"samples_s": [True] * 30}, "samples_s: truth value 'True': expected numbers"),
        ({"samples_s": [None]}, "samples_s: null 'None': expected numbers"),
        ({"samples_s": [10**299 * 100]}, "number '1000"),
        ({"samples_s": [-1.0] * 30}, "each a positive number of seconds"),
        ({"first_call_s": "1"}, "first_call_s: text '1': expected numbers"),
        ({"batch": True}, "truth value 'True': expected whole numbers"),
    ],
)
def test_figures_of_a_wrong_type_are_refused(tmp_path, values, text):
    assert text in refused(tmp_path, measured(**values))


def test_numbers_that_nothing_can_hold_are_refused_by_their_length(tmp_path):
    path = made.write(tmp_path / "bad.jsonl")
    for digits in ("9" * 5000, "1e400", "NaN"):
        path.write_text(path.read_text().replace('"schema_version": 1', f'"schema_version": {digits}', 1))
        with pytest.raises(InvalidInput, match=r"bad\.jsonl, line 1: number "):
            validate(path)
        made.write(path)


def test_cache_of_a_level_below_one_is_refused(tmp_path):
    device = made.lines()[0]["devices"][0]
    bandwidth = {"bytes_per_s": 1e12, "kind": "measured_ceiling", "source": "a loop"}
    caches = [{"level": -1, "size_bytes": 32768, "bandwidth": bandwidth}]

    assert "level of a cache" in refused(tmp_path, changed(1, devices=[device | {"caches": caches}]))


def test_recording_tells_the_cases_it_lacks(tmp_path):
    whole, cut = (validate(made.write(tmp_path / "made.jsonl", made.lines()[:end])) for end in (None, -2))

    assert whole.missing == ()
    assert cut.missing == whole.experiments[0].cases()[-2:]


def test_what_a_shape_claims_is_not_computed_however_large_it_is(monkeypatch):
    large = ok(operation="softmax", shape=Shape.of(m=16_000_000, n=16_000_000), dtype="fp16", implementation="numpy")
    large = replace(large, accuracy=Accuracy(0.0, 0.05), seed=1)
    monkeypatch.setattr("gpuexplore.recorded.validation.make_inputs", lambda *_, **__: pytest.fail("inputs are made"))

    assert check_result(large) == 0
    product = ok(operation="matmul", shape=Shape.of(m=4096, k=4096, n=4096))
    with pytest.raises(InvalidInput, match="tolerance"):
        check_result(replace(product, accuracy=Accuracy(0.0, 0.05), seed=1))  # nothing widens it
    with pytest.raises(InvalidInput, match="tolerance"):
        check_result(replace(large, accuracy=Accuracy(0.0, 0.5)))
    small = replace(large, case=replace(large.case, shape=Shape.of(m=64, n=64)))
    assert check_result(small, most_work=1) == 0, "the rest of a file's share is spent"
