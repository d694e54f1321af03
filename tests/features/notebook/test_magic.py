"""The magic is the command: what it prints, what it returns, and how it says what it cannot do."""

import pytest

from gpuexplore.api import Outcome
from gpuexplore.cli import main
from tests.architecture.imports import libraries_loaded_by

RUN = "run vector_add --size 64 --dtype fp32 --impl numpy,torch --device cpu --budget 0.01 --no-save"


@pytest.fixture
def cell(shell):
    """Return how to run a cell: its result, which raises what the cell raised."""
    shell.run_cell("%load_ext gpuexplore").raise_error()

    def run(source):
        done = shell.run_cell(source)
        done.raise_error()
        return done.result

    return run


def test_importing_the_package_loads_no_library():
    assert not {"numpy", "IPython", "pandas"} & libraries_loaded_by(
        "import gpuexplore; gpuexplore.load_ipython_extension"
    )


@pytest.mark.parametrize("command", ["specs 'Tesla T4'", "predict matmul --gpu t4 --size 64 --dtype fp32"])
def test_a_line_prints_what_the_command_prints(cell, capsys, command):
    assert cell(f"%gpuexplore {command}") is None
    printed = capsys.readouterr().out
    main(command.replace("'", "").split() if "predict" in command else ["specs", "Tesla T4"])

    assert printed == capsys.readouterr().out
    assert len(printed) > 100


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "required: COMMAND"),
        ("nonsense", "invalid choice: 'nonsense'"),
        ("run", "operation '': expected matmul"),
        ("run nonsense", "operation 'nonsense': expected"),
        ("run matmul --dtype fp99", "'fp99': expected"),
        ("run matmul --size", "expected one argument"),
        ("run matmul --out /nowhere/at/all.json", "/nowhere/at"),
        ("run vector_add --size 64 --dtype fp32 --device cpu --no-save --baseline nonsense", "baseline 'nonsense'"),
        ("predict matmul --gpu 'Tesla", "No closing quotation"),
        ("specs \\", "No escaped character"),
        ("compare nothing nowhere", "nothing"),
        ("app", "show_app()"),
        ("worker tcp://127.0.0.1:1", "in a shell"),
        ("app --port x", "invalid int value"),
    ],
)
def test_what_cannot_be_done_is_said_without_a_traceback(cell, capsys, command, said):
    assert cell(f"%gpuexplore {command}") is None
    captured = capsys.readouterr()

    assert said in captured.err
    assert "Traceback" not in captured.err + captured.out
    assert "SystemExit" not in captured.err + captured.out


def test_help_is_printed(cell, capsys):
    assert cell("%gpuexplore run --help") is None
    assert "--budget SECONDS" in capsys.readouterr().out


@pytest.mark.slow
def test_run_returns_what_was_measured_and_the_notebook_draws_it(cell, shell, capsys):
    shown = cell(f"%gpuexplore {RUN}")
    printed = capsys.readouterr().out
    cell(f"out = %gpuexplore {RUN} --baseline numpy")
    cell(f"%gpuexplore {RUN} --json")
    out = shell.user_ns["out"]

    assert isinstance(shown, Outcome)
    assert [str(result.status) for result in shown.results] == ["ok", "ok"]
    assert "<table" in shown._repr_html_()
    assert "status" not in printed, "the table is drawn, not printed"
    assert [analyzed.speedup.baseline for analyzed in out.analyze().results] == ["numpy", "numpy"]
    assert '"schema_version"' in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_is_kept_unless_it_shall_not_be(cell, capsys):
    outcome = cell(f"%gpuexplore {RUN.replace('--no-save', '')}")

    assert len(outcome.results) == 2
    assert "Saved: in the app, add ?run=" in capsys.readouterr().err
