"""`train` asks for a training and prints what came of it."""

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.serialization import encode
from gpuexplore.features.training import train_command
from tests.analysis.made import device
from tests.cli.conftest import answered, home
from tests.features.training.made_training import processes, report


@pytest.fixture
def asked(monkeypatch):
    """Return the activities that were asked for; nothing is trained."""
    activities = []

    def perform(activity, on_payload):
        activities.append(activity)
        payload = encode(report(processes=processes()))
        on_payload(payload)
        return (payload,)

    monkeypatch.setattr(train_command, "perform", perform)
    monkeypatch.setattr(train_command, "discover", lambda: (device(),))
    return activities


def test_json_has_the_whole_report(answered, asked):
    code, told = answered("train", "3-10-2", "--steps", "3", "--learning-rate", "0.1", "--json")

    assert code == EXIT_OK
    assert dict(asked[0].arguments) == {"model": "3-10-2", "steps": "3", "learning_rate": "0.1"}
    assert told == encode(report(processes=processes()))


def test_a_terminal_gets_a_table_phases_scaler_and_processes(capsys, asked):
    assert main(("train",)) == EXIT_OK

    told = capsys.readouterr().out
    assert "3-10-2: 62 parameters, batch 100, 2.4e+04 FLOPs per step, sgd 0.05, data rule, 2 threads" in told
    assert "guessing has a loss of 0.6931" in told
    for words in ("fp16  0.7000      0.5000", "3.60 ms to 4.40 ms", "2.00×", "25,000", "25.0 %", "backward 1.00 ms"):
        assert words in told
    assert "loss scale 65536 from step 0, 32768 from step 2; 1 steps skipped" in told
    assert "100 % of the gradients are zero, 0.90 % scaled by 65536" in told
    assert "2 processes (gloo) over one, fp32: 1.60× (1.44× to 1.76×), efficiency 80.0 %" in told
    assert "2,493,160 bytes" in told


def test_a_device_that_trainings_were_not_made_for_is_refused(capsys, asked, monkeypatch):
    monkeypatch.setattr(train_command, "discover", lambda: (device(), device(device_id="rocm:0")))

    assert main(("train", "--device", "rocm:0")) == EXIT_UNUSABLE
    assert "a training needs a CPU or an NVIDIA GPU, but rocm:0 is AMD ROCm" in capsys.readouterr().err
    assert asked == []


def test_what_cannot_be_trained_is_named(capsys, asked):
    assert main(("train", "--modes", "fp8")) == EXIT_UNUSABLE

    assert "mode 'fp8': expected fp32, bf16" in capsys.readouterr().err
    assert asked == []
