"""`factcheck` tells the verdicts that the rules derive."""

from dataclasses import replace

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.model import Accuracy, Measurement, Result, Shape, Status
from gpuexplore.features.fact_check import factcheck_command
from gpuexplore.features.fact_check.analysis import claims
from gpuexplore.features.fact_check.analysis.judge import judge
from tests.analysis.made import environment
from tests.cli.conftest import answered, home


def test_json_has_every_claim_with_its_verdict(answered):
    code, told = answered("factcheck", "--json")

    assert code == EXIT_OK
    assert [claim["id"] for claim in told["claims"]] == [claim.id for claim in claims()]
    assert {claim["verdict"] for claim in told["claims"]} == {judge(claim).verdict for claim in claims()}
    assert all(claim.keys() == {"id", "claim", "verdict", "findings", "evidence"} for claim in told["claims"])


def test_one_row(answered):
    code, told = answered("factcheck", "b5", "--json")

    (claim,) = told["claims"]
    assert (code, claim["verdict"]) == (EXIT_OK, "impossible")
    assert claim["findings"] == ["impossible", "not a measurement"]
    assert "3.88 TB/s" in claim["evidence"][0]


@pytest.mark.parametrize("words", [(), ("",)])
def test_a_terminal_gets_all_verdicts_or_the_evidence_of_a_row(capsys, words):
    assert main(("factcheck", *words)) == EXIT_OK
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(claims())
    assert main(("factcheck", "B4")) == EXIT_OK
    told = capsys.readouterr().out
    assert "contradicts itself" in told
    assert "not about 9" in told


@pytest.mark.parametrize("row", ["Z9", "\ud83d", "x" * 100_000])
def test_a_row_that_is_not_there_is_named(capsys, row):
    assert main(("factcheck", row)) == EXIT_UNUSABLE
    assert "there are claims of A1" in capsys.readouterr().err


def test_what_cannot_be_measured_here_is_said(capsys):
    assert main(("factcheck", "E7", "--measure")) == EXIT_OK
    told = capsys.readouterr()
    assert "No device of this machine can measure this" in told.err
    assert "the device has to be a Tesla T4" in told.out


def test_what_would_confirm_a_claim_is_measured_and_kept(monkeypatch, capsys):
    shape = Shape.of(m=100_000, n=100)

    def measured(experiment, devices, engine):
        assert (experiment.operation, experiment.shapes) == ("matvec", (shape,))
        return tuple(
            Result(
                case,
                Status.OK,
                measurement=Measurement((1e-3,) * 9, first_call_s=1.0),
                accuracy=Accuracy(1e-3, 1.0),
                environment=replace(environment(), device=devices[0]),
            )
            for case in experiment.cases()
        )

    monkeypatch.setattr(factcheck_command, "measure", measured)
    assert main(("factcheck", "B6", "--measure")) == EXIT_OK
    assert "  not confirmed here" in capsys.readouterr().out
    assert main(("factcheck", "B6")) == EXIT_OK  # it was kept
    assert "Measured here: relative error" in capsys.readouterr().out
