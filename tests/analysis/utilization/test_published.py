"""Published results belong to devices of the table, name their source and are never above what is possible."""

import re

import pytest

from gpuexplore.analysis.utilization.published import NOTED, PUBLISHED, best_published
from gpuexplore.devices import ACCELERATORS
from gpuexplore.dtypes import FORMATS

KEYS = {row.key for row in ACCELERATORS}


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: f"{published.spec_key}-{published.dtype}")
def test_every_result_has_a_device_a_dtype_and_a_source(published):
    assert published.spec_key in KEYS
    assert published.dtype in FORMATS
    assert published.source.startswith("https://") or "notebook" in published.source


def test_a_notebooks_time_is_the_one_it_printed():
    fp32, bf16 = (
        next(published for published in PUBLISHED if (published.spec_key, published.dtype) == ("t4", dtype))
        for dtype in ("fp32", "bf16")
    )
    assert fp32.time_s == pytest.approx(1.7327, rel=1e-3)
    assert bf16.time_s == pytest.approx(3.874, rel=1e-3)


def test_the_best_of_several_counts_and_unknown_stays_unknown():
    best = best_published("a100-sxm4-80gb", "bf16")
    assert best
    assert (best.flop_per_s, best.kind) == (271.2e12, "published")
    assert "m=1024,k=5120,n=10240" in best.source
    assert best_published("a100-sxm4-80gb", "fp64") is None
    assert best_published(None, "bf16") is None


@pytest.mark.parametrize("noted", NOTED, ids=lambda noted: f"{noted.spec_key}-{noted.dtype}")
def test_a_noted_rate_stands_in_the_notes_of_its_row(noted):
    notes = next(row.notes for row in ACCELERATORS if row.key == noted.spec_key)
    assert noted.dtype in FORMATS
    for flop_per_s in (noted.low_flop_per_s, noted.high_flop_per_s):
        assert re.search(rf"(?<![\d.]){re.escape(f'{flop_per_s / 1e12:g}')}(\.0)?(?![\d.]\d)", notes)
