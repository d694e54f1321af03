"""Trainings: what may be asked, how reports are put together, and that models learn what they should."""

import time
from dataclasses import replace
from itertools import pairwise
from math import log

import psutil
import pytest

from gpuexplore.core.errors import Cancelled, GpuExploreError, InvalidInput
from gpuexplore.core.serialization import encode
from gpuexplore.core.statistics import median
from gpuexplore.features.training import measure as training
from gpuexplore.features.training.measure import _needed_bytes, activity_of, perform
from gpuexplore.features.training.measure.contract import Recorder, joined, warm_up
from gpuexplore.features.training.measure.setup import MODES, OPTIMIZERS, PRESETS, most_processes, read_setup
from gpuexplore.hardware.cpu_times import Account, CpuTimes
from tests.analysis.made import device
from tests.features.training.made_training import MS, fp16, mode, report
from tests.measure.fakes import QUIET, run_with

CPU = replace(device(), cores=2)


class Stepped:
    """A step with round numbers."""

    def __init__(self, loss=0.5, time_s=4 * MS, scale=None, skipped=False, phases_s=None):
        self.loss, self.time_s, self.scale, self.skipped = loss, time_s, scale, skipped
        self.phases_s = phases_s or {"optimizer": time_s / 4, "forward": time_s / 4, "backward": time_s / 2}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model": "voodoo"}, "model 'voodoo': expected 3-10-2, 784-784-10"),
        ({"model": "1000000-1000000-10"}, "parameters; expected at most 50,000,000"),
        ({"model": "2000000-10-10"}, "inputs of model 2000000-10-10"),
        ({"modes": "fp32,fp8"}, "mode 'fp8': expected fp32, bf16"),
        ({"modes": "fp32,fp32"}, "each once"),
        ({"modes": ","}, "each once"),
        ({"processes": "3"}, "processes '3': expected whole numbers from 1 to 2"),
        ({"learning_rate": "nan"}, "learning rate 'nan': expected numbers above 0"),
        ({"learning_rate": "-1"}, "learning rate"),
        ({"steps": "1e12"}, "steps '1e12': expected whole numbers from 1 to 5,000"),
        ({"batch": "0"}, "batch '0'"),
        ({"batch": "101", "processes": "2"}, "multiples of 2"),
        ({"batch": "2", "modes": "accumulate"}, "batch '2': expected from 4"),
        ({"processes": "2", "modes": "checkpoint"}, "with several processes"),
        ({"model": "1024-1024-1024", "batch": "65536"}, "FLOPs; expected at most 5e+11"),
        ({"model": "4096-4096-4096", "batch": "65536"}, "a step has at most"),
        ({"optimizer": "lion"}, "optimizer 'lion': expected sgd, momentum, adamw"),
        ({"data": "mnist"}, "data 'mnist': expected rule, random"),
        ({"seed": "-1"}, "seed '-1'"),
        ({"epochs": "3"}, "argument of a training 'epochs'"),
    ],
)
def test_what_cannot_be_trained_is_named_with_what_can(arguments, words):
    with pytest.raises(GpuExploreError) as raised:
        read_setup(arguments, 2)
    assert words in str(raised.value)


def test_nothing_runs_before_the_arguments_are_checked():
    reports = []
    with pytest.raises(InvalidInput):
        perform({"steps": "0"}, CPU, **run_with(reports.append))
    assert reports == []


@pytest.mark.parametrize(
    ("model", "parameters", "flops_of_a_sample"), [("3-10-2", 62, 240), ("784-784-10", 623_290, 2_505_664)]
)
def test_networks_of_the_notebooks_have_their_parameters_and_flops(model, parameters, flops_of_a_sample):
    setup = read_setup({"model": model, "batch": "10"}, 1)

    assert setup.model.parameters == parameters
    assert setup.flop_count == 10 * flops_of_a_sample


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_trained_in_every_mode(name):
    setup = read_setup({"model": name, "modes": ",".join(MODES)}, 1)

    assert setup.chance_loss == log(setup.model.classes)
    assert _needed_bytes(setup) > 24 * len(MODES) * setup.model.parameters


def test_as_many_processes_as_cores_or_gpus():
    assert most_processes(CPU) == 2
    assert most_processes(device(device_id="cuda:0"), gpu_count=4) == 4


def test_what_is_queued_leaves_defaults_out_and_says_how_long_it_takes():
    activity = activity_of({"model": "cnn", "batch": " ", "seed": "3"}, CPU, 0)

    assert (activity.kind, activity.arguments, activity.device) == ("train", (("model", "cnn"), ("seed", "3")), "cpu")
    assert 1 < activity.expected_s < 60


