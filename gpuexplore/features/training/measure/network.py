"""The model as torch trains it, and the batches it sees: from the seed alone, the same for every mode and process."""

from importlib import import_module
from math import sqrt
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from gpuexplore.features.training.measure.setup import Model, Setup

Tensor = torch.Tensor
SEPARATION = 5.0  # of two classes' patterns, in standard deviations of the noise
LARGEST_PATTERN = 2.0
STRIDE_OF_SEEDS = 1_000_003  # so that the batches of two seeds are others


class Network(torch.nn.Module):
    """The layers of a training step as a module, with parameters of its own.

    Args:
        checkpoints: keep what goes into a layer only, and compute the rest again in backward.
    """

    def __init__(self, model: Model, seed: int, *, checkpoints: bool = False) -> None:
        super().__init__()
        initial = initial_parameters(model, seed)
        # one by one: torch's DataParallel loses the parameters of a ParameterList
        self._names = [f"parameter_{place}" for place in range(len(initial))]
        for name, values in zip(self._names, initial, strict=True):
            self.register_parameter(name, torch.nn.Parameter(values))
        self._counts = [count for _, count in self._layers_of(model, initial)]
        self._layers = [layer for layer, _ in self._layers_of(model, initial)]
        self._checkpoints = checkpoints

    @staticmethod
    def _layers_of(model: Model, parameters: list[Tensor]) -> list[tuple[Any, int]]:
        module: Any = import_module(f"gpuexplore.operations.{model.operation}.torch_autograd")
        return list(module.network(parameters))

    def forward(self, samples: Tensor) -> Tensor:
        """Return the logits of each sample, or of each token of each sample, one row each."""
        values, names = samples, iter(self._names)
        for layer, count in zip(self._layers, self._counts, strict=True):
            parameters = [getattr(self, next(names)) for _ in range(count)]
            if self._checkpoints:
                values = checkpoint(layer, values, *parameters, use_reentrant=False, preserve_rng_state=False)
            else:
                values = layer(values, *parameters)
        return values.flatten(0, -2)


def initial_parameters(model: Model, seed: int) -> list[Tensor]:
    """Return the weights that training begins with: as the operation scales them, in fp32."""
    contract, shape, random = model.contract, model.shape(1), np.random.default_rng(seed)
    drawn = tuple(random.standard_normal(lengths).astype(np.float32) for lengths in contract.inputs(shape))
    prepared = contract.prepared(drawn)
    return [torch.from_numpy(np.array(values, dtype=np.float32)) for values in prepared[2:]]


def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy, in fp32 or wider."""
    wide = logits if logits.dtype is torch.float64 else logits.float()
    return cross_entropy(wide, labels.flatten())


class Batches:
    """New samples for each step: nothing can be learned by heart, so a loss is that of samples never seen.

    By a rule, each class has a pattern, and a sample is its class's pattern in normal noise. At random, labels are
    drawn by lot and say nothing.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._samples, targets, *_ = setup.model.contract.inputs(setup.shape)
        self._labels = targets[:-1]
        own = self._samples[len(self._labels) :]  # of what one label is for
        numbers = int(np.prod(own))
        scale = min(LARGEST_PATTERN, SEPARATION / sqrt(2 * numbers))
        generator = torch.Generator().manual_seed(setup.seed)
        self._patterns = scale * torch.randn((setup.model.classes, *own), generator=generator)

    def of_step(self, step: int) -> tuple[Tensor, Tensor]:
        """Return samples and labels of a step, on the CPU."""
        generator = torch.Generator().manual_seed(self._setup.seed * STRIDE_OF_SEEDS + step + 1)
        samples = torch.randn(self._samples, generator=generator)
        labels = torch.randint(self._setup.model.classes, self._labels, generator=generator)
        if self._setup.data == "rule":
            samples += self._patterns[labels]
        return samples, labels
