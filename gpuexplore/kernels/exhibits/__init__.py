"""The CUDA kernels of the notebooks as they stood, to be compared with ours: compiled to be looked at, and never run.

They are no implementations: no operation lists them, so nothing can measure or rank them. The statement that decides is
the notebook's own; index and bounds are the usual ones, which it had too. Light: the modules load Numba, this does not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gpuexplore.kernels.geometry import ELEMENT_PER_THREAD, Block, Launch

THREADS = 1024  # of a block, in both notebooks' launches


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A notebook's kernel.

    Attributes:
        name: of the exhibit, which is no implementation.
        row: of the notebooks.
        operation: whose kernels of ours it is compared with.
        module: the file in this folder; exports `make` and DIMENSIONS, those of each argument.
        elements: the notebook's N, one thread each.
        launch_code: how it was launched.
        wrong: what is wrong with it, in a sentence or two.
    """

    name: str
    row: str
    operation: str
    module: str
    elements: int
    launch_code: str
    wrong: str

    @property
    def block(self) -> Block:
        """Threads of a block along x."""
        return (THREADS,)

    @property
    def launch(self) -> Launch:
        """The notebook's launch: one thread for each of its elements."""
        return ELEMENT_PER_THREAD.launch((self.elements,), self.block)


EXHIBITS: Mapping[str, Exhibit] = {
    exhibit.name: exhibit
    for exhibit in (
        Exhibit(
            name="notebook-vector-add",
            row="B3",
            operation="vector_add",
            module="vector_add",
            elements=100_000,
            launch_code="threads = 1024\n"
            "blocks = math.ceil(100000 / threads)  # 98\n"
            "vector_add[blocks, threads](a, b, u)",
            wrong="`+=` reads `u` too, and adds to what the call before left there: every call of a timing loop "
            "gives another result, and moves 16 bytes per element where a sum takes 12. It was never compared "
            "with the right answer.",
        ),
        Exhibit(
            name="notebook-matvec",
            row="B4",
            operation="matvec",
            module="matvec",
            elements=100_000,
            launch_code="threads = 1024\nblocks = math.ceil(100000 / threads)  # 98\nmatvec[blocks, threads](a, b, u)",
            wrong="`tmp = 0.` is a float64, so each of the 10,000,000 products is added in float64. A "
            "multiprocessor of the notebook's card has 2 float64 units and 64 for float32: the sums alone take "
            "200 µs there. And neighbouring threads read a whole row apart.",
        ),
    )
}


def exhibits_of(operation: str) -> tuple[Exhibit, ...]:
    """Return the notebooks' kernels that compute an operation."""
    return tuple(exhibit for exhibit in EXHIBITS.values() if exhibit.operation == operation)
