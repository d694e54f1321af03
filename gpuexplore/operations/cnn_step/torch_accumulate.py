"""The step over four parts of the batch, one after the other."""

from gpuexplore.operations.cnn_step.torch_autograd import network
from gpuexplore.operations.torch_steps import accumulated

build = accumulated(network)
