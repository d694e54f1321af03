"""What the worker takes to measure what reading a tensor against its strides costs."""

from gpuexplore.analysis.tensors.value import TensorView
from gpuexplore.kernels.strided_sum import AXES, MOST_CELLS

KIND = "strided-read"
EXPECTED_S = 2.0


def arguments_of(view: TensorView) -> dict[str, str] | None:
    """Return what `gpuexplore.measure.strided_read` takes for a tensor; None for one it cannot read."""
    if not 0 < view.axes <= AXES or not 0 < max(view.span, view.element_count) <= MOST_CELLS:
        return None
    return {"shape": ",".join(map(str, view.shape)), "strides": ",".join(map(str, view.strides))}
