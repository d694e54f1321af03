"""`tensor` tells what the steps of an expression make."""

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from tests.cli.conftest import answered, home

WRITE = "x = 2x3; y = x.t(); x[0][1] = 100"


def test_json_has_every_step_with_its_layout(answered):
    code, told = answered("tensor", "x = 2x3; x.t().reshape(6)", "--json")

    assert code == EXIT_OK
    assert [step["kind"] for step in told["steps"]] == ["start", "start", "view", "copy"]
    assert told["steps"][2] | {"shape": [3, 2], "strides": [1, 3], "contiguous": False} == told["steps"][2]
    assert (told["is_view"], told["values"]) == (False, [0, 3, 1, 4, 2, 5])


def test_json_and_a_terminal_say_what_a_write_changes(answered, capsys):
    (write,) = answered("tensor", WRITE, "--json")[1]["writes"]
    assert write["text"] == "x[0][1] = 100"
    assert "y sees it at [1, 0]." in write["changes"]

    assert main(("tensor", WRITE)) == EXIT_OK
    told = capsys.readouterr().out
    assert ["x.t()", "view", "A", "(3,", "2)"] in [line.split()[:5] for line in told.splitlines()]
    assert "It changes cell 1 of storage A." in told


def test_what_cannot_be_evaluated_is_unusable(capsys):
    assert main(("tensor", "__import__('os')")) == EXIT_UNUSABLE
    assert "__import__" in capsys.readouterr().err
    assert main(("tensor", "x = 2x3; x.t().view(2, 3)")) == EXIT_UNUSABLE
    assert "view never copies" in capsys.readouterr().err
