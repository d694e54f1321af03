import re
from dataclasses import replace
from typing import get_args

import pytest

from gpuexplore.core.model import Accuracy, Experiment, Shape
from gpuexplore.features.fact_check.analysis import claims
from gpuexplore.features.fact_check.analysis.judge import Verdict, judge
from gpuexplore.features.fact_check.ui import VERDICTS
from tests.analysis.made import ok
from tests.pages.conftest import OWNER, compiler, home, page, store, texts


def shown(app):
    return " ".join(each.proto.body for each in app.get("html"))


def test_every_claim_has_a_row_with_its_verdict_and_the_strongest_is_explained_first(page):
    app = page("fact-check")

    assert not app.exception
    listed = re.findall(r'<li><span class="(\w*)">([^<]*)</span><div><a href="./fact-check.row=([^"]*)"', shown(app))
    assert {row: verdict for _, verdict, row in listed} == {claim.id: judge(claim).verdict for claim in claims()}
    assert {verdict: colour for colour, verdict, _ in listed}["confirmed here"] == "confirmed"
    assert app.selectbox[0].value == "B5"
    assert "3.88 TB/s" in texts(app.markdown)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("E7", "0.4473"),
        ("D2", "nothing to check"),
        ("A3", "No device of this server can measure this claim"),
    ],
)
def test_a_link_explains_its_row_and_offers_no_measurement_that_cannot_be_made_here(page, row, said):
    app = page("fact-check", row=row)

    assert app.selectbox[0].value == row
    assert said in texts([*app.markdown, *app.caption])
    assert "Measure it here" not in [button.label for button in app.button]


def test_a_row_that_is_not_there_is_named_and_the_first_is_shown(page):
    app = page("fact-check", row="Z9")

    assert not app.exception
    assert "Z9" in texts(app.error)
    assert app.selectbox[0].value == "B5"


def test_a_claim_that_can_be_measured_here_is_queued_at_a_click(page, store):
    app = page("fact-check", row="B6")
    next(button for button in app.button if button.label == "Measure it here").click().run()

    assert not app.exception
    (run,) = store.history(OWNER)
    assert (run.experiment.operation, run.experiment.implementations) == ("matvec", ("numpy", "torch"))


def test_what_was_measured_here_changes_the_verdict(page, store):
    shape = Shape.of(m=100_000, n=100)
    experiment = Experiment("matvec", (shape,), ("fp32",), ("numpy", "torch"))
    results = [
        replace(ok(operation="matvec", shape=shape, implementation=name), accuracy=Accuracy(error, 1.0))
        for name, error in (("numpy", 1e-7), ("torch", 1e-3))
    ]
    store.record(experiment, "somebody", results=results)
    app = page("fact-check", row="B6")

    assert not app.exception
    assert '<span class="doubtful">not confirmed here</span></div>' in shown(app)
    assert "0.001; claimed: <1e-5" in texts(app.markdown)


def test_every_verdict_has_its_meaning():
    findings, others = get_args(Verdict)

    assert list(VERDICTS) == [*get_args(findings), *get_args(others)]
