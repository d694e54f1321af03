"""What the checks of the table rest on: a defect planted in one row is found, and named with its row."""

from dataclasses import replace

import pytest

from gpuexplore.hardware.accelerators import ACCELERATORS
from tests.hardware import table_checks

PLANTED = {
    "two rows of one key": (table_checks.repeated_keys, "l40s", {"key": "l4"}),
    "a pattern that takes a neighbour": (table_checks.wrongly_matched, "l4", {"match_regex": "^(NVIDIA )?(L4.*)$"}),
    "a pattern that misses its own name": (table_checks.wrongly_matched, "l4", {"match_regex": "^L4$"}),
    "a bandwidth below zero": (table_checks.not_above_zero, "l4", {"bandwidth_bytes_per_s": -300e9}),
    "no multiprocessor": (table_checks.not_above_zero, "l4", {"multiprocessors": 0}),
    "a peak that falls": (table_checks.falling_peaks, "l4", {"rates": {"fp32": 30e12, "fp16_vector": 15e12}}),
    "no document": (table_checks.peaks_without_rate_or_document, "l4", {"source_url": ""}),
    "a peak of zero": (table_checks.peaks_without_rate_or_document, "l4", {"rates": {"fp32": 0.0}}),
    "no peak": (table_checks.wrong_native_dtypes, "l4", {"rates": {}}),
    "two rows of one display name": (table_checks.repeated_names, "l40s", {"name": "L4"}),
    "two cards that nothing tells apart": (
        table_checks.repeated_names,
        "rtx-4060-ti-16gb",
        {"memory_bytes": 8 * 2**30},
    ),
    "a figure nobody declared": (table_checks.undeclared_figures, "l4", {"derived": {}}),
    "a derivation of no kind": (table_checks.undeclared_figures, "l4", {"derived": {"fp32": "guess"}}),
    "a printed figure of a third party": (table_checks.printed_elsewhere, "l4", {"source_url": "https://example.org/"}),
    "a computed rate nobody computes": (table_checks.off_their_derivation, "rtx-4070", {"multiprocessors": 60}),
    "another architecture": (table_checks.off_the_formula, "l4", {"compute_capability": "8.0"}),
    "another rate class": (table_checks.wrong_rate_classes, "rtx-4090", {"rate_class": "ada-pro"}),
    "an unknown rate class": (table_checks.wrong_rate_classes, "l4", {"rate_class": "l4"}),
    "another clock": (table_checks.off_the_formula, "l4", {"boost_clock_hz": 4e9}),
}


def with_defect(key, changes):
    """Return the table with some fields of one row changed."""
    return tuple(replace(row, **changes) if row.key == key else row for row in ACCELERATORS)


@pytest.mark.parametrize(("check", "key", "changes"), PLANTED.values(), ids=PLANTED)
def test_planted_defect_is_found_and_named(check, key, changes):
    found = set(check(with_defect(key, changes))) - set(check(ACCELERATORS))

    assert found
    assert all(changes.get("key", key) in str(named) for named in found)
