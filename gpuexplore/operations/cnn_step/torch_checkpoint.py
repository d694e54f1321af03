"""The step with checkpoints at the layers: less memory for a second forward."""

from gpuexplore.operations.cnn_step.torch_autograd import network
from gpuexplore.operations.torch_steps import checkpointed

build = checkpointed(network)
