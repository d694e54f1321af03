"""How much memory a model needs to be trained or served: arithmetic on layers, without torch.

What is counted is what PyTorch allocates: tests compare the peaks with its own MemTracker.
"""

from gpuexplore.analysis.memory.fits import Reserve, largest_batch
from gpuexplore.analysis.memory.models import model_named
from gpuexplore.analysis.memory.serving import serving_memory
from gpuexplore.analysis.memory.setup import Serving, Training
from gpuexplore.analysis.memory.training import training_memory

__all__ = [
    "Reserve",
    "Serving",
    "Training",
    "largest_batch",
    "model_named",
    "serving_memory",
    "training_memory",
]
