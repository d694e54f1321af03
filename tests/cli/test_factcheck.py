"""`factcheck` tells the verdicts that the rules derive."""

import pytest

from gpuexplore.analysis.fact_check.claim import claims
from gpuexplore.analysis.fact_check.judge import judge
from gpuexplore.cli import EXIT_OK, EXIT_UNUSABLE, main


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


def test_a_terminal_gets_the_evidence_of_a_row(capsys):
    assert main(("factcheck", "B4")) == EXIT_OK
    told = capsys.readouterr().out
    assert "contradicts itself" in told
    assert "not about 9" in told


def test_a_terminal_gets_all_verdicts(capsys):
    assert main(("factcheck",)) == EXIT_OK
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 1 + len(claims())


@pytest.mark.parametrize("row", ["Z9", "", "\ud83d", "x" * 100_000])
def test_a_row_that_is_not_there_is_named(capsys, row):
    expected = EXIT_OK if row == "" else EXIT_UNUSABLE  # no row means all
    assert main(("factcheck", row)) == expected
    if row:
        assert "there are claims of A1" in capsys.readouterr().err
