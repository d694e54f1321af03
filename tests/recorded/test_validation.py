"""A file without provenance is refused, with the file, the line and what is missing."""

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

CACHE = {"size_bytes": 32768, "bandwidth": {"bytes_per_s": 1e12, "kind": "measured_ceiling", "source": "a loop"}}
PROVENANCE = [field.name for field in fields(Provenance)]


def refused(path, written, **when):
    with pytest.raises(InvalidInput) as error:
        validate(made.write(path / "bad.jsonl", written), **when)
    return str(error.value)


def changed(number, **values):
    """Return the lines of a good recording with values of one line replaced; line 1 is the header."""
    written = made.lines()
    written[number - 1] = written[number - 1] | values
    return written


def without(number, *keys):
    """Return the lines of a good recording that lack a key of one line."""
    *to, last = keys
    written = made.lines()
    place = written[number - 1]
    for key in to:
        place = place[key]
    del place[last]
    return written


def asked(**values):
    return changed(1, experiments=[made.lines()[0]["experiments"][0] | values])


def device(**values):
    return changed(1, devices=[made.lines()[0]["devices"][0] | values])


def environment(**values):
    return changed(2, environment=made.lines()[1]["environment"] | values)


def measured_on(**values):
    """Return the lines of a good recording, of whose first result the device differs."""
    return environment(device=made.lines()[1]["environment"]["device"] | values)


def measurement(**values):
    return changed(2, measurement=made.lines()[1]["measurement"] | values)


def accuracy(**values):
    return changed(2, accuracy={"relative_error": 1e-7, "tolerance": 1e-6} | values)


def peak(number, field, value):
    """Return the lines of a good recording with a peak of the header, or of the first result's device, changed."""
    written = made.lines()
    place = written[0]["devices"][0] if number == 1 else written[1]["environment"]["device"]
    place["peaks"][0][field] = value
    return written


def other_processor():
    written = made.lines(made.experiment(on=("cpu",)), told=made.provenance(ZEN_4))
    written[1]["environment"]["device"]["identity"] = encode(ZEN_5.identity)
    return written


