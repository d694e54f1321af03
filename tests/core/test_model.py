"""The values refuse what cannot be, so that nobody else has to ask."""

from dataclasses import FrozenInstanceError, replace

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import (
    Accuracy,
    Case,
    Device,
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
    WorstElement,
)

SHAPE = Shape.of(m=2, k=3)
CASE = Case("matmul", SHAPE, "fp32", "numpy", "cpu")
EXPERIMENT = Experiment("matmul", (SHAPE, Shape.of(m=4, k=5)), ("fp32", "bf16"), ("numpy", "torch"), ("cpu", "cuda:0"))
MEASUREMENT = Measurement((1.0,), 1.0)


@pytest.mark.parametrize("length", [0, -1, 1.0, 2.5, "3", None, True, float("nan")])
def test_axis_is_a_whole_number_from_1(length):
    with pytest.raises(InvalidInput, match=r"axis n '.*': expected whole numbers from 1"):
        Shape.of(n=length)


def test_shape_is_read_by_axis_and_in_order():
    assert (SHAPE["k"], list(SHAPE), str(SHAPE)) == (3, [2, 3], "m=2,k=3")
    with pytest.raises(InvalidInput, match="axis 'q': expected m, k"):
        SHAPE["q"]


@pytest.mark.parametrize(("factor", "lengths"), [(0.5, [1, 1]), (2, [4, 6]), (0.0, [1, 1])])
def test_scaled_shape_keeps_every_axis_at_least_1(factor, lengths):
    assert list(SHAPE.scaled(factor)) == lengths


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"cache": "hot"}, "cache 'hot': expected cold, warm"),
        ({"cache": ""}, "cache '': expected"),
        ({"data": "random"}, "data 'random': expected normal, zeros, ones"),
        ({"threads": 0}, "threads '0': expected 1 to 1024"),
        ({"threads": 1025}, "threads '1025': expected 1 to 1024"),
        ({"budget_s": 0.0}, "budget '0.0': expected above 0, up to 60 seconds"),
        ({"budget_s": 60.1}, "budget '60.1': expected"),
        ({"budget_s": float("nan")}, "budget 'nan': expected"),
        ({"budget_s": float("inf")}, "budget 'inf': expected"),
    ],
)
def test_options_name_the_bad_value_and_the_accepted_ones(options, text):
    with pytest.raises(InvalidInput) as error:
        Options(**options)
    assert str(error.value).startswith(text)


@pytest.mark.parametrize("what", ["shapes", "dtypes", "implementations", "devices"])
def test_experiment_has_at_least_one_of_each_and_none_twice(what):
    with pytest.raises(InvalidInput, match=f"no {what}: give at least one"):
        replace(EXPERIMENT, **{what: ()})
    first = getattr(EXPERIMENT, what)[0]
    with pytest.raises(InvalidInput, match=f"{what} repeat: "):
        replace(EXPERIMENT, **{what: (first, first)})
    with pytest.raises(InvalidInput, match=r"and 999,988 more$"):
        replace(EXPERIMENT, **{what: (first,) * 10**6})


def test_cases_are_every_combination_small_shapes_first_and_groups_together():
    cases = EXPERIMENT.cases()

    assert len(cases) == len(set(cases)) == 16
    assert [case.shape for case in cases] == [EXPERIMENT.shapes[0]] * 8 + [EXPERIMENT.shapes[1]] * 8
    for first, second in zip(cases[::2], cases[1::2], strict=True):
        assert first.group == second.group
        assert (first.implementation, second.implementation) == ("numpy", "torch")


def test_group_is_all_but_the_implementation():
    assert CASE.group == replace(CASE, implementation="torch").group
    for change in (
        {"dtype": "fp64"},
        {"device": "cuda:0"},
        {"shape": Shape.of(m=1, k=1)},
        {"options": Options("cold")},
    ):
        assert CASE.group != replace(CASE, **change).group


@pytest.mark.parametrize("samples", [(), (0.0,), (-1.0,), (1.0, float("nan")), (float("inf"),)])
def test_samples_are_positive_seconds_and_at_least_one(samples):
    with pytest.raises(InvalidInput, match="samples"):
        Measurement(samples, 1.0)


def test_figures_of_a_measurement_are_order_statistics():
    one = Measurement(tuple(float(sample) for sample in range(11, 0, -1)), 99.0)

    assert (one.median_s, one.p20_s, one.p80_s, one.iqr_s, one.min_s) == (6.0, 3.0, 9.0, 5.0, 1.0)
    assert one.ci95_s == pytest.approx((2.918, 9.082), abs=1e-3)
    assert MEASUREMENT.ci95_s is None


@pytest.mark.parametrize(("error", "within"), [(0.0, True), (1e-6, True), (1.1e-6, False), (None, False)])
def test_accuracy_is_within_up_to_its_tolerance(error, within):
    assert Accuracy(error, 1e-6).within == within


