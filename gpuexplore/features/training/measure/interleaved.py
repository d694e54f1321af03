"""Interleaved training: the modes learn step by step, in random order, from the same batches, so ratios are paired.

Apart from what is timed it is counted whether the gradients are right, and which of them fp16 loses late in training.
"""

from collections.abc import Callable, Iterator, Mapping
from math import expm1, log
from random import Random
from time import monotonic

import torch

from gpuexplore.backends import Clock
from gpuexplore.core import Cancelled, Device, GpuExploreError, format_seconds
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.features.training.measure.contract import REPORT_EVERY_S, Course, Recorder, Underflow
from gpuexplore.features.training.measure.learner import Batches, Learner, Network, batches_of, loss_of
from gpuexplore.features.training.measure.setup import Setup
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.operations.torch_steps import allow_tf32

LATE_LOSS = 1e-5
MOST_SECONDS = 240.0  # of all modes together; then a training ends with the steps it has


def train(
    setup: Setup,
    device: Device,
    *,
    clock: Clock,
    isolation: Isolation,
    progress: ProgressHooks,
) -> tuple[Recorder, str | None]:
    """Train every mode of `setup` in this process; return what it was, and why it ended early if it did.

    Args:
        setup: what is trained.
        device: where.
        clock: in nanoseconds.
        isolation: of the steps.
        progress: gets payloads; polled after each step.

    Raises:
        Cancelled: the user asked to stop.
        GpuExploreError: gradients are wrong.
    """
    allow_tf32(dtype_named("fp32"))
    recorder = Recorder(setup, setup.modes, device, torch.get_num_threads())
    batch_of = batches_of(setup)
    progress.report(recorder.payload(doing="checking the gradients against float64"))
    learners = {name: Learner(setup, name, device.id, clock=clock) for name in setup.modes}
    for name, learner in learners.items():
        course = recorder.courses[name]
        course.error = gradient_error(learner, setup, batch_of)
        if learner.mode.dtype == "fp16":
            course.underflow = _underflow(learner, setup, batch_of, device.id)
        _obey(progress.cancelled)
    began = reported = monotonic()
    for step in _steps(setup, learners, batch_of, recorder=recorder, isolation=isolation):
        _obey(progress.cancelled)
        if is_counted(step, setup.steps):
            count_zeros(learners, recorder.courses, step)
        if monotonic() - reported >= REPORT_EVERY_S:
            progress.report(recorder.payload())
            reported = monotonic()
        if monotonic() - began > MOST_SECONDS:
            return recorder, f"it had taken {format_seconds(MOST_SECONDS)}"
    return recorder, None


def _steps(
    setup: Setup, learners: Mapping[str, Learner], batch_of: Batches, *, recorder: Recorder, isolation: Isolation
) -> Iterator[int]:
    """Let each mode learn from the batch of each step; yield its number when all have."""
    random = Random(setup.seed)
    round_s = 0.0
    for step in range(setup.steps):
        samples, labels = batch_of(step)
        with isolation.exclude_servers(round_s):
            order = random.sample(list(learners), len(learners))
            round_s = sum(recorder.courses[name].add(learners[name].step(samples, labels)) for name in order)
        yield step


def _obey(cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise Cancelled("cancelled during the training")


def is_counted(step: int, steps: int) -> bool:
    """Return whether zeros are counted after this step: some times over a training, the last step included."""
    return step % max(1, steps // 10) == 0 or step == steps - 1


def count_zeros(learners: Mapping[str, Learner], courses: Mapping[str, Course], step: int) -> None:
    """Count the zeros among the gradients of a step, of each mode, outside what is timed."""
    for name, learner in learners.items():
        courses[name].zero_shares.append((step, learner.zero_share()))


def gradient_error(learner: Learner, setup: Setup, batch_of: Batches) -> float:
    """Return the error of the first gradients against float64.

    Raises:
        GpuExploreError: it is larger than the mode's dtype can explain: what follows would be worth nothing.
    """
    samples, labels = batch_of(0)
    exact = Network(setup.model, setup.seed).double()
    loss_of(exact(samples.double()), labels).backward()
    wanted = torch.cat([value.grad.flatten() for value in exact.parameters() if value.grad is not None])
    error = float((learner.gradients(samples, labels).cpu() - wanted).norm() / wanted.norm())
    # norm of the difference to float64 over its norm: 16-bit formats round each result of each layer
    tolerance = {"fp32": 1e-4, "bf16": 0.15, "fp16": 0.05}[learner.mode.dtype]
    if not error <= tolerance:
        raise GpuExploreError(f"the gradients are wrong by {error:.2g} of their norm, at most {tolerance:g} is allowed")
    return error


def _underflow(learner: Learner, setup: Setup, batch_of: Batches, device: str) -> Underflow:
    """Return which share of gradients is zero in the mode's autocast at a loss of 1e-5, unscaled and scaled.

    The right logit of each sample is raised by so much that its loss is what it would be late in training; the model
    stays as it was made, so that every mode is asked about the same one.
    """
    samples, labels = (tensor.to(device) for tensor in batch_of(0))
    network = Network(setup.model, setup.seed).to(device)
    rows = torch.nn.functional.one_hot(labels.flatten(), setup.model.classes)
    with torch.no_grad():
        raised = _margins(network(samples), labels) * rows

    def share(scale: float, learner: Learner | None) -> float:
        network.zero_grad()
        if learner is None:
            loss = loss_of(network(samples) + raised, labels)
        else:
            with learner.autocast():
                loss = loss_of(network(samples).float() + raised, labels)
        (loss * scale).backward()
        given = [value.grad for value in network.parameters() if value.grad is not None]
        return sum(int((value == 0).sum()) for value in given) / sum(value.numel() for value in given)

    scale = 65536.0  # GradScaler's first one
    return Underflow(LATE_LOSS, scale, share(1.0, learner), share(scale, learner), share(1.0, None))


def _margins(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return (rows, 1): what has to be added to each right logit for a loss of `LATE_LOSS` of every row.

    The loss of a row is ln(1 + s / e^m), with s the sum of e^(logit - right logit) over the wrong classes.
    """
    wide = logits.double()
    right = wide.gather(1, labels.flatten().unsqueeze(1))
    wrong = wide.scatter(1, labels.flatten().unsqueeze(1), -torch.inf)
    return (torch.logsumexp(wrong - right, dim=1, keepdim=True) - log(expm1(LATE_LOSS))).float()
