"""The step under torch.autocast: what mixed-precision training does, casts of the weights included."""

from gpuexplore.operations.cnn_step.torch_autograd import network
from gpuexplore.operations.torch_steps import autocast

build = autocast(network)
