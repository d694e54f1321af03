"""One mode that learns: a step in phases, each timed; what is counted of its gradients is counted apart.

The model and the batches it sees are from the seed alone, the same for every mode and process.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from math import sqrt
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from gpuexplore.backends import Clock
from gpuexplore.features.training.measure.setup import MODES, Setup, TrainedModel

Tensor = torch.Tensor


class Network(torch.nn.Module):
    """The layers of a training step as a module, with parameters of its own.

    Args:
        checkpoints: keep what goes into a layer only, and compute the rest again in backward.
    """

    def __init__(self, model: TrainedModel, seed: int, *, checkpoints: bool = False) -> None:
        super().__init__()
        initial = _initial_parameters(model, seed)
        # one by one: torch's DataParallel loses the parameters of a ParameterList
        self._names = [f"parameter_{index}" for index in range(len(initial))]
        for name, values in zip(self._names, initial, strict=True):
            self.register_parameter(name, torch.nn.Parameter(values))
        self._counts = [count for _, count in self._layers_of(model, initial)]
        self._layers = [layer for layer, _ in self._layers_of(model, initial)]
        self._checkpoints = checkpoints

    @staticmethod
    def _layers_of(model: TrainedModel, parameters: list[Tensor]) -> list[tuple[Any, int]]:
        module: Any = import_module(f"gpuexplore.operations.{model.operation}.torch")
        return list(module.network(parameters))

    def forward(self, samples: Tensor) -> Tensor:
        """Return the logits of each sample, or of each token of each sample, one row each."""
        values = samples
        names = iter(self._names)
        for layer, count in zip(self._layers, self._counts, strict=True):
            parameters = [getattr(self, next(names)) for _ in range(count)]
            if self._checkpoints:
                values = checkpoint(layer, values, *parameters, use_reentrant=False, preserve_rng_state=False)
            else:
                values = layer(values, *parameters)
        return values.flatten(0, -2)


def _initial_parameters(model: TrainedModel, seed: int) -> list[Tensor]:
    """Return the weights that training begins with: as the operation scales them, in fp32."""
    random = np.random.default_rng(seed)
    prepared = model.contract.prepared(
        tuple(random.standard_normal(lengths).astype(np.float32) for lengths in model.contract.inputs(model.shape(1)))
    )
    return [torch.from_numpy(np.array(values, dtype=np.float32)) for values in prepared[2:]]


def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy, in fp32 or wider."""
    return cross_entropy(logits if logits.dtype is torch.float64 else logits.float(), labels.flatten())


Batches = Callable[[int], tuple[Tensor, Tensor]]  # samples and labels of a step, on the CPU


def batches_of(setup: Setup) -> Batches:
    """Return what makes new samples for each step: no loss is of samples that were learned by heart.

    By a rule, each class has a pattern, and a sample is its class's pattern in normal noise. At random, labels are
    drawn by lot and say nothing.
    """
    samples_shape, targets, *_ = setup.model.contract.inputs(setup.shape)
    labels_shape = targets[:-1]
    own = samples_shape[len(labels_shape) :]  # of what one label is for
    # 5 standard deviations of the noise between two classes' patterns, where they are not too large for that
    scale = min(2.0, 5.0 / sqrt(2 * int(np.prod(own))))
    patterns = scale * torch.randn((setup.model.classes, *own), generator=torch.Generator().manual_seed(setup.seed))

    def batch(step: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(setup.seed * 1_000_003 + step + 1)  # no two seeds share batches
        samples = torch.randn(samples_shape, generator=generator)
        labels = torch.randint(setup.model.classes, labels_shape, generator=generator)
        if setup.data == "rule":
            samples += patterns[labels]
        return samples, labels

    return batch


Optimizer = Callable[[Sequence[Tensor], float], torch.optim.Optimizer]
OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": lambda parameters, rate: torch.optim.SGD(parameters, lr=rate),
    "momentum": lambda parameters, rate: torch.optim.SGD(parameters, lr=rate, momentum=0.9),
    "adamw": lambda parameters, rate: torch.optim.AdamW(parameters, lr=rate),
}


@dataclass(frozen=True, slots=True)
class LearnedStep:
    """The record of one step.

    Attributes:
        loss: before the update; may be infinite or no number.
        time_s: of the step.
        phases_s: its parts by name, in order.
        scale: that the loss had been multiplied by; None without a scaler.
        skipped: the update was left out.
    """

    loss: float
    time_s: float
    phases_s: dict[str, float]
    scale: float | None = None
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class RankShare:
    """The part of one process in a training.

    Attributes:
        rank: which of `count` parts of each batch is its own.
        wrap: makes of the network what is called, e.g. DDP of it.
    """

    rank: int = 0
    count: int = 1
    wrap: Callable[[Network], torch.nn.Module] = lambda network: network


