"""A sweep of a device: its cases, what it changes, and sentences about a GPU that is unlike its board."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.prediction import calibrate, predict
from gpuexplore.analysis.prediction.request import chosen, compared, sweep_of, unlike_its_kind
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Measurement
from gpuexplore.hardware import ACCELERATORS, as_device, table_device
from tests.analysis.made import device, ok

A100 = replace(table_device("a100-sxm4-80gb"), id="cuda:0", kind="cuda", name="NVIDIA A100-SXM4-80GB")


def swept(on=A100, slower=lambda case: 1.0):
    """Return the results of a sweep that takes as long as predicted for the board, times a factor."""
    board = calibrate()
    found = []
    for experiment in sweep_of(on):
        for case in experiment.cases():
            time_s = predict(case, on, board).time_s * slower(case)
            result = ok(time_s)
            environment = replace(result.environment, device=on)
            measurement = Measurement(tuple(time_s * (1 + step / 1e3) for step in range(-5, 6)), None)
            found.append(replace(result, case=case, environment=environment, measurement=measurement))
    return found


@pytest.mark.parametrize("row", ACCELERATORS, ids=lambda row: row.key)
def test_a_sweep_has_10_to_14_cases_of_six_operations_or_says_what_is_unknown(row):
    if as_device(row).bandwidth is None:
        with pytest.raises(InvalidInput, match="is known"):
            sweep_of(as_device(row))
        return
    experiments = sweep_of(as_device(row))
    assert 10 <= sum(len(experiment.cases()) for experiment in experiments) <= 14
    assert len({experiment.operation for experiment in experiments}) == 6


def test_cases_are_chosen_from_every_group_and_over_sizes():
    cases = [("a", size) for size in range(9)] + [("b", size) for size in (5, 1, 3)] + [("c", 0)]

    assert len(set(chosen(cases, 5))) == 5
    assert {cases[at][0] for at in chosen(cases, 3)} == {"a", "b", "c"}
    assert [cases[at][1] for at in chosen(cases[:9], 3)] == [1, 4, 7]
    assert sorted(chosen(cases, 13)) == list(range(13))


def test_a_slow_device_is_predicted_slower_where_it_was_not_measured():
    rows = compared(A100, swept(slower=lambda _: 1.5), ())

    assert len([row for row in rows if row.measured_s]) == 14
    for row in rows:
        assert 1.15 < row.now.time_s / row.before.time_s < 1.6


def test_nothing_is_said_of_a_gpu_that_is_as_its_board_nor_of_a_cpu():
    assert unlike_its_kind(A100, swept()) == ()
    assert unlike_its_kind(device(), [ok(1.0)]) == ()


def test_products_of_all_sizes_that_are_slow_are_said_with_power_and_clock():
    (said,) = unlike_its_kind(A100, swept(slower=lambda case: 1.6 if case.operation != "copy" else 1.0)[:11])

    assert "All 11 products took 1.6 to 1.6 times as long as predicted for " in said
    assert "power limit" in said


def test_fast_memory_is_usual_and_slow_memory_is_said_with_the_rows_figure():
    streams = ("vector_add", "copy")
    (said,) = unlike_its_kind(A100, swept(slower=lambda case: 2.5 if case.operation in streams else 1.0))

    assert said.startswith("Memory: ")
    assert "2.04 TB/s" in said
    assert unlike_its_kind(A100, swept(slower=lambda case: 0.95 if case.operation in streams else 1.0)) == ()


def test_fp32_as_fast_as_tf32_is_said():
    as_tf32 = {
        case.shape: predict(case, A100, calibrate()).time_s
        for case in sweep_of(A100)[0].cases()
        if case.dtype == "tf32"
    }

    def factor(case):
        is_fp32 = case.operation == "matmul" and case.dtype == "fp32"
        return as_tf32[case.shape] / predict(case, A100, calibrate()).time_s if is_fp32 else 1.0

    assert "TF32 is switched on for fp32" in " ".join(unlike_its_kind(A100, swept(slower=factor)))


def test_multiprocessors_of_no_variant_are_said():
    (said,) = unlike_its_kind(replace(A100, spec_key=None, cores=100), ())

    assert "the driver counts 100 multiprocessors, the table 108" in said
