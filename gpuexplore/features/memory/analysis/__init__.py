"""The memory that training or serving a model needs: arithmetic on layers, without torch.

What is counted is what PyTorch allocates: tests compare the peaks with its own MemTracker.
"""

from gpuexplore.features.memory.analysis.fits import Reserve, largest_batch
from gpuexplore.features.memory.analysis.models import model_named
from gpuexplore.features.memory.analysis.setup import Serving, Training
from gpuexplore.features.memory.analysis.training import serving_memory, training_memory

__all__ = [
    "Reserve",
    "Serving",
    "Training",
    "largest_batch",
    "model_named",
    "serving_memory",
    "training_memory",
]