def test_losses_of_payloads_are_joined_and_the_last_one_stands_for_itself():
    payloads = [
        report(mode(losses=(3.0, 2.0)), final=False),
        report(mode(losses=(1.0,), first_step=2), final=False),
    ]

    found = joined(map(encode, payloads))
    assert found.mode("fp32").losses == (3.0, 2.0, 1.0)
    assert joined(map(encode, [*payloads, report(fp16())])).modes == (fp16(),)
    assert joined([]) is None


def test_a_recorder_tells_each_loss_once_and_at_the_end_all():
    setup = read_setup({"steps": "3", "modes": "fp32,fp16"}, 1)
    recorder = Recorder(setup, setup.modes, CPU, 2)
    for scale, skipped in ((65536.0, True), (32768.0, False)):
        recorder.courses["fp32"].add(Stepped(time_s=8 * MS))
        recorder.courses["fp16"].add(Stepped(float("inf") if skipped else 0.5, scale=scale, skipped=skipped))
    first, second = recorder.payload(), recorder.payload()
    recorder.courses["fp32"].add(Stepped(0.25, 8 * MS))
    recorder.courses["fp16"].add(Stepped(0.25, scale=32768.0))
    last = joined([recorder.last_payload(None)])

    assert [mode["losses"] for mode in first["modes"]] == [[0.5, 0.5], [None, 0.5]]
    assert [mode["losses"] for mode in second["modes"]] == [[], []]
    assert last.mode("fp16").losses == (None, 0.5, 0.25)
    assert last.mode("fp16").scales == ((0, 65536.0), (1, 32768.0))
    assert last.mode("fp16").skipped_steps == 1
    assert last.mode("fp16").ratio.median == 2.0
    assert last.mode("fp32").samples_per_s == pytest.approx(100 / (8 * MS))
    assert last.mode("fp32").mfu == pytest.approx(24_000 / (8 * MS) / 1e12)
    assert last.mode("fp16").mfu is None
    assert [phase.name for phase in last.mode("fp32").phases] == ["forward", "backward", "optimizer"]


ALIKE = [(1.2, 0.8)] * 9
DRIFTING = [(0.5, 0.612)] * 9 + [(1.243, 0.843)] * 3 + [(1.243, 1.521)] * 8  # most turns say slower, medians faster


@pytest.mark.parametrize(("steps_ms", "ratio", "by_round"), [(ALIKE, 1.5, None), (DRIFTING, 1.243 / 0.843, 0.817)])
def test_a_speedup_is_that_of_the_steps_in_the_table_whatever_the_turns_say(steps_ms, ratio, by_round):
    setup = read_setup({"steps": str(len(steps_ms) + 1), "modes": "fp32,bf16"}, 1)
    recorder = Recorder(setup, setup.modes, CPU, 2)
    for first_ms, second_ms in steps_ms:
        recorder.courses["fp32"].add(Stepped(time_s=first_ms * MS))
        recorder.courses["bf16"].add(Stepped(time_s=second_ms * MS))
    every = slice(0, len(steps_ms))
    first, second = (course.report(setup, CPU, every, recorder.courses["fp32"]) for course in recorder.courses.values())

    assert second.ratio.median == pytest.approx(first.step_s.median / second.step_s.median) == pytest.approx(ratio)
    assert second.ratio.ci95[0] <= second.ratio.median <= second.ratio.ci95[1]
    assert second.ratio.by_round == (by_round and pytest.approx(by_round, rel=1e-3))


def test_the_phases_of_a_step_add_up_to_the_step_in_the_table():
    setup = read_setup({"steps": "4"}, 1)
    course = Recorder(setup, ("fp32",), CPU, 2).courses["fp32"]
    for forward, backward in ((1.0, 6.0), (3.0, 1.0), (1.0, 9.0), (8.0, 1.0), (4.0, 2.0)):
        course.add(Stepped(time_s=forward + backward, phases_s={"forward": forward, "backward": backward}))
    found = course.report(setup, CPU, slice(0, 5), None)

    assert found.step_s.median == 7.0
    assert sum(phase.time_s.median for phase in found.phases) == pytest.approx(7.0)


@pytest.mark.parametrize(("steps", "left_out"), [(1, 0), (2, 1), (5, 2), (100, 6)])
def test_the_first_step_and_those_that_warm_up_are_in_no_median(steps, left_out):
    assert warm_up(read_setup({"steps": str(steps)}, 1)) == left_out


def trained(cancelled=lambda: False, **arguments):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    payloads, threads = [], torch.get_num_threads()
    torch.set_num_threads(1)  # two would wait for each other where tests run beside other work
    try:
        perform(arguments, CPU, **run_with(payloads.append, cancelled))
    finally:
        torch.set_num_threads(threads)
    return joined(payloads)