class _Laps:
    """Seconds of each phase: by the clock on a CPU, by events in the stream on a GPU, which is waited for once."""

    def __init__(self, on_gpu: bool, clock: Clock) -> None:
        self._on_gpu = on_gpu
        self._clock = clock
        if on_gpu:
            torch.cuda.synchronize()
        self._began = clock()
        self._marks: list[tuple[str, Any]] = [("", self._mark())]

    def _mark(self) -> Any:
        if not self._on_gpu:
            return self._clock()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def end(self, phase: str) -> None:
        """Say that what went on since the last call was `phase`."""
        self._marks.append((phase, self._mark()))

    def seconds(self) -> tuple[float, dict[str, float]]:
        """Return the seconds of all, once the device is done, and of each phase; several of one name add up."""
        if self._on_gpu:
            torch.cuda.synchronize()
        all_s = (self._clock() - self._began) / 1e9
        phases: dict[str, float] = {}
        for (_, before), (name, after) in zip(self._marks, self._marks[1:], strict=False):
            lap_s = before.elapsed_time(after) / 1e3 if self._on_gpu else (after - before) / 1e9
            phases[name] = phases.get(name, 0.0) + lap_s
        return all_s, phases


class Learner:
    """A model with its optimizer, in one mode.

    Args:
        setup: what is trained.
        mode: a key of `MODES`.
        device: torch's name of it.
        clock: nanoseconds.
        part: what of each batch it learns from, and what is called instead of the network.
    """

    def __init__(
        self,
        setup: Setup,
        mode: str,
        device: str,
        *,
        clock: Clock,
        part: "RankShare | None" = None,
    ) -> None:
        self.mode = MODES[mode]
        self._device = torch.device(device)
        self._clock = clock
        self._part = part or RankShare()
        network = Network(setup.model, setup.seed, checkpoints=self.mode.checkpoints).to(self._device)
        self.network = self._part.wrap(network)
        self.parameters = list(network.parameters())
        self._optimizer = OPTIMIZERS[setup.optimizer](self.parameters, setup.learning_rate)
        self._scaler = torch.amp.GradScaler(self._device.type) if self.mode.scaled else None

    def step(self, samples: Tensor, labels: Tensor) -> LearnedStep:
        """Learn from a batch on the CPU; return its loss before the update, and what it took."""
        samples = self._own(samples)
        labels = self._own(labels)
        on_gpu = self._device.type == "cuda"
        laps = _Laps(on_gpu, self._clock)
        if on_gpu:
            samples = samples.to(self._device)
            labels = labels.to(self._device)
            laps.end("transfer")
        self._optimizer.zero_grad()
        laps.end("optimizer")
        losses = self._gradients(samples, labels, laps)
        scale = self._scaler.get_scale() if self._scaler else None
        skipped = self._update()
        laps.end("optimizer")
        time_s, phases_s = laps.seconds()
        loss = sum(loss.item() for loss in losses)  # `item` waits for the device, so it comes after the clock
        return LearnedStep(float(loss), time_s, phases_s, scale, skipped)

    def gradients(self, samples: Tensor, labels: Tensor) -> Tensor:
        """Return all gradients of a batch, unscaled, one after the other, in float64; nothing is learned."""
        self._optimizer.zero_grad()
        self._gradients(
            self._own(samples).to(self._device), self._own(labels).to(self._device), _Laps(False, self._clock)
        )
        scale = self._scaler.get_scale() if self._scaler else 1.0
        return torch.cat([gradient.double().flatten() / scale for gradient in self._given()])

    def zero_share(self) -> float:
        """Return which share of the last step's gradients is exactly zero, 0 to 1."""
        given = self._given()
        return sum(int((gradient == 0).sum()) for gradient in given) / sum(gradient.numel() for gradient in given)

    def autocast(self) -> AbstractContextManager[None]:
        """Return the context in which products are in the mode's dtype."""
        if not self.mode.autocast:
            return nullcontext()
        return torch.autocast(self._device.type, dtype={"bf16": torch.bfloat16, "fp16": torch.float16}[self.mode.dtype])

    def _given(self) -> list[Tensor]:
        return [parameter.grad for parameter in self.parameters if parameter.grad is not None]

    def _own(self, batch: Tensor) -> Tensor:
        return batch.chunk(self._part.count)[self._part.rank]

    def _gradients(self, samples: Tensor, labels: Tensor, laps: _Laps) -> list[Tensor]:
        losses = []
        for part, wanted in zip(samples.chunk(self.mode.parts), labels.chunk(self.mode.parts), strict=True):
            with self.autocast():
                loss = loss_of(self.network(part), wanted) * (len(part) / len(samples))
            laps.end("forward")
            (self._scaler.scale(loss) if self._scaler else loss).backward()
            laps.end("backward")
            losses.append(loss.detach())
        return losses

    def _update(self) -> bool:
        """Let the optimizer step; return whether the scaler left that out."""
        if self._scaler is None:
            self._optimizer.step()
            return False
        before = self._scaler.get_scale()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        return self._scaler.get_scale() < before
