"""The step over four parts of the batch, one after the other."""

from gpuexplore.operations.torch_steps import accumulated
from gpuexplore.operations.transformer_step.torch_autograd import network

build = accumulated(network)
