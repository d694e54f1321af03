"""`mistake` lists what can go wrong, and makes one mistake beside the right way."""

import pytest

from gpuexplore.activity import of_kind
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.serialization import encode
from gpuexplore.features.mistakes import mistake_command
from gpuexplore.features.mistakes.catalog import MISTAKES, Detection, Factor, WayReading
from tests.cli.conftest import answered, home
from tests.features.mistakes.catalog.made import observation


@pytest.fixture
def made(monkeypatch):
    """Return how to lay out what comes out, and the requests that came in."""
    asked = []

    def lay_out(**about):
        def perform(activity):
            asked.append(activity)
            name = dict(activity.arguments)["name"]
            return (encode(observation(mistake=name, **about)),)

        monkeypatch.setattr(mistake_command, "perform", perform)
        return asked

    return lay_out


def test_a_device_that_mistakes_were_not_made_for_is_refused(capsys, made):
    asked = made()

    assert main(("mistake", "no-synchronise", "--device", "mps:0")) == EXIT_UNUSABLE
    assert "the mistake no-synchronise needs a CPU or an NVIDIA GPU, but mps:0 is Apple MPS" in capsys.readouterr().err
    assert asked == []


def test_without_a_name_every_mistake_is_listed_with_its_sign(answered, capsys):
    code, told = answered("mistake", "--json")

    assert code == main(("mistake",)) == EXIT_OK
    assert [mistake["name"] for mistake in told["mistakes"]] == list(MISTAKES)
    assert told["mistakes"][0]["gives_away"] == {"kind": "flag", "name": "over_peak"}
    assert told["mistakes"][0]["unit"] == "FLOP/s"
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(MISTAKES)
    assert lines[1].split() == ["no-synchronise", "A2", "B5", "flag", "over_peak"]


def test_json_has_both_values_with_their_intervals_and_what_was_found(answered, made):
    asked = made()

    code, told = answered("mistake", "first-call", "--json")

    assert (code, asked) == (EXIT_OK, [of_kind("mistake", {"name": "first-call"}, expected_s=5.0)])
    assert told["wrong"] == {"value": 2e-3, "ci95": [1.9e-3, 2.1e-3], "text": None}
    assert told["right"] == {"value": 1e-3, "ci95": [0.9e-3, 1.1e-3], "text": None}
    assert told["factor"] == {"ratio": 2.0, "ci95": [1.8, 2.2]}
    assert (told["quantity"], told["unit"], told["origin"]) == ("time", "s", "measured here")
    assert (told["detected"], told["evidence"], told["within_noise"]) == (True, "it shows", False)
    assert told["verdict"] == "2.00× (1.80× to 2.20×): almost certainly too large"
    assert told["environment"]["device"]["id"] == "cpu"


def test_a_value_that_is_no_number_stays_json(answered, made):
    made(wrong=WayReading(None, text="inf"), factor=None)

    _, told = answered("mistake", "fp16-overflow", "--json")

    assert told["wrong"] == {"value": None, "ci95": None, "text": "inf"}
    assert (told["factor"], told["within_noise"]) == (None, None)


def test_a_terminal_gets_wrong_beside_right(capsys, made):
    made(note="a note", source="a leaflet")

    assert main(("mistake", "mean-of-five")) == EXIT_OK
    told = capsys.readouterr().out
    assert "wrong  2.00 ms  1.90 ms to 2.10 ms" in told
    assert "right  1.00 ms  0.900 ms to 1.10 ms" in told
    assert "wrong value over right value: 2.00× (1.80× to 2.20×): almost certainly too large" in told
    assert "given away: it shows\na note\na leaflet\n" in told


@pytest.mark.parametrize(
    ("name", "detected", "said"),
    [
        ("minimum", False, "not given away"),
        ("minimum", None, "undecided"),
        ("result-allocated", None, "cannot be detected"),
    ],
)
def test_a_terminal_is_told_what_was_not_found(capsys, made, name, detected, said):
    about = {"factor": Factor(1.0, (0.9, 1.1))} if name == "minimum" else {}
    made(detection=Detection(detected, "nothing shows"), **about)

    main(("mistake", name))
    assert f"{said}: nothing shows" in capsys.readouterr().out


def test_unknown_names_are_refused_with_the_accepted_ones(capsys):
    assert main(("mistake", "no-clock")) == EXIT_UNUSABLE
    assert "expected no-synchronise" in capsys.readouterr().err
    assert main(("mistake", "minimum", "--device", "tpu")) == EXIT_UNUSABLE
    assert "device 'tpu': expected cpu" in capsys.readouterr().err


@pytest.mark.slow
def test_a_worker_makes_the_mistake(answered):
    code, told = answered("mistake", "grid-floor", "--json")

    assert (code, told["wrong"]["value"], told["right"]["value"]) == (EXIT_OK, 672, 0)
    assert told["detected"] is True
