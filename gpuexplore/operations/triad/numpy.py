"""numpy.multiply and numpy.add: two passes in one thread, for NumPy has no multiply-add."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.operations.triad import FACTOR


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return (n) + 3·(n) into `out` (n)."""
    a, b = inputs
    kind = DTYPES[dtype.accumulate].storage
    scaled = out if dtype.accumulate == dtype.name else np.empty(out.shape, kind)  # 3·b rounded to 16 bits errs too far

    def run() -> None:
        np.multiply(b, FACTOR, out=scaled, dtype=kind)
        np.add(scaled, a, out=out, casting="unsafe")

    return run