LINES = made.lines()
REFUSED = [  # lines of a file, and what is said of them
    *((changed(1, schema_version=version), f"1: schema_version '{version}': expected 1") for version in (None, 0, 999)),
    *((changed(1, recorded_by=nobody), "missing: recorded_by") for nobody in ("", "  ")),
    (device(driver=None), "missing: driver of cuda:0"),
    *((changed(1, commit=name), f"1: commit '{name}'") for name in ("main", "0123456789ab-dirty", "12345")),
    *(
        (changed(1, recorded_utc=moment), f"1: time '{moment}': expected ISO 8601 in UTC")
        for moment in ("2026-01-02T03:04:05", "2026-01-02T03:04:05+02:00", "yesterday")
    ),
    *(  # before the recording began, and in the future
        (environment(started_utc=moment), f"2: started_utc '{moment}'")
        for moment in ("2026-01-02T03:04:04+00:00", "2999-01-01T00:00:00+00:00")
    ),
    (changed(1, experiments=[]), "1: no experiments"),
    (changed(1, experiments=LINES[0]["experiments"] * 2), "1: operations repeat: matmul, matmul"),
    (changed(1, devices=LINES[0]["devices"] * 2), "1: devices repeat: cuda:0, cuda:0"),
    # names that this version or the header does not know
    (asked(operation="gemm"), "1: operation 'gemm'"),
    (asked(implementations=["fastest"]), "1: implementation of matmul 'fastest'"),
    (asked(dtypes=["fp9"]), "1: dtype 'fp9'"),
    (asked(devices=["cuda:7"]), "1: device 'cuda:7': expected cuda:0"),
    # shapes that the operation does not have
    (asked(shapes=[{"axes": []}]), "1: axes of matmul '': expected m, k, n"),
    (asked(shapes=[{"axes": [["m", 8]]}]), "1: axes of matmul 'm=8': expected m, k, n"),
    (asked(shapes=[{"axes": [["m", 8], ["k", 8], ["q", 8]]}]), "1: axes of matmul 'm=8,k=8,q=8'"),
    (asked(shapes=[{"axes": [["m", 8], ["k", 8], ["n", 10**12]]}]), "1: n of matmul '1000000000000': expected 1 to"),
    # cases that the header does not have, or that stand there twice
    *(
        (changed(4, case=LINES[3]["case"] | case), "is in no experiment of the header")
        for case in ({"device": "cuda:1"}, {"dtype": "fp16"}, {"implementation": "numpy"}, {"operation": "triad"})
    ),
    ([*LINES, LINES[1]], "10: matmul m=64,k=64,n=64 fp32 numba-cuda on cuda:0 appears twice"),
    # devices: impossible figures, and others than the header's
    *(
        (device(**{name: value}), f"1: {name} of cuda:0 '{value}")
        for name in ("cores", "memory_bytes", "cache_bytes", "clock_hz")
        for value in (0, -1)
    ),
    *(
        (peak(number, "flop_per_s", value), f"{number}: matrix peak of fp32")
        for number in (1, 2)
        for value in (0, -1.0)
    ),
    *((peak(number, "dtype", "fp9"), f"{number}: peak of cuda:0 'fp9'") for number in (1, 2)),
    (device(caches=[CACHE | {"level": -1}]), "level of a cache"),
    *(
        (measured_on(**{name: value}), f"2: {name} of the device is {value!r}")
        for name, value in {
            "name": "another GPU",
            "driver": "1.0",
            "id": "cuda:1",
            "cores": 7,
            "spec_key": "t4",
            "compute_capability": "1.0",
        }.items()
    ),
    (other_processor(), "2: identity of the device is"),
    # circumstances of a measurement
    (changed(2, environment=None), "2: a measurement without its environment"),
    (environment(commit="9999999"), "measured at commit '9999999'"),
    (environment(libraries={}), "without the versions of its libraries"),
    # measurements and their accuracy
    (changed(2, measurement=None), "2: a measurement exists with status ok"),
    *((measurement(samples_s=samples), "2: ") for samples in ([], [0.0], [-1.0])),
    *((measurement(samples_s=[float(number)]), "2: number '") for number in ("nan", "inf")),
    (measurement(samples_s=["1e-6"] * 30), "samples_s: text '1e-6': expected numbers"),
    (measurement(samples_s="111111"), "samples_s: text '111111': expected lists"),
    (measurement(samples_s=[True] * 30), "samples_s: truth value 'True': expected numbers"),
    (measurement(samples_s=[None]), "samples_s: null 'None': expected numbers"),
    (measurement(samples_s=[10**299 * 100]), "number '1000"),
    (measurement(samples_s=[-1.0] * 30), "each a positive number of seconds"),
    (measurement(first_call_s="1"), "first_call_s: text '1': expected numbers"),
    (measurement(batch=True), "truth value 'True': expected whole numbers"),
    (without(3, "measurement", "samples_s"), "3: "),
    *(
        (measurement(**values), "2: first call and batch")
        for values in ({"first_call_s": -1.0}, {"first_call_s": 0.0}, {"batch": 0})
    ),
    (changed(2, accuracy=None), "2: ok without an accuracy"),
    *(
        (accuracy(**values), "2: ")
        for values in ({"relative_error": -1.0}, {"relative_error": 2.0}, {"tolerance": -1.0})
    ),
    (accuracy(relative_error=0.9, tolerance=10.0), "2: tolerance '10.0': expected up to"),
]


def test_a_good_file_is_a_recording(tmp_path):
    recording = validate(made.write(tmp_path / "made.jsonl"))

    assert recording.name == "made"
    assert recording.provenance == made.provenance()
    assert len(recording.results) == len(recording.experiments[0].cases()) == 8