@pytest.mark.slow
def test_every_mode_learns_the_rule_and_says_what_it_took():
    found = trained(model="3-10-2", steps="40", modes=",".join(MODES))

    assert (found.steps_done, found.final, found.stopped) == (40, True, None)
    for learned in found.modes:
        assert median(learned.losses[-10:]) < 0.9 * learned.losses[0]
        assert sum(phase.time_s.median for phase in learned.phases) == pytest.approx(learned.step_s.median, rel=0.5)
        assert learned.error < 0.15
    exact = found.mode("fp32").losses
    assert found.mode("accumulate").losses == pytest.approx(exact, rel=1e-5)
    assert found.mode("checkpoint").losses == pytest.approx(exact, rel=1e-6)
    assert found.mode("fp16").scales == ((0, 65536.0),)


@pytest.mark.slow
def test_bf16_differs_from_fp32_by_less_than_seeds_differ():
    runs = [trained(steps="40", seed=str(seed)) for seed in range(5)]
    last = [median(run.mode("fp32").losses[-20:]) for run in runs]
    differences = [abs(median(run.mode("bf16").losses[-20:]) - fp32) for run, fp32 in zip(runs, last, strict=True)]

    assert max(differences) < max(last) - min(last)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_random_labels_are_learned_no_better_than_by_guessing(optimizer):
    found = trained(steps="150", data="random", modes="fp32", optimizer=optimizer, batch="512")

    losses = found.mode("fp32").losses
    assert found.chance_loss == log(2)
    assert sum(losses[-50:]) / 50 > log(2) - 0.003
    assert sum(losses[-50:]) / 50 < losses[0]


@pytest.mark.slow
def test_fp16_loses_all_gradients_of_a_small_loss_unless_it_is_scaled():
    found = trained(model="1024-1024-1024", batch="512", steps="1", modes="fp16").mode("fp16").underflow

    assert (found.loss, found.scale) == (1e-5, 65536.0)
    assert found.unscaled == 1.0
    assert found.scaled < 0.02


@pytest.mark.slow
def test_a_cancelled_training_stops_at_once():
    asked = []

    def cancelled():
        asked.append(1)
        return len(asked) > 5

    with pytest.raises(Cancelled):
        trained(cancelled, steps="5000")
    assert len(asked) == 6


def children():
    """Return what runs below this process: a browser of other tests may."""
    return set(psutil.Process().children(recursive=True))


@pytest.mark.slow
def test_two_processes_learn_what_one_does_and_leave_none_behind():
    before = children()
    found = trained(model="784-784-10", batch="64", steps="12", modes="fp32", processes="2")

    one, two = found.modes
    assert two.name == "fp32 × 2"
    assert two.losses == pytest.approx(one.losses, rel=1e-5)
    assert found.processes.largest_loss_difference < 1e-5
    assert found.processes.reduced_bytes == 4 * 623_290
    assert found.processes.efficiency == pytest.approx(found.processes.speedup.median / 2)
    assert 0 < found.processes.communicating <= 1
    assert 0 <= found.lost_cpu_share < 1
    assert children() <= before


def test_what_others_took_of_the_cpu_comes_with_the_last_report(monkeypatch):
    accounts = iter(
        CpuTimes(at_s, (Account(1, idle_s, 0.0, at_s, 0.01),), own_s) for at_s, idle_s, own_s in ((0, 0, 0), (10, 2, 5))
    )
    monkeypatch.setattr(training, "read_cpu_times", lambda: next(accounts))
    reports = []
    perform(
        {"model": "3-10-2", "steps": "6", "modes": "fp32"},
        CPU,
        **run_with(reports.append, isolation=QUIET),
    )

    assert [found.get("lost_cpu_share") for found in reports if found["final"]] == [pytest.approx(0.3)]


@pytest.mark.slow
def test_processes_end_when_they_are_cancelled():
    before, began = children(), time.monotonic()
    with pytest.raises(Cancelled):
        trained(lambda: time.monotonic() - began > 1, steps="5000", processes="2")

    assert children() <= before


def test_weights_and_batches_come_from_the_seed_alone():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from gpuexplore.features.training.measure.learner import _initial_parameters, batches_of

    first, again, other = (read_setup({"seed": seed}, 1) for seed in ("1", "1", "2"))
    batches = [batches_of(setup)(3)[0] for setup in (first, again, other)]
    weights = [_initial_parameters(setup.model, setup.seed)[0] for setup in (first, again, other)]

    for drawn in (batches, weights):
        assert torch.equal(drawn[0], drawn[1])
        assert not torch.equal(drawn[0], drawn[2])
    steps = [batches_of(first)(step)[0] for step in range(3)]
    assert not any(torch.equal(before, after) for before, after in pairwise(steps))
