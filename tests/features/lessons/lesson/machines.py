"""Machines that are made up, and worlds in which their measurements come out now one way and now another."""

import math
import re
from dataclasses import replace

from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.core.model import Accuracy, Environment, Flag, Measurement, Result, Status
from gpuexplore.core.serialization import encode
from gpuexplore.features.lessons.lesson.blocks import (
    CANNOT_TELL,
    UNITS,
    CheckBlock,
    MistakeBlock,
    RunBlock,
    SayBlock,
    TensorBlock,
    TrainBlock,
)
from gpuexplore.features.lessons.lesson.evidence import request_of
from gpuexplore.features.lessons.lesson.quantities import result_row
from gpuexplore.hardware import accelerator_named
from gpuexplore.hardware.accelerators import as_device
from gpuexplore.operations import operation_named
from gpuexplore.request import resolve
from tests.analysis.made import PEAKS, device
from tests.features.lessons.lesson.conftest import module_if_installed

CATALOG = module_if_installed("mistakes", "gpuexplore.features.mistakes.catalog")
MISTAKES = module_if_installed("mistakes", "gpuexplore.features.mistakes.catalog")
SETUP = module_if_installed("training", "gpuexplore.features.training.measure.setup")
TRAINING = module_if_installed("training", "gpuexplore.features.training.measure.contract")

CPU = device(memory_bytes=2**34, cache_bytes=2**20)


def slower(times):
    return replace(CPU.bandwidth, bytes_per_s=CPU.bandwidth.bytes_per_s / times)


WITH_UNITS = replace(CPU, native=("fp64", "fp32", "bf16", "fp16"), cores=2)
WITHOUT_UNITS = replace(CPU, native=("fp64", "fp32"), peaks=PEAKS[:1], cores=1, bandwidth=slower(2))
STARVED = replace(WITHOUT_UNITS, bandwidth=slower(10))


def gpu(name, device_id="cuda:0"):
    row = accelerator_named(name)
    return replace(as_device(row), id=device_id, kind="cuda")


MACHINES = {
    "a CPU with bf16 units": (WITH_UNITS,),
    "a CPU without": (WITHOUT_UNITS,),
    "a T4": (STARVED, gpu("t4")),
    "two H100": (WITH_UNITS, gpu("h100-sxm5-80gb"), gpu("h100-sxm5-80gb", "cuda:1")),
    "a GPU that nobody knows": (WITH_UNITS, device(device_id="cuda:0")),
}
OVERHEAD_S = {"numpy": 1e-6, "torch": 3e-6}
NUMBER = re.compile(r"\b\d+(?:\.\d+)?(?:e\d+)?\b")
SPREADS = (0.002, 0.02, 0.3)
"""How far samples lie around their median, in one world and the other."""


UNASKED = (
    RunBlock("matmul", size="512,1024", impl="numpy,torch", dtype="fp32,bf16"),
    RunBlock("mlp_step", shape="batch=512,inputs=1024,hidden=1024,outputs=1024,layers=2", impl="torch"),
)
"""What a reader measures besides where a lesson asks for no run."""