@pytest.mark.parametrize(("written", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_cannot_be_is_refused_with_its_line(tmp_path, written, said):
    text = refused(tmp_path, written)

    assert text.startswith("bad.jsonl, line ")
    assert said in text.removeprefix("bad.jsonl, line ")


@pytest.mark.parametrize("field", PROVENANCE)
def test_a_header_without_a_field_of_provenance_is_refused(tmp_path, field):
    for written in (without(1, field), changed(1, **{field: None})):
        text = refused(tmp_path, written)
        assert text.startswith("bad.jsonl, line 1: ")
        assert field in text.partition("missing: ")[2]


def test_a_header_from_the_future_is_refused(tmp_path):
    text = refused(tmp_path, made.lines(), now=datetime(2026, 1, 1, tzinfo=UTC))

    assert "line 1: recorded_utc '2026-01-02T03:04:05+00:00': expected a time in the past" in text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        *(
            ('"first_call_s": 1.0', f'"first_call_s": {number}', f"line 2: number '{number}': expected finite numbers")
            for number in ("NaN", "-Infinity", "1e999")
        ),
        *(
            ('"schema_version": 1', f'"schema_version": {digits}', r"bad\.jsonl, line 1: number ")
            for digits in ("9" * 5000, "1e400", "NaN")
        ),
    ],
)
def test_a_number_that_is_not_finite_or_too_long_is_refused_wherever_it_stands(tmp_path, old, new, said):
    path = made.write(tmp_path / "bad.jsonl")
    path.write_text(path.read_text().replace(old, new, 1))

    with pytest.raises(InvalidInput, match=said):
        validate(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "") for text in ("", "\n", "not JSON", "[]", '{"schema_version": 1}')),
        ('{"a":' * 100_000, "brackets are nested too deep"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path, text, said):
    path = tmp_path / "bad.jsonl"
    path.write_text(text)

    with pytest.raises(InvalidInput, match=rf"bad\.jsonl, line 1: {said}"):
        validate(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe")
    for name in ("nothere", "binary"):
        with pytest.raises(InvalidInput, match=rf"{name}\.jsonl: "):
            validate(tmp_path / f"{name}.jsonl")


def test_a_line_that_was_cut_off_is_shown(tmp_path):
    path = made.write(tmp_path / "bad.jsonl")
    path.write_text(path.read_text()[:-20])

    with pytest.raises(InvalidInput, match=r"line 9: '{.*' is not a JSON object on one line"):
        validate(path)


def test_units_of_a_relu_near_zero_widen_a_tolerance_as_far_as_the_seed_tells():
    shape = Shape.of(batch=33, inputs=17, hidden=65, outputs=11, layers=3)
    usual = tolerance(OPERATIONS["mlp_step"], shape, DTYPES["fp16"])
    wide = ok(operation="mlp_step", shape=shape, dtype="fp16", implementation="numpy")
    wide = replace(wide, accuracy=Accuracy(usual, 30 * usual))

    check_result(replace(wide, seed=0))
    for seed in (7, None):
        with pytest.raises(InvalidInput, match="tolerance"):
            check_result(replace(wide, seed=seed))


def test_a_recording_names_its_processor_and_an_older_one_still_opens(tmp_path):
    written = made.lines(made.experiment(on=("cpu",)), told=made.provenance(ZEN_4))
    assert validate(made.write(tmp_path / "new.jsonl", written)).title == "AMD EPYC (Zen 4), 2026-01-02"
    for each in (*written[0]["devices"], *(line["environment"]["device"] for line in written[1:])):
        del each["identity"]

    old = validate(made.write(tmp_path / "old.jsonl", written))

    assert old.title == "AMD EPYC, 2026-01-02"
    assert {result.environment.device.identity for result in old.results} == {None}


def test_a_recording_lists_the_cases_it_lacks(tmp_path):
    whole, cut = (validate(made.write(tmp_path / "made.jsonl", made.lines()[:end])) for end in (None, -2))

    assert whole.missing == ()
    assert cut.missing == whole.experiments[0].cases()[-2:]


def test_a_shape_of_any_size_in_a_file_is_not_computed(monkeypatch):
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
