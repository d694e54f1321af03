"""Gaussian process regression, by hand and against NumPy's own solution."""

import numpy as np
import pytest

from gpuexplore.analysis.prediction.priors import _Component, covariance, observe

SAME = _Component(0.3, ("vendor",))
NEAR = _Component(0.4, (), (("size", 2.0),))


def case(vendor="A", size=1.0):
    return {"vendor": vendor, "size": size}


def test_cases_share_what_they_agree_in_and_likeness_fades_with_distance():
    assert covariance((SAME,), [case()], [case()])[0, 0] == pytest.approx(0.09)
    assert covariance((SAME,), [case("A")], [case("B")])[0, 0] == 0.0

    assert covariance((NEAR,), [case(size=1.0)], [case(size=3.0)])[0, 0] == pytest.approx(0.16 * np.exp(-0.5))

    assert covariance((NEAR,), [case(size=None)], [case(size=None)])[0, 0] == pytest.approx(0.16)
    assert covariance((NEAR,), [case(size=None)], [case(size=1.0)])[0, 0] == 0.0

    scaled = _Component(1.0, ("vendor",), scaled_by="size")
    assert covariance((scaled,), [case(size=0.5)], [case(size=0.2)])[0, 0] == pytest.approx(0.1)


def test_without_observations_the_prior_stands():
    found = observe((SAME, NEAR), [], [], [])([case()], 0.1)[0]
    assert (found.mean, found.relevance) == (0.0, ())
    assert found.deviation == pytest.approx((0.09 + 0.16 + 0.01) ** 0.5)


def test_one_observation_by_hand():
    process = observe((SAME,), [case()], [0.5], [0.4])
    (found,) = process([case()], 0.0)
    assert found.mean == pytest.approx(0.09 / (0.09 + 0.16) * 0.5)
    assert found.deviation == pytest.approx((0.09 - 0.09**2 / 0.25) ** 0.5)
    assert found.relevance == (pytest.approx(1.0),)


def test_it_is_the_textbooks_solution():
    seen = [case("A", 1.0), case("A", 2.0), case("B", 5.0)]
    values, noise = np.array([0.1, -0.2, 0.3]), np.array([0.1, 0.2, 0.3])
    asked = case("B", 3.0)
    gram = covariance((SAME, NEAR), seen, seen) + np.diag(noise**2)
    shared = covariance((SAME, NEAR), [asked], seen)[0]
    _, found = observe((SAME, NEAR), seen, values, noise)([case("A", 9.0), asked], 0.05)
    assert found.mean == pytest.approx(shared @ np.linalg.solve(gram, values))
    variance = covariance((SAME, NEAR), [asked], [asked])[0, 0] - shared @ np.linalg.solve(gram, shared) + 0.05**2
    assert found.deviation == pytest.approx(variance**0.5)


def test_uncertainty_grows_away_from_what_was_seen():
    process = observe((SAME, NEAR), [case("A", 1.0)], [0.2], [0.05])
    deviations = [found.deviation for found in process([case("A", size) for size in (1.0, 2.0, 4.0)], 0.0)]
    assert deviations == sorted(deviations)
    assert process([case("B", 9.0)], 0.0)[0].deviation > deviations[-1]
