"""What a call of a library takes on a GPU: terms, a correction by measurements near it, and how sure it is."""

from gpuexplore.analysis.prediction.gpu.estimate import Estimate, Fitted, Judged, Nearby, fitted
from gpuexplore.analysis.prediction.gpu.facts import facts_of, is_of_library, moves_only

__all__ = ["Estimate", "Fitted", "Judged", "Nearby", "facts_of", "fitted", "is_of_library", "moves_only"]
