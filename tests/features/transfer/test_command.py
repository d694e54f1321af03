"""`transfer` measures moves, calls and work, and tells from where on a GPU wins."""

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.serialization import encode
from gpuexplore.features.transfer import transfer_command
from tests.analysis.made import device
from tests.cli.conftest import answered, home
from tests.features.transfer.analysis.made import observed


@pytest.fixture
def performed(monkeypatch):
    """Return the activities that were asked for; none is done."""
    asked = []

    def perform(activity):
        asked.append(activity)
        return tuple(encode(part) for part in observed())

    monkeypatch.setattr(transfer_command, "perform", perform)
    return asked


def test_json_has_what_was_measured_and_the_break_even_with_its_interval(answered, performed):
    code, told = answered("transfer", "matmul", "--gpu", "Tesla T4", "--link", "pcie3-x16", "--json")

    assert (code, [activity.arguments for activity in performed]) == (EXIT_OK, [(("operation", "matmul"),)])
    assert set(told["measured"]) == {"moves", "calls", "work"}
    assert told["link"]["bytes_per_s"] == pytest.approx(15.75e9, rel=1e-3)
    found = told["break_even_size"]
    assert found["low"] <= found["value"]
    by_size = {point["size"]: point for point in told["sizes"]}
    assert (by_size[64]["cpu"]["origin"], by_size[64]["kernel"]["origin"]) == ("measured", "predicted")


def test_a_device_that_torch_alone_finds_is_refused(capsys, performed, monkeypatch):
    monkeypatch.setattr(transfer_command, "discover", lambda: (device(), device(device_id="xpu:0")))

    assert main(("transfer", "matmul", "--device", "xpu:0")) == EXIT_UNUSABLE
    assert "measuring transfers needs a CPU or an NVIDIA GPU, but xpu:0 is Intel XPU" in capsys.readouterr().err
    assert performed == []


def test_a_prediction_measures_nothing_and_a_terminal_gets_the_readings_in_columns(capsys, performed):
    assert main(("transfer", "matmul", "--predict")) == EXIT_OK
    assert performed == []
    assert "Tesla T4 wins from size " in capsys.readouterr().out

    main(("transfer",))
    told = capsys.readouterr().out
    assert "torch memory copy  67,108,864 B" in told
    assert "numpy call" in told


def test_unknown_names_are_refused(capsys):
    assert main(("transfer", "sort")) == EXIT_UNUSABLE
    assert main(("transfer", "--gpu", "voodoo")) == EXIT_UNUSABLE
    assert main(("transfer", "--link", "usb")) == EXIT_UNUSABLE
    assert "expected own, pcie3-x16" in capsys.readouterr().err