class World:
    """Measurements on one machine that are off from a simple model by random factors."""

    def __init__(self, devices, random):
        self.devices, self.random = {device.id: device for device in devices}, random
        self.wildness = random.choice((0.05, 0.5, 2.0))
        self.spread = random.choice(SPREADS)
        self.is_disturbed = random.random() < 0.2
        self.is_failing = random.random() < 0.05
        self.pace = random.choice((1, 1, 1, 20))  # of a CPU on which all takes longer
        self.losses = (2.3, 2.3 * self.factor(), 2.3 * self.factor())

    def factor(self, wildness=None):
        return math.exp(self.random.gauss(0, self.wildness if wildness is None else wildness))

    def results(self, experiment):
        return tuple(self.result(case) for case in experiment.cases())

    def result(self, case):
        if self.is_failing:
            return Result(case, Status.SKIPPED, "a made-up failure")
        on, operation = self.devices[case.device], operation_named(case.operation)
        implementation = operation.implementation_named(case.implementation)
        peak = implementation.peak(on, case.dtype) or implementation.peak(on, "fp32")
        rate = 0.5 * peak.flop_per_s if peak else 1e10
        work_s = operation.flop_count(case.shape) / rate
        move_s = operation.byte_count(case.shape, dtype_named(case.dtype)) / on.bandwidth.bytes_per_s
        pace = self.pace if on.kind == "cpu" else 1
        seconds = (max(work_s, move_s) + OVERHEAD_S.get(case.implementation, 1e-6)) * pace * self.factor()
        samples = tuple(seconds * (1 + self.spread * self.random.uniform(-1, 1)) for _ in range(21))
        quick = 0.1 if self.random.random() < 0.2 else 1  # of a few calls, which moves the mean and not the median
        slow = self.random.choice((1, 1, 30))
        uneven = (*(quick * sample for sample in samples[:5]), *samples[5:-1], slow * samples[-1])
        flags = [Flag("contended", "x", size=5.0)] if self.is_disturbed else []
        flags += [Flag("emulated", "x")] if case.dtype not in on.native else []
        error = self.random.choice((1e-8, 1e-6, 1e-3, 4e-3, 0.1))
        environment = Environment(on, "2026-01-02T00:00:00Z", "1", None, "3.12", "linux", {})
        measurement = Measurement(uneven, first_call_s=seconds * self.factor(2))
        accuracy = Accuracy(error if case.options.data != "ones" else self.random.choice((0.0, error)), 1.0)
        return Result(case, Status.OK, None, measurement, accuracy, tuple(flags), environment)

    def mistake(self, name):
        found = CATALOG.mistake_named(name)
        ratio, wrong = self.factor(2) * self.random.choice((1, 10)), self.random.random()
        right = 10 ** self.random.uniform(-6, 3) if found.quantity not in ("share", "count") else wrong
        text = "inf" if name == "fp16-overflow" and self.random.random() < 0.5 else None
        width = self.random.choice((0.0, 0.01, 0.15, 1.5))
        values = (None if text else right * ratio, right)
        if found.quantity == "error" and self.random.random() < 0.3:
            values = (0.0, right)
        if found.quantity == "share":
            values = tuple(self.random.choice((0.0, 0.01, 0.5)) for _ in values)
        if found.quantity == "count":
            values = (float(self.random.randrange(0, 12)), float(self.random.choice((0, 0, 3))))
        ends = [None if value is None else (value / (1 + width), value * (1 + width)) for value in values]
        readings = [
            MISTAKES.WayReading(value, ci95, text if value is None else None)
            for value, ci95 in zip(values, ends, strict=True)
        ]
        factor = None if text or 0 in values else MISTAKES.Factor(ratio, (ratio / (1 + width), ratio * (1 + width)))
        return encode(
            MISTAKES.MistakeObservation(
                mistake=name, quantity=found.quantity, what="x", how="measured", wrong=readings[0], right=readings[1],
                detection=MISTAKES.Detection(True, "x"), factor=factor,
            )
        )  # fmt: skip

    def reading(self):
        """Return a strided read: the same factor in both ways, each with a spread."""
        flags = [{"name": "contended", "evidence": "x", "size": 5.0}] if self.is_disturbed else []
        strided, spread = 8 * self.factor(), 0.7 if self.is_disturbed else self.spread
        readings, ratios = {}, {}
        for way in ("loop", "copy"):
            for source, median_s in (("contiguous", 1e-3), ("strided", 1e-3 * strided)):
                ends = [median_s * (1 - spread), median_s * (1 + spread)]
                given = {"median_s": median_s, "ci95_s": ends, "bytes_per_s": 1e7 / median_s, "flags": flags}
                readings[f"{way} {source}"] = given
            ratios[way] = {"median": strided, "ci95": [strided * (1 - spread), strided * (1 + spread)]}
        return {"readings": readings, "ratios": ratios}

    def measured(self, tasks):
        found = {}
        for place, task in enumerate(tasks):
            if self.random.random() < 0.03 or task.work is None:
                continue
            if isinstance(task.block, RunBlock):
                found[place] = self.results(task.work)
            elif isinstance(task.block, MistakeBlock):
                found[place] = self.mistake(task.block.mistake)
            elif isinstance(task.block, TrainBlock):
                found[place] = encode(self.training(task.work))
            elif isinstance(task.block, TensorBlock):
                found[place] = self.reading()
        return found

    def training(self, work):
        setup = SETUP.read_setup(dict(work.arguments), 8)
        together = [f"{name} × {setup.processes}" for name in setup.modes if setup.processes > 1]
        processes = None
        if together:
            share = self.random.random()
            processes = TRAINING.Processes(
                setup.processes, "gloo", setup.modes[0], self.timing(1.5), 2.0 * share, self.timing(1e-3), share,
                4 * setup.model.parameters, 10 ** self.random.uniform(-9, 0),
            )  # fmt: skip
        modes = tuple(self.mode(name) for name in (*setup.modes, *together))
        return TRAINING.report_of(setup, 1, final=True, modes=modes, processes=processes)

    def mode(self, name):
        shares = [self.random.choice((0.0, 0.01, 0.3, 0.99, 1.0)) for _ in range(4)]
        scaled = name == "fp16"
        scale = self.random.choice((1, 1, 4))
        phases = tuple(TRAINING.PhaseTime(phase, self.timing(1e-3)) for phase in ("forward", "backward", "optimizer"))
        return TRAINING.ModeReport(
            name, losses=tuple(loss * (1 + 10 ** self.random.uniform(-6, 0)) for loss in self.losses),
            step_s=self.timing(1e-2), phases=phases, samples_per_s=1e4, mfu=self.random.random(), ratio=self.timing(1),
            zero_gradients=((1, shares[0]),), first_call_s=0.1, error=10 ** self.random.uniform(-8, -1),
            scales=((0, 65536.0), (3, 65536.0 / scale)) if scaled else (), skipped_steps=int(scale > 1),
            underflow=TRAINING.Underflow(1e-5, 65536.0, *shares[1:]) if name.startswith("fp16") else None,
        )  # fmt: skip

    def timing(self, value):
        middle, width = value * self.factor(), self.random.choice((0.01, 0.1, 0.7))
        return TRAINING.Timing(middle, (middle * (1 - width), middle * (1 + width)), 21)

    def own_rows(self, lesson, step):
        """Return what the reader measured besides, for a task: at most a few of the cases of the lesson."""
        if not any(check.reach for check in step.of(CheckBlock)) or self.random.random() < 0.1:
            return []
        blocks = [block for other in lesson.steps for block in other.of(RunBlock) if block.device == "cpu"]
        block = self.random.choice(blocks or UNASKED)
        on = next(iter(self.devices))
        experiment = resolve(replace(request_of(block, on), cache=self.random.choice(("", "cold"))), self.devices)
        return [result_row(analyzed, block.device, block.id) for analyzed in analyze(self.results(experiment)).results]


def guesses(step, judged, random):
    """Return a guess at each question: the truth, near it, far from it, one that a `say` waits for, or none."""
    truths = {found.check.guess: found.truth for found in judged.checks}
    return {name: _guess(guess, truths.get(name), step, random) for name, guess in step.guesses.items()}


def _guess(guess, truth, step, random):
    if random.random() < 0.15:
        return None
    if guess.choices:
        return random.choice((*guess.choices, CANNOT_TELL))
    named = [number / UNITS[guess.unit].value for number in _numbers(step)]
    if named and random.random() < 0.3:
        return f"{random.choice(named):.12g}"
    base = abs(getattr(truth, "value", 1.0)) / UNITS[guess.unit].value or 1.0
    return f"{base * random.choice((1, 1, 1.4, 2.5, 8, 1 / 8, 2 / 3, 0.5, 4, 1 / 12)):.12g}"


def _numbers(step):
    """Return the numbers that stand in the conditions of a step."""
    found = [NUMBER.findall(say.when) for say in step.of(SayBlock)]
    return [float(text) for texts in found for text in texts]
