"""The products that published and noted rates stand for."""

from math import sqrt

from gpuexplore.analysis.utilization.peak_sources import NotedResult, PublishedResult
from gpuexplore.model import Case
from gpuexplore.operations import operation_named

NOTED_NOISE, NOTED_SIZE = 0.1, 8192  # of a result in the notes of the table, which state no shape


def noted_case(noted: NotedResult) -> Case:
    """Return the product a noted result is taken for."""
    shape = operation_named("matmul").shape_of_size(NOTED_SIZE)
    return Case("matmul", shape, noted.dtype, operation_named("matmul").vendor_library.name, noted.spec_key)


def noted_time_s(noted: NotedResult) -> float:
    """Return the seconds of that product at the middle of the noted rates."""
    flop_count = operation_named("matmul").flop_count(noted_case(noted).shape)
    return flop_count / sqrt(noted.low_flop_per_s * noted.high_flop_per_s)


def published_case(published: PublishedResult) -> Case:
    """Return the case a published result stands for."""
    return Case(
        "matmul", published.shape, published.dtype, operation_named("matmul").vendor_library.name, published.spec_key
    )
