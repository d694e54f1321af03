"""`specs` on every name of the table, and on what is sold under almost the same name."""

from itertools import cycle

import pytest

from gpuexplore.cli import COMMANDS, main
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK
from gpuexplore.hardware import ACCELERATORS
from tests.hardware.variants import NEVER_HELD, typed_names


def test_every_name_gives_its_device_or_names_it_as_another_of_that_name(answered):
    answers = {(row, name): answered("specs", name, "--json") for row in ACCELERATORS for name in typed_names(row)}
    wrong = {
        name: (code, told)
        for (row, name), (code, told) in answers.items()
        if (code, told["query"]) != (EXIT_OK, name)
        or row.key not in (told["key"], *told["same_driver_name"])
        or not told["peaks"]
        or (told["key"] == row.key and told["bandwidth_bytes_per_s"] != row.bandwidth_bytes_per_s)
    }

    assert wrong == {}


def test_no_variant_that_the_table_does_not_hold_gives_one(answered):
    """One variant each: tests/hardware/test_specs.py asks the same table for all of them."""
    variants = cycle(NEVER_HELD)
    names = [row.driver_names[0] + variant for row, variant in zip(ACCELERATORS, variants, strict=False)]
    answers = {name: answered("specs", name, "--json") for name in names}

    assert {
        name: (code, told)
        for name, (code, told) in answers.items()
        if (code, told["key"], told["peaks"]) != (EXIT_FAILED, None, {})
    } == {}


@pytest.mark.parametrize("odd", ["(((", "[a-", ".*", "L4\x00", "\ud83d", "  ", "x" * 100_000])
def test_an_odd_name_is_none_and_does_not_flood_the_terminal(capsys, odd):
    assert main(("specs", odd)) == EXIT_FAILED

    told = capsys.readouterr().out
    assert "is not in the table of accelerators" in told
    assert len(told) < 1000


def test_notes_kinds_and_other_cards_of_the_name_are_printed(capsys):
    assert main(("specs", "NVIDIA GeForce RTX 3080")) == EXIT_OK

    told = capsys.readouterr().out
    assert "notes: The 12 GB card (70 SM, 912 GB/s) and modded 20 GB cards report the SAME name" in told
    assert "a driver gives the same name to rtx-3080-12gb" in told
    assert "fp64  matrix     465 GFLOP/s  formula  " in told
    assert "memory              760 GB/s  datasheet  https://www.nvidia.com" in told


MODEL, READ = "h100", "H100 read as H100 SXM5 80GB; also PCIe, NVL"
ASKED_OF = {
    "specs": ("specs", MODEL),
    "predict": ("predict", "matmul", "--size", "512", "--gpu", MODEL, "--dtype", "fp16"),
    "check": ("check", "matmul", "--size", "512", "--gpu", MODEL, "--time", "1s"),
    "memory": ("memory", "gpt2", "--gpu", MODEL),
    "atlas": ("atlas", "matmul", "--gpu", MODEL, "--dtype", "fp8"),
    "atlas --which": ("atlas", "matmul", "--which", "--size", "512", "--gpu", "l4,h100-sxm5-80gb", "--price", "h100=2"),
    "occupancy": ("occupancy", "--gpu", MODEL, "--registers", "32", "--block", "256"),
    "transfer": ("transfer", "--gpu", MODEL, "--predict"),
}


@pytest.mark.parametrize("words", [words for words in ASKED_OF.values() if words[0] in COMMANDS], ids=" ".join)
def test_every_command_takes_a_model_and_says_which_variant_was_meant(capsys, answered, words):
    assert main(words) == EXIT_OK
    assert f"gpuexplore: {READ}\n" in capsys.readouterr().err

    code, told = answered(*words, "--json")
    assert (code, told["readings"]) == (EXIT_OK, [READ])
