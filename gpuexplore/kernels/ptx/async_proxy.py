"""What tensor cores read of shared memory by themselves, while the threads go on: the async proxy of the PTX ISA.

They see what threads wrote only after `fence.proxy.async`: of the thread that wrote, or of one that saw it written.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpuexplore.kernels.ptx.scalars import Values

Parts = npt.NDArray[np.intp]


@dataclass
class AsyncProxy:
    """Who reads each part of shared memory asynchronously, and which parts it would not see as written.

    Attributes:
        parts: of shared memory.
        busy: of each part, how many products in flight read it.
        unseen: of each part, whether it was written without a fence after it.
        writer: of each part, the thread that wrote it last.
        since: of each part, the phase between barriers it was written in.
    """

    parts: int
    phase: int = 0
    fenced: dict[int, int] = field(default_factory=dict)  # by warp, the phase before which it saw all that was written

    def __post_init__(self) -> None:
        self.busy, self.writer, self.since = (np.zeros(self.parts, np.int32) for _ in range(3))
        self.unseen = np.zeros(self.parts, np.bool_)

    def write(self, parts: Values, threads: Values) -> None:
        """Note that threads, a column, have written parts."""
        self.unseen[parts], self.writer[parts], self.since[parts] = True, threads, self.phase

    def fence(self, warp: int, threads: Values) -> None:
        """Note that threads of a warp let the proxy see what they wrote, and what they saw before the last barrier."""
        self.unseen &= ~np.isin(self.writer, threads)
        self.fenced[warp] = self.phase

    def meet(self) -> None:
        """Note that all threads have met at a barrier: a fence of one of them before it holds for all."""
        if self.fenced:
            self.unseen &= self.since >= max(self.fenced.values())
        self.phase += 1

    def unseen_by(self, warp: int, parts: Parts) -> npt.NDArray[np.bool_]:
        """Return which parts a product of a warp would not see as written."""
        return np.asarray(self.unseen[parts] & (self.since[parts] >= self.fenced.get(warp, 0)))
