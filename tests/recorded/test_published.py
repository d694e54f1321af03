"""Published measurements: each row has a device, a shape, a time and a source; what has not is refused by its line."""

from collections import Counter

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.operations import OPERATIONS
from gpuexplore.recorded.published import TIMINGS, published_measurements, read_measurements, sources

HEADING = "gpu_key,operation,dtype,shape,time_s,timing,conditions,source"
LINK = "https://github.com/baidu-research/DeepBench/blob/0123456/results.xlsx"
MAY_BE_MIXED = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause"}  # the others have a file of their own
ROW = f"t4,linear,fp16,b=16;d=32;k=8,0.0001,queued,warm,{LINK}"


def read(*rows):
    return read_measurements("\n".join([HEADING, *rows]))


def test_rows_that_come_along_are_read_each_once_and_every_source_and_timing_has_some():
    found = published_measurements()

    assert len(found) > 6500
    assert {row.operation for row in found} < set(OPERATIONS)
    assert {row.source for row in found} == {source for source in sources() if source.licence in MAY_BE_MIXED}
    assert {row.timing for row in found} == set(TIMINGS)

    counts = Counter(
        (row.spec_key, row.operation, row.dtype, row.shape, row.time_s, row.conditions, row.url)
        for row in published_measurements()
    )

    assert [place for place, count in counts.items() if count > 1] == []

    assert {source.licence for source in sources()} == MAY_BE_MIXED | {"CC-BY-SA-4.0"}
    assert all(source.citation and source.how and source.url.startswith("https://github.com/") for source in sources())


def test_a_row_is_read_as_it_stands():
    (row,) = read(ROW)

    assert (row.spec_key, row.operation, row.dtype, row.time_s, row.timing) == ("t4", "linear", "fp16", 1e-4, "queued")
    assert (str(row.shape), row.conditions, row.url, row.source.title) == ("b=16,d=32,k=8", "warm", LINK, "DeepBench")


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ("t4,", "t5,", "gpu_key 't5'"),
        ("linear", "lineer", "lineer"),
        ("fp16", "fp7", "fp7"),
        ("linear,fp16,b=16;d=32;k=8", "softmax,fp8,m=16;n=8", "fp8 exists only inside matrix units"),
        ("b=16;d=32;k=8", "b=16;d=32", "axes of linear"),
        ("b=16;d=32;k=8", "b=16;d=32;k=8;m=1", "axes of linear"),
        ("b=16;d=32;k=8", "b=16;b=17;d=32;k=8", "axes of linear"),
        ("b=16;d=32;k=8", "16x32x8", "axes of linear"),
        ("b=16;d=32;k=8", "b=16;d=32;k=0", "k '0'"),
        ("b=16;d=32;k=8", "b=16;d=32;k=99999999999", "k '99999999999'"),
        ("b=16;d=32;k=8", "b=16;d=32;k=8.5", "8.5"),
        ("0.0001", "0", "time_s '0'"),
        ("0.0001", "-1", "time_s '-1'"),
        ("0.0001", "nan", "time_s 'nan'"),
        ("0.0001", "inf", "time_s 'inf'"),
        ("0.0001", "fast", "fast"),
        ("0.0001,queued,", "0.0001,", "row '7 cells': expected gpu_key, operation"),
        ("warm", "warm,cold", "row '9 cells'"),
        ("queued", "guessed", "timing 'guessed'"),
        ("https://", "http://", "source 'http://"),
        ("github.com", "github.com.example", "source 'https://github.com.example"),
        ("baidu-research/DeepBench", "somebody/else", "somebody/else"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(right, wrong, named):
    assert right in ROW
    with pytest.raises(InvalidInput, match=r"measurements\.csv, line 3") as refusal:
        read(ROW, ROW.replace(right, wrong, 1))

    assert named in str(refusal.value)


def test_rows_of_any_site_are_read_where_what_is_wrong_is_kept():
    refused = []
    (row,) = read_measurements(
        "\n".join([HEADING, ROW.replace(LINK, "https://example.org/a/b.csv"), ROW.replace("t4,", "t5,")]), refused
    )

    assert (row.source.title, row.url) == ("a/b.csv", "https://example.org/a/b.csv")
    assert len(refused) == 1
    assert "line 3: gpu_key 't5'" in refused[0]


def test_a_column_that_is_missing_is_named():
    with pytest.raises(InvalidInput, match=r"line 2: no 'time_s'"):
        read_measurements("\n".join([HEADING.replace("time_s", "time"), ROW]))
