"""What is counted beside training: that the gradients are right, and which of them fp16 loses late in training."""

from math import expm1, log

import torch

from gpuexplore.errors import GpuExploreError
from gpuexplore.features.training.measure.contract import Underflow
from gpuexplore.features.training.measure.learner import Learner
from gpuexplore.features.training.measure.network import Batches, Network, loss_of
from gpuexplore.features.training.measure.setup import Setup

# norm of the difference to float64 over its norm: 16-bit formats round each result of each layer
TOLERANCES = {"fp32": 1e-4, "bf16": 0.15, "fp16": 0.05}
LATE_LOSS = 1e-5
SCALE = 65536.0  # GradScaler's first one


def gradient_error(learner: Learner, setup: Setup, batches: Batches) -> float:
    """Return the error of the first gradients against float64.

    Raises:
        GpuExploreError: it is larger than the mode's dtype can explain: what follows would be worth nothing.
    """
    samples, labels = batches.of_step(0)
    exact = Network(setup.model, setup.seed).double()
    loss_of(exact(samples.double()), labels).backward()
    wanted = torch.cat([value.grad.flatten() for value in exact.parameters() if value.grad is not None])
    found = learner.gradients(samples, labels).cpu()
    error = float((found - wanted).norm() / wanted.norm())
    tolerance = TOLERANCES[learner.mode.dtype]
    if not error <= tolerance:
        raise GpuExploreError(f"the gradients are wrong by {error:.2g} of their norm, {tolerance:g} is allowed")
    return error


def underflow(learner: Learner, setup: Setup, batches: Batches, device: str) -> Underflow:
    """Return which share of gradients is zero in the mode's autocast at a loss of 1e-5, unscaled and scaled.

    The right logit of each sample is raised by so much that its loss is what it would be late in training; the model
    stays as it was made, so that every mode is asked about the same one.
    """
    samples, labels = (tensor.to(device) for tensor in batches.of_step(0))
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

    return Underflow(LATE_LOSS, SCALE, share(1.0, learner), share(SCALE, learner), share(1.0, None))


def _margins(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return (rows, 1): what has to be added to each right logit for a loss of `LATE_LOSS` of every row.

    The loss of a row is ln(1 + s / e^m), with s the sum of e^(logit - right logit) over the wrong classes.
    """
    wide = logits.double()
    right = wide.gather(1, labels.flatten().unsqueeze(1))
    wrong = wide.scatter(1, labels.flatten().unsqueeze(1), -torch.inf)
    return (torch.logsumexp(wrong - right, dim=1, keepdim=True) - log(expm1(LATE_LOSS))).float()
