"""The step under torch.autocast: what mixed-precision training does, casts of the weights included."""

from gpuexplore.operations.torch_steps import autocast
from gpuexplore.operations.transformer_step.torch_autograd import network

build = autocast(network)