@pytest.mark.parametrize(
    ("value", "allowed", "share"), [(1.5, 1.0, 0.5), (3.0, 1.0, 2.0), (1.5, 0.0, float("inf")), (1.0, 0.0, 0.0)]
)
def test_one_element_that_is_further_off_than_allowed_makes_an_output_wrong(value, allowed, share):
    worst = WorstElement("element [0]", value, 1.0, allowed)

    assert worst.share == share
    assert Accuracy(1e-9, 1e-6, worst).within == (share <= 1)


@pytest.mark.parametrize("status", list(Status))
def test_measurement_exists_with_ok_and_only_then_and_a_reason_with_all_others(status):
    ok = status is Status.OK
    right = Result(CASE, status, None if ok else "a reason", MEASUREMENT if ok else None)

    assert (right.measurement is not None) == ok
    with pytest.raises(InvalidInput, match="a measurement exists with status ok and only then"):
        replace(right, measurement=None if ok else MEASUREMENT)
    with pytest.raises(InvalidInput, match=f"status {status} needs {'no' if ok else 'a'} reason"):
        replace(right, reason="a reason" if ok else None)
    with pytest.raises(InvalidInput, match="reason"):
        replace(right, reason="a reason" if ok else "")


def test_peak_is_that_of_the_dtype_and_unit_and_never_a_neighbours():
    peak = Peak("fp32", "matrix", 1e12, "datasheet", "a leaflet")
    device = Device("cpu", "cpu", "x", peaks=(peak,))

    assert device.peak("fp32", "matrix") == peak
    assert device.peak("fp32", "vector") is None
    assert device.peak("fp16", "matrix") is None


@pytest.mark.parametrize("state", list(RunState))
def test_run_is_active_while_it_waits_or_measures(state):
    run = Run("id", "me", EXPERIMENT, state, Progress(0, 16))

    assert run.active == (state in (RunState.QUEUED, RunState.RUNNING))


@pytest.mark.parametrize("value", [SHAPE, CASE, EXPERIMENT, MEASUREMENT, Options()])
def test_values_are_frozen_and_hashable(value):
    assert hash(value) == hash(replace(value))
    with pytest.raises(FrozenInstanceError):
        setattr(value, next(iter(value.__slots__)), None)


def test_the_median_of_several_processes_is_that_of_their_medians():
    measurement = Measurement((1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 5.0), 1.0, processes=(5, 1, 1))

    assert measurement.process_medians_s == (1.0, 3.0, 5.0)
    assert measurement.median_s == 3.0
    assert measurement.covers_processes
    low, high = measurement.ci95_s
    assert low < 1.0
    assert high > 5.0


def test_what_changes_between_processes_widens_the_interval_of_one():
    alone = Measurement((1.0,) * 10, 1.0)
    known = Measurement((1.0,) * 10, 1.0, between_processes=0.1)

    assert (alone.ci95_s, alone.covers_processes) == ((1.0, 1.0), False)
    assert known.ci95_s == pytest.approx((0.9048, 1.1052), abs=1e-4)
    assert known.covers_processes


def test_samples_of_processes_must_add_up():
    with pytest.raises(InvalidInput, match=r"samples of each process .* expected 3 together"):
        Measurement((1.0,) * 3, 1.0, processes=(2, 2))


def test_processes_asked_for_are_bounded():
    with pytest.raises(InvalidInput, match="fresh processes '61': expected 1 to 60"):
        Options(repeat=61)


def test_share_of_an_accuracy_is_the_larger_of_the_norms_and_the_worst_elements():
    worst = WorstElement("element [0]", 1.0, 1.5, 2.0)

    assert Accuracy(1e-3, 1e-2, worst).share == 0.25
    assert Accuracy(5e-3, 1e-2, worst).share == 0.5
    assert Accuracy(None, 1e-2).share == float("inf")
    assert Accuracy(0.0, 0.0).within
    assert not Accuracy(1e-9, 0.0).within


def test_one_sample_carries_its_flag_whoever_made_the_result_and_several_do_not():
    single = Result(CASE, Status.OK, measurement=MEASUREMENT, flags=(Flag("warm", "x"),))
    several = replace(single, measurement=Measurement((1.0, 1.0), 1.0, processes=(1, 1)))

    assert [(flag.name, flag.evidence) for flag in single.flags] == [
        ("warm", "x"),
        ("one_sample", "1 sample: no interval"),
    ]
    assert replace(single, seed=1).flags == single.flags
    assert [flag.name for flag in several.flags] == ["warm"]


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", "Intel Xeon Gold 6248"),
        ("Intel(R) Xeon(R) Processor (Sapphire Rapids)", "Intel Xeon (Sapphire Rapids)"),
        ("Intel(R) Xeon(R) Processor (with AMX, Sapphire Rapids or newer)", "Intel Xeon"),
        ("AMD EPYC 9654 96-Core Processor (Zen 4)", "AMD EPYC 9654 (Zen 4)"),
        ("AMD Ryzen 7 PRO 6850U with Radeon Graphics", "AMD Ryzen 7 PRO 6850U"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"),
        ("CPU", "CPU"),
    ],
)
def test_a_device_has_a_short_name(title, shown):
    assert Device("cpu", "cpu", title).short_title == shown
