"""Published results belong to devices of the table, name their source and are never above what is possible."""

import re
from urllib.parse import urlsplit

from gpuexplore.analysis.utilization.peak_sources import NOTED, PUBLISHED, best_published
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.features.atlas.analysis import _of_product
from gpuexplore.hardware import ACCELERATORS
from gpuexplore.recorded.published import published_measurements

KEYS = {row.key for row in ACCELERATORS}


def test_every_result_has_a_device_a_dtype_and_a_source():
    assert [published for published in PUBLISHED if published.spec_key not in KEYS] == []
    assert [published for published in PUBLISHED if published.dtype not in FORMATS] == []
    assert len(PUBLISHED) > 15
    assert {urlsplit(published.source).hostname for published in PUBLISHED} == {"github.com"}


def test_rows_lie_in_the_file_of_their_licence():
    assert {_of_product(published).licence for published in PUBLISHED} == {"CC-BY-SA-4.0"}
    assert "CC-BY-SA-4.0" not in {row.source.licence for row in published_measurements()}


def test_the_best_of_several_counts_and_unknown_stays_unknown():
    best = best_published("a100-sxm4-80gb", "bf16")
    assert best
    assert (best.flop_per_s, best.kind) == (271.2e12, "published")
    assert "m=1024,k=5120,n=10240" in best.source
    assert best_published("a100-sxm4-80gb", "fp64") is None
    assert best_published(None, "bf16") is None


def is_printed(flop_per_s, notes):
    return re.search(rf"(?<![\d.]){re.escape(f'{flop_per_s / 1e12:g}')}(\.0)?(?![\d.]\d)", notes) is not None


def test_a_noted_rate_stands_in_the_notes_of_its_row():
    notes = {row.key: row.notes for row in ACCELERATORS}
    rates = [(noted, rate) for noted in NOTED for rate in (noted.low_flop_per_s, noted.high_flop_per_s)]

    assert rates
    assert [noted for noted in NOTED if noted.dtype not in FORMATS] == []
    assert [(noted, rate) for noted, rate in rates if not is_printed(rate, notes[noted.spec_key])] == []
