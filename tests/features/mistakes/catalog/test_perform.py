"""A worker is given a name, and reports one observation as JSON."""

import json
from dataclasses import replace

import pytest

from gpuexplore.core.errors import Cancelled, InvalidInput
from gpuexplore.core.serialization import decode
from gpuexplore.features.mistakes import catalog
from gpuexplore.features.mistakes.catalog import MISTAKES, MistakeObservation, perform
from gpuexplore.hardware import discover
from gpuexplore.hardware.cpu import cpu_device
from tests.measure.fakes import CPU, run_with

SIGNS_THAT_NEED_AN_EFFECT = {"mean-of-five", "minimum", "idle-clocks", "one-thread-baseline"}


def performed(name, device=CPU, cancelled=lambda: False):
    reported = []
    perform({"name": name}, device, **run_with(reported.append, cancelled))
    return reported


@pytest.mark.parametrize("name", ["flops-n3", "sparse-peak", "rounded-peak", "foreign-peak", "zeros", "grid-floor"])
def test_the_report_is_an_observation_in_json(name):
    (told,) = performed(name)

    seen = decode(MistakeObservation, json.loads(json.dumps(told, allow_nan=False)))
    assert seen.mistake == name
    assert seen.quantity == MISTAKES[name].quantity
    assert seen.detection.evidence


@pytest.mark.parametrize("arguments", [{}, {"name": "no-clock"}])
def test_no_name_or_an_unknown_one_is_refused(arguments):
    with pytest.raises(InvalidInput, match="expected no-synchronise"):
        perform(arguments, CPU, **run_with(print))


def test_peaks_are_measured_where_they_are_unknown_and_needed(monkeypatch):
    asked = []
    monkeypatch.setattr(catalog, "ensure_ceiling", lambda device: asked.append(device) or device)

    performed("grid-floor", replace(CPU, peaks=()))
    performed("flops-n3", replace(CPU, peaks=()))
    performed("grid-floor")

    assert len(asked) == 1


def test_a_demonstration_can_be_cancelled():
    with pytest.raises(Cancelled):
        performed("no-synchronise", replace(cpu_device(), peaks=CPU.peaks), cancelled=lambda: True)


@pytest.fixture(scope="module")
def cpu():
    return catalog.ensure_ceiling(discover()[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_every_mistake_is_made_on_this_machine(name, cpu):
    """No figure is judged but those that no disturbance can hide."""
    (told,) = performed(name, cpu)

    seen, mistake = decode(MistakeObservation, told), MISTAKES[name]
    assert seen.wrong.value is not None or seen.wrong.text
    assert seen.right.value is not None or seen.right.text
    assert (seen.environment is not None) == (seen.how in ("measured", "emulated"))
    assert seen.rounds == 0 or (seen.rounds >= 10 and seen.factor.ci95 and seen.wrong.ci95 and seen.right.ci95)
    if mistake.gives_away is None:
        assert seen.detection.found is None
    elif name not in SIGNS_THAT_NEED_AN_EFFECT:
        assert seen.detection.found is True
