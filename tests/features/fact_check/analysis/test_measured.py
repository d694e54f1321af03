"""What is measured here decides a claim that nothing else speaks against, where the device and the method are right."""

from dataclasses import replace

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Accuracy, Flag, Options, Peak, Shape
from gpuexplore.features.fact_check.analysis import CheckSide, ClaimCheck, claims
from gpuexplore.features.fact_check.analysis.judge import judge
from gpuexplore.features.fact_check.analysis.measured import MEASURED, experiments, outcome
from gpuexplore.operations import operation_named
from tests.analysis.made import device, ok
from tests.hardware.processors import ZEN_4, ZEN_5, measured_on

CONV = Shape.of(b=1, c=3, h=224, w=224, o=64, r=3)
MATVEC = Shape.of(m=100_000, n=100)
LINEAR = Shape.of(b=16384, d=32768, k=8192)
CARD = (Peak("fp32", "matrix", 8.1e12, "datasheet", "a test"),)


def named(name):
    return next(claim for claim in claims() if claim.id == name)


def convolution(seconds, on, **about):
    return ok(seconds, operation="conv2d", shape=CONV, on=on, **about)


def on_card(result, key, peaks=CARD):
    place = replace(result.environment.device, spec_key=key, peaks=peaks)
    return replace(result, environment=replace(result.environment, device=place))


def on_t4(seconds, dtype="fp32", data="ones", key="t4", spread=0.01):
    result = on_card(ok(seconds, spread=spread, operation="linear", shape=LINEAR, dtype=dtype, on="cuda:0"), key)
    return replace(result, case=replace(result.case, options=Options(data=data, budget_s=10.0)))


def verdict(name, *results):
    return judge(named(name), results).verdict


def test_a_ratio_on_the_claimed_side_confirms_one_on_the_other_does_not_and_the_newest_result_decides():
    new, old, here = convolution(1e-3, "cuda:0"), convolution(9e-3, "cuda:0"), convolution(5e-3, "cpu")

    assert verdict("A3", new, here) == verdict("A3", new, old, here) == "confirmed here"
    assert verdict("A3", old, here) == verdict("A3", old, new, here) == "not confirmed here"


def test_an_interval_that_straddles_what_was_claimed_decides_nothing():
    results = convolution(1e-3, "cpu", spread=0.3), convolution(1e-3, "cuda:0", spread=0.3)

    assert verdict("A3", *results) == "possible"
    assert "the interval does not decide" in judge(named("A3"), results).evidence[-1]


def test_what_was_not_measured_stays_possible_and_says_what_is_missing():
    for results in ((), [convolution(1e-3, "cpu")]):
        judged = judge(named("A3"), results)
        assert judged.verdict == "possible"
        assert judged.evidence[-1].startswith("Not measured here: time ratio of two-dimensional convolution")


@pytest.mark.parametrize("flag", ["contended", "drifted", "throttled"])
def test_a_disturbed_time_decides_what_holds_over_its_widened_interval(flag):
    on_gpu, disturbed = convolution(1e-3, "cuda:0"), [Flag(flag, "a test", size=0.5)]

    assert verdict("A3", convolution(9e-3, "cpu", flags=disturbed), on_gpu) == "confirmed here"
    assert verdict("A3", convolution(1.1e-3, "cpu", flags=disturbed), on_gpu) == "possible"
    assert verdict("A3", convolution(1.1e-3, "cpu"), on_gpu) == "confirmed here"


@pytest.mark.parametrize("options", [Options(data="zeros"), Options(cache="warm"), Options(threads=1)])
def test_a_result_under_other_conditions_decides_nothing(options):
    slow = convolution(9e-3, "cpu")
    other = replace(slow, case=replace(slow.case, options=options))

    assert verdict("A3", other, convolution(1e-3, "cuda:0")) == "possible"


def test_a_simulated_device_and_an_impossible_time_decide_nothing():
    slow, fast = convolution(9e-3, "cpu"), convolution(1e-3, "cuda:0")
    place = replace(fast.environment.device, name="simulated GPU", spec_key=None, kind="simulated")
    simulated = replace(fast, environment=replace(fast.environment, device=place))

    assert verdict("A3", slow, simulated) == "possible"
    assert [outcome(check, named("E6"), [on_t4(1e-3)])[0] for check in named("E6").checks] == [None, None]


