"""The step through torch.compile: forward and backward are a graph each."""

from gpuexplore.operations.torch_steps import through_compiler
from gpuexplore.operations.transformer_step.torch_autograd import network

build = through_compiler(network)
