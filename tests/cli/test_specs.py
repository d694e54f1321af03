"""`specs` on every name of the table, and on what is sold under almost the same name."""

import pytest

from gpuexplore.cli import EXIT_FAILED, EXIT_OK
from gpuexplore.devices import ACCELERATORS
from tests.devices.variants import NEVER_HELD, typed_names

EACH = pytest.mark.parametrize("row", ACCELERATORS, ids=lambda row: row.key)


@EACH
def test_every_name_gives_exactly_its_device(answered, row):
    for name in typed_names(row):
        code, told = answered("specs", name, "--json")

        assert (code, told["key"], told["query"]) == (EXIT_OK, row.key, name)
        assert told["peaks"]
        assert told["bandwidth_bytes_per_s"] == row.bandwidth_bytes_per_s


@EACH
def test_no_variant_that_the_table_does_not_hold_gives_one(answered, row):
    for variant in NEVER_HELD:
        code, told = answered("specs", row.driver_names[0] + variant, "--json")

        assert (code, told["key"], told["peaks"]) == (EXIT_FAILED, None, {})
