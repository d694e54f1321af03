from gpuexplore.analysis.fact_check.claim import claims
from gpuexplore.analysis.fact_check.judge import Judgement, judge
from gpuexplore.ui.fact_check.view import VERDICTS
from tests.pages.conftest import texts


def test_every_claim_has_a_row_with_its_verdict(page):
    app = page("fact_check")

    assert not app.exception
    table = app.dataframe[0].value
    assert dict(zip(table["Row"], table["Verdict"], strict=True)) == {one.id: judge(one).verdict for one in claims()}


def test_the_strongest_finding_is_explained_first(page):
    app = page("fact_check")

    assert app.selectbox[0].value == "B5"
    assert "3.88 TB/s" in texts(app.markdown)


def test_a_link_explains_its_row(page):
    app = page("fact_check", row="E7")

    assert app.selectbox[0].value == "E7"
    assert "0.4473" in texts(app.markdown)


def test_a_row_that_is_not_there_is_named_and_the_first_is_shown(page):
    app = page("fact_check", row="Z9")

    assert not app.exception
    assert "Z9" in texts(app.error)
    assert app.selectbox[0].value == "B5"


def test_a_claim_without_figures_says_so(page):
    assert "nothing to check" in texts(page("fact_check", row="A3").caption)


def test_every_verdict_has_its_meaning():
    possible = set(Judgement.__annotations__["verdict"].__args__[0].__args__) | {"possible", "confirmed here"}

    assert VERDICTS.keys() == possible
