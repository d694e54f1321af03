"""By how much roundings of sums are larger in an implementation than where terms are added one by one."""

from typing import NamedTuple


class Growth(NamedTuple):
    """Factors of what rounding explains of sums, 1 or more.

    Attributes:
        norm: of the whole output.
        element: of its worst placed element.
    """

    norm: float = 1.0
    element: float = 1.0


AS_SUMMED = Growth()
