"""The same call under other conditions: which are taken, on what, and that they lose nothing."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gpuexplore.backends import load_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Contrast, Shape
from gpuexplore.measure.conditions.isolation import ProgressHooks
from gpuexplore.measure.sample import contrast
from gpuexplore.measure.sample.contrast import GRAPH_CALLS, _other_cache, take_contrasts
from gpuexplore.measure.sample.timing import MIN_SAMPLES, Sampling
from gpuexplore.operations import OPERATIONS
from tests.measure.fakes import CPU, GPU, QUIET, FakeClock, FakeEventTimer, FakeWork, candidate, case

CALL_S = 10e-6


def group(clock=None, elsewhere_s=CALL_S):
    """Return a group whose calls take `elsewhere_s` where arrays lie at other addresses."""
    made = SimpleNamespace(operation=OPERATIONS["vector_add"], dtype=DTYPES["fp32"], built=[], checked=[])
    made.clock, made.isolation = clock or FakeClock(), QUIET
    made.timed_reference = SimpleNamespace(inputs=())

    def build(case, shape, inputs):
        made.built.append(case.options.align)
        work = FakeWork(clock, [elsewhere_s])
        return candidate(work, timer=FakeEventTimer(clock))

    made.build = build
    return made


@pytest.fixture(autouse=True)
def checks(monkeypatch):
    monkeypatch.setattr(contrast, "checked", lambda candidate, group, _: group.checked.append(candidate))


def sampled(work, *, capture=lambda *_: None, **about):
    """Return a sampling of `work` whose library captures graphs as `capture` does."""
    made = candidate(work, timer=FakeEventTimer(work.clock), **about)
    backend = SimpleNamespace(
        capture=capture, flusher=lambda *_: lambda: None, synchronize=load_backend("numpy").synchronize
    )
    return Sampling(replace(made, backend=backend), CALL_S, first_call_s=1.0)


def contrasts(sampling, group):
    return tuple(take_contrasts(sampling, group, ProgressHooks()))


@pytest.mark.parametrize(
    ("device", "cache", "length", "other"),
    [
        (CPU, None, 8, None),
        (CPU, "warm", 8, None),
        (CPU, "both", 8, "cold"),
        (GPU, None, 8, "warm"),
        (GPU, None, 10**6, None),
        (GPU, "both", 10**6, "warm"),
        (GPU, "cold", 8, None),
        (replace(GPU, cache_bytes=None), None, 8, None),
    ],
)
def test_other_state_of_the_caches_is_measured_when_asked_for_and_for_small_cases_on_a_gpu(
    device, cache, length, other
):
    asked = SimpleNamespace(case=case(shape=Shape.of(n=length), device=device.id, cache=cache), device=device)

    assert _other_cache(asked, group()) == other


@pytest.mark.parametrize(("align", "other"), [("library", "pages"), ("pages", "library")])
@pytest.mark.parametrize(("elsewhere_s", "differs"), [(0.9 * CALL_S, True), (1.1 * CALL_S, True), (CALL_S, False)])
def test_arrays_elsewhere_are_a_contrast_where_they_make_a_difference(align, other, elsewhere_s, differs):
    work = FakeWork(FakeClock(), [CALL_S])
    open_group = group(work.clock, elsewhere_s)
    found = contrasts(sampled(work, align=align), open_group)

    assert open_group.built == [other]
    assert [each.case.options.align for each in open_group.checked] == [align]  # whose turn it is stays one case
    assert [(each.condition, each.median_s) for each in found] == (
        [(other, pytest.approx(elsewhere_s))] if differs else []
    )


def test_arrays_elsewhere_are_not_tried_where_calls_take_long_caches_are_cold_or_a_gpu_has_them():
    work = FakeWork(FakeClock(), [CALL_S])
    long = replace(sampled(work), call_s=1.01 * contrast.PLACED_CALL_S)
    cold = sampled(work, flush=lambda: None)
    on_gpu = sampled(work, on=GPU)

    for each in (long, cold, on_gpu):
        open_group = group(work.clock)
        contrasts(each, open_group)
        assert open_group.built == []


def test_other_state_gets_samples_of_its_own_until_it_has_settled():
    work = FakeWork(FakeClock(), [CALL_S])
    found = contrasts(sampled(work, cache="both"), group(clock=work.clock))

    assert [one.condition for one in found] == ["cold"]
    assert len(found[0].samples_s) >= MIN_SAMPLES
    assert found[0].median_s == pytest.approx(CALL_S)


def test_graph_of_many_calls_gives_seconds_of_one():
    work = FakeWork(FakeClock(), [CALL_S])
    asked = []

    def capture(run, device, calls):
        asked.append((run, device, calls))
        return lambda: work.clock.spend(calls * CALL_S / 5)

    (found,) = contrasts(sampled(work, capture=capture), group(clock=work.clock))

    assert asked == [(work, "cpu", GRAPH_CALLS)]
    assert found.condition == "graph"
    assert found.median_s == pytest.approx(CALL_S / 5)


def test_long_call_is_not_captured():
    def never(*_):
        raise AssertionError("captured")

    work = FakeWork(FakeClock(), [1.0])
    long = replace(sampled(work, capture=never), call_s=contrast.SHORT_CALL_S)

    assert contrasts(long, group(clock=work.clock)) == ()


def test_call_that_cannot_be_captured_says_why_and_keeps_the_rest():
    def refuse(*_):
        raise RuntimeError("operation not permitted when stream is capturing")

    work = FakeWork(FakeClock(), [CALL_S])
    found = contrasts(sampled(work, capture=refuse, cache="both"), group(clock=work.clock))

    assert [one.condition for one in found] == ["cold", "graph"]
    assert found[1] == Contrast("graph", reason="RuntimeError: operation not permitted when stream is capturing")
    assert found[1].median_s is None


@pytest.mark.parametrize("name", ["numpy", "numba_cpu", "torch"])
def test_no_library_has_graphs_on_a_cpu(name):
    assert load_backend(name).capture(lambda: None, "cpu", GRAPH_CALLS) is None
