"""One codec for all values: what is encoded is strict JSON, and comes back as it was."""

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import (
    Accuracy,
    Bandwidth,
    Case,
    Device,
    Environment,
    Experiment,
    Flag,
    Measurement,
    Options,
    Peak,
    Progress,
    Result,
    Run,
    RunState,
    Shape,
    Status,
    Telemetry,
    WorstElement,
)
from gpuexplore.core.serialization import decode, encode

DEVICE = Device(
    "cuda:0",
    "cuda",
    "a GPU",
    clock_hz=1.4e9,
    native=("fp32", "bf16"),
    peaks=(Peak("fp32", "vector", 1e13, "datasheet", "a leaflet"),),
    bandwidth=Bandwidth(1e12, "datasheet", "a leaflet"),
    notes=("a note",),
)
ENVIRONMENT = Environment(
    DEVICE,
    "2026-01-02T03:04:05+00:00",
    "0.1.0",
    None,
    "3.12",
    "linux",
    {"numpy": "2.4"},
    settings={"OMP_NUM_THREADS": "2"},
    threads=2,
    before=Telemetry(1e9, 40.0, 99.5, ("software power cap",), 0),
)
CASE = Case("matmul", Shape.of(m=2, k=3, n=5), "bf16", "torch", "cuda:0", Options("cold", "zeros", 2, 0.5))
OK = Result(
    CASE,
    Status.OK,
    measurement=Measurement((1.0, 2.0), 3.0, batch=7),
    accuracy=Accuracy(1e-3, 1e-2, WorstElement("element [1, 4]", 1.5, 1.25, 0.5)),
    flags=(Flag("noisy", "50 %"), Flag("cold", "2 MiB")),
    environment=ENVIRONMENT,
)
SKIPPED = Result(CASE, Status.SKIPPED, "too slow")
EXPERIMENT = Experiment("matmul", (CASE.shape,), ("bf16",), ("torch",), ("cuda:0",), CASE.options)
RUN = Run("id", "me", EXPERIMENT, RunState.RUNNING, Progress(1, 2, CASE), (OK, SKIPPED), created_utc="2026")


@pytest.mark.parametrize(
    "value", [CASE.shape, CASE, DEVICE, ENVIRONMENT, OK, SKIPPED, EXPERIMENT, RUN], ids=lambda one: type(one).__name__
)
def test_value_survives_strict_json(value):
    text = json.dumps(encode(value), allow_nan=False)

    assert decode(type(value), json.loads(text)) == value


@given(
    st.builds(
        Case,
        st.text(),
        st.dictionaries(st.text(), st.integers(1), max_size=4).map(lambda axes: Shape(tuple(axes.items()))),
        st.text(),
        st.text(),
        st.text(),
        st.builds(
            Options,
            st.sampled_from([None, "cold", "warm"]),
            st.sampled_from(["normal", "zeros", "ones"]),
            st.none() | st.integers(1, 1024),
            st.floats(1e-6, 60),
        ),
    )
)
def test_any_case_survives_strict_json(case):
    assert decode(Case, json.loads(json.dumps(encode(case), allow_nan=False))) == case


def test_unknown_keys_are_ignored_and_missing_ones_take_their_default():
    data = encode(CASE) | {"from_the_future": 1}
    del data["options"]

    assert decode(Case, data) == Case("matmul", CASE.shape, "bf16", "torch", "cuda:0")
    assert decode(Accuracy, {"relative_error": 1e-3, "tolerance": 1e-2}) == Accuracy(1e-3, 1e-2, worst=None)


@pytest.mark.parametrize(
    ("kind", "data", "error"),
    [
        (Status, "perfect", ValueError),
        (Flag, {"name": "shiny", "evidence": "x"}, ValueError),
        (Shape, {"axes": [["n", 0]]}, InvalidInput),
        (Shape, {"axes": [["n"]]}, ValueError),
        (Case, {"operation": "matmul"}, TypeError),
        (Options, {"budget_s": "soon"}, ValueError),
        (Result, encode(OK) | {"status": "skipped"}, InvalidInput),
    ],
)
def test_data_of_another_kind_are_refused(kind, data, error):
    with pytest.raises(error):
        decode(kind, data)


def test_what_has_its_default_is_left_out_where_the_field_says_so():
    assert "layout" not in encode(Options())
    assert encode(Options(layout="NT"))["layout"] == "NT"
    assert "align" not in encode(Options())
    assert "per_round" not in encode(Measurement((1.0,), 1.0))
    assert encode(Measurement((1.0,) * 4, 1.0, per_round=2))["per_round"] == 2
    assert encode(Options())["repeat"] == 1


def test_plain_values_pass_through():
    assert encode({"a": (1, None, "x"), 2: [True]}) == {"a": [1, None, "x"], "2": [True]}
    assert decode(int, 3.0) == 3
    assert decode(Literal["a", "b"], "a") == "a"
    assert decode(tuple[int, str], [1, "x"]) == (1, "x")
    assert decode(int | None, None) is None
