"""`specs` on every name of the table, and on what is sold under almost the same name."""

import pytest

from gpuexplore.cli import EXIT_FAILED, EXIT_OK, main
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


@pytest.mark.parametrize("odd", ["(((", "[a-", ".*", "L4\x00", "\ud83d", "  ", "x" * 100_000])
def test_an_odd_name_is_none_and_does_not_flood_the_terminal(capsys, odd):
    assert main(("specs", odd)) == EXIT_FAILED

    told = capsys.readouterr().out
    assert "is no accelerator of the table" in told
    assert len(told) < 1000