def test_a_claim_of_a_named_card_is_decided_on_that_card_alone():
    assert verdict("E6", on_t4(1.75)) == "confirmed here"
    assert verdict("E6", on_t4(3.5)) == "not confirmed here"
    assert verdict("E6", on_t4(3.5, key="l4")) == "confirmed here"  # by its own numbers
    (_, rate), (_, share) = (outcome(check, named("E6"), [on_t4(1.75, spread=0)]) for check in named("E6").checks)
    assert "5.03 TFLOP/s" in rate
    assert "62.1 %" in share


def test_what_is_measured_outweighs_nothing_stronger():
    results = [on_t4(4.0), on_t4(1.0, "bf16")]
    judged = judge(named("E7"), results)

    assert judged.verdict == "contradicts itself"
    assert any("Measured here: time ratio of linear layer" in sentence for sentence in judged.evidence)


def test_an_error_is_confirmed_on_any_processor_also_when_it_was_disturbed():
    def product(error, implementation):
        result = ok(operation="matvec", shape=MATVEC, implementation=implementation, flags=[Flag("contended", "")])
        return replace(result, accuracy=Accuracy(error, 1e-3))

    assert verdict("B6", product(8e-8, "numpy"), product(9e-8, "torch")) == "confirmed here"
    assert verdict("B6", product(8e-8, "numpy"), product(9e-5, "torch")) == "not confirmed here"


def test_both_sides_of_one_device_are_measured_in_turns():
    (found,) = experiments(named("B6"), [device()])

    assert (found.operation, found.shapes, found.devices) == ("matvec", (MATVEC,), ("cpu",))
    assert found.implementations == ("numpy", "torch")


def test_sides_of_two_devices_are_two_experiments_and_none_without_the_second():
    here = [device(), device(device_id="cuda:0")]

    assert [found.devices for found in experiments(named("A3"), here)] == [("cpu",), ("cuda:0",)]
    assert experiments(named("A3"), here[:1]) == ()


def test_a_card_that_is_named_has_to_be_here():
    gpu = device(device_id="cuda:0")

    assert experiments(named("E7"), [device(), gpu]) == ()
    (found,) = experiments(named("E7"), [replace(gpu, spec_key="t4")])
    assert (found.dtypes, found.options) == (("fp32", "bf16"), Options(data="ones", budget_s=10.0))


def test_every_check_names_what_exists():
    checks = [(claim, check) for claim in claims() for check in claim.checks]

    assert {check.quantity for _, check in checks} == MEASURED.keys()
    for claim, check in checks:
        operation = operation_named(check.operation)
        assert tuple(name for name, _ in check.shape.axes) == operation.axes, claim.id
        assert operation.problem(check.shape) is None
        for side in check.sides:
            assert side.device in operation.implementation_named(side.implementation).runs_on_kinds, claim.id


def test_a_check_without_a_figure_is_refused():
    with pytest.raises(InvalidInput, match="what rate has to be 'fast': expected figures"):
        ClaimCheck("rate", "fast", "matvec", MATVEC, (CheckSide("torch", "cuda"),))


def test_no_ratio_is_taken_over_two_processors_of_the_same_name():
    claim, sides = named("A3"), (CheckSide("numpy", "cpu"), CheckSide("torch", "cpu"))
    check = ClaimCheck("time ratio", ">1", "conv2d", CONV, sides)
    slow, fast = (
        convolution(seconds, "cpu", implementation=name) for seconds, name in ((9e-3, "numpy"), (1e-3, "torch"))
    )
    on_zen_4, on_zen_5 = ([measured_on(place, result) for result in (slow, fast)] for place in (ZEN_4, ZEN_5))

    assert outcome(check, claim, on_zen_4)[0]
    assert outcome(check, claim, [on_zen_4[0], on_zen_5[1]])[1].startswith("Not measured here")
    assert outcome(check, claim, [on_zen_4[0], *on_zen_5])[0], "an older pair of one processor counts"
