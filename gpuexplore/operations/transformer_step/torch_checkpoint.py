"""The step with checkpoints at the layers: less memory for a second forward."""

from gpuexplore.operations.torch_steps import checkpointed
from gpuexplore.operations.transformer_step.torch_autograd import network

build = checkpointed(network)
