"""Selection of `make check`: test files that a change cannot reach are left out, and no other."""

import pytest

from tests.changed import changed_files, is_reached
from tests.unchanged import ROOT

TIMING = "tests/measure/sample/test_timing.py"
UNITS = "tests/core/test_units.py"
MEMORY = "tests/features/model/test_page.py"


@pytest.mark.parametrize(
    ("test", "changed", "reached"),
    [
        (TIMING, "gpuexplore/measure/sample/timing.py", True),
        (TIMING, "gpuexplore/core/units.py", True),  # which it does not import itself
        (TIMING, "gpuexplore/charts/over_sizes.py", False),
        (UNITS, "gpuexplore/measure/sample/timing.py", False),
        (UNITS, UNITS, True),
        (UNITS, "tests/conftest.py", True),
        (UNITS, "docs/tour.md", False),
        (MEMORY, "gpuexplore/features/model/page.py", True),  # a page, which no test imports
        (MEMORY, "gpuexplore/features/model/command.toml", True),
        (MEMORY, "gpuexplore/features/tensors/page.py", False),
        ("tests/pages/test_runs.py", "pages/runs.py", True),
        ("tests/docs/test_docs.py", "docs/tour.md", True),
        ("tests/architecture/test_shape.py", "README.md", True),
    ],
)
def test_a_test_is_kept_where_it_rests_on_what_has_changed(test, changed, reached):
    assert is_reached(ROOT / test, frozenset({changed})) is reached


def test_what_has_changed_are_files_of_this_checkout():
    changed = changed_files()

    assert changed is None or all(not file.startswith("/") for file in changed)
