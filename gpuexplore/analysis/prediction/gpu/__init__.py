"""What a call of a library takes on a GPU: terms, a correction from measurements near it, and how sure it is."""

from gpuexplore.analysis.prediction.gpu.estimate import Estimate, Fitted, Nearby, fitted

__all__ = ["Estimate", "Fitted", "Nearby", "fitted"]
