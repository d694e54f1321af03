"""Predictions of GPUs that were left out: how wrong they are, how often their intervals hold, and that the file is new.

Some devices are left out here, each for a kind of its own; `benchmarks/prediction.py` leaves out every one.
"""

import json
from dataclasses import replace
from itertools import pairwise
from math import log

import numpy as np
import pytest

from gpuexplore.analysis.prediction.gpu import _from_data, fitted, observations
from gpuexplore.analysis.prediction.gpu.terms import package_data
from scripts.fit_prediction import (
    DEVIATIONS,
    FEW,
    TARGET,
    as_data,
    coefficients_of,
    corrected,
    fit_intervals,
    left_out,
    without,
)
from tests.unchanged import heavy

LEFT_OUT = ("a100-sxm4-80gb", "v100-sxm2-16gb", "gb300")
ALL = observations()


def judged_without(key):
    """Return the errors of predictions of a device that was left out, and their deviations."""
    others = [each for each in ALL if each.facts.device != key]
    own = [each for each in ALL if each.facts.device == key and not each.searched]
    predictor = corrected(others, coefficients_of(others), fitted().intervals)
    assert key not in predictor.known["device"]
    assert len(own) > 100
    judged = predictor.judged([each.facts for each in own])
    return np.log(judged.times_s) - np.log([each.time_s for each in own]), judged.deviations


@heavy()
@pytest.mark.long
def test_devices_that_were_left_out_are_predicted_about_as_well_as_two_teams_agree_and_within_their_intervals():
    errors, deviations = map(np.concatenate, zip(*map(judged_without, LEFT_OUT), strict=True))
    wrong = np.abs(np.expm1(errors))

    assert np.median(wrong) < 0.15
    assert np.quantile(wrong, 0.9) < 0.4
    assert 0.85 <= (np.abs(errors) <= DEVIATIONS * deviations).mean() <= 0.98


@heavy()
@pytest.mark.long
def test_intervals_of_a_team_that_was_left_out_hold_at_each_duration():
    held, took_s = [], []
    for others, own in without(ALL, "team"):
        predictor = corrected(others, coefficients_of(others), fitted().intervals)
        judged = predictor.judged([each.facts for each in own])
        errors = np.log(judged.times_s) - np.log([each.time_s for each in own])
        held += (np.abs(errors) <= DEVIATIONS * judged.deviations).tolist()
        took_s += [each.time_s for each in own]

    assert len(held) == len(ALL)
    assert 0.85 <= np.mean(held) <= 0.95
    for least_s, most_s in pairwise((0.0, 8e-6, 1.6e-5, 1e-4, np.inf)):
        regime = [each for each, time_s in zip(held, took_s, strict=True) if least_s <= time_s < most_s]
        assert len(regime) > 300
        assert 0.85 <= np.mean(regime) <= 0.95


@heavy()
@pytest.mark.long
def test_what_ships_is_what_the_measurements_give():
    shipped, found = fitted().coefficients, dict(coefficients_of(ALL))
    assert shipped.keys() == found.keys()
    assert {name for name in found if abs(found[name] - shipped[name]) > 0.02} == set()


def test_every_observation_has_its_weight():
    assert len(package_data()["weights"]) == len(ALL)
    assert set(fitted().observed) == {f"{one.facts.family}/{one.facts.rate}" for one in ALL}


def test_what_is_written_is_read_again():
    again = _from_data(json.loads(json.dumps(as_data(fitted()))), ALL)
    facts = ALL[0].facts
    assert again.estimate(facts).time_s == pytest.approx(fitted().estimate(facts).time_s)
    assert json.loads(TARGET.read_text(encoding="utf-8")) == package_data()


def test_a_device_that_nobody_measured_is_less_sure_than_one_that_was_measured_at_this_shape():
    seen = next(one for one in ALL if one.facts.device == "t4" and one.facts.family == "product")
    new = fitted().estimate(replace(seen.facts, device="", architecture=""))
    known = fitted().estimate(seen.facts)
    assert new.deviation > 1.3 * known.deviation
    assert (known.measured_device, new.measured_device) == (True, False)
    assert known.nearby[0].relevance > 0.9 > new.nearby[0].relevance
    assert abs(log(known.time_s / seen.time_s)) < 0.5


def test_no_coefficient_knows_a_device_by_its_name():
    keys = {one.facts.device for one in ALL}
    assert not [name for name in fitted().coefficients if name.partition(":")[2] in keys]


@heavy()
@pytest.mark.long
def test_intervals_are_twice_as_wide_where_errors_are_twice_as_large():
    own = [one for one in ALL if one.facts.device == "t4"]
    others = [one for one in ALL if one.facts.device != "t4"][:: max(len(ALL) // 400, 1)]
    assert len(own) >= FEW
    left = [*left_out(others, own)]
    found = fit_intervals(left)
    wide = fit_intervals([type(each)(2 * each.errors, each.weights, each.regimes) for each in left])
    assert wide["family:product"] - found["family:product"] + wide["constant"] - found["constant"] == pytest.approx(
        log(2), abs=0.25
    )
