"""The step through torch.compile: forward and backward are a graph each."""

from gpuexplore.operations.mlp_step.torch_autograd import network
from gpuexplore.operations.torch_steps import through_compiler

build = through_compiler(network)
