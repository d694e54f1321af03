"""Sums that are kept in the format of their terms."""

import pytest

from gpuexplore.features.mistakes.catalog.data import total


@pytest.mark.parametrize(
    ("dtype", "count", "expected"), [("bf16", 256, 256), ("bf16", 5000, 256), ("fp16", 5000, 2048)]
)
def test_a_sum_of_ones_stands_still_where_the_format_has_no_next_whole_number(dtype, count, expected):
    assert total(dtype, count) == expected


def test_a_sum_of_ones_in_fp32_counts_them():
    assert total("fp32") == 5000
