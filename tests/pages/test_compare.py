from dataclasses import replace

import pytest

from gpuexplore.core.model import Experiment, Shape
from gpuexplore.recorded import recordings
from gpuexplore.store import Description
from tests.analysis.made import ok
from tests.pages.conftest import OWNER, texts


@pytest.fixture
def stored(store):
    """Return a function that stores a run of two sizes, and returns its id."""

    def store_run(factor, owner=OWNER):
        results = [ok(factor * 1e-3 * size, size=size) for size in (64, 128)]
        results = [
            replace(result, measurement=replace(result.measurement, between_processes=0.004)) for result in results
        ]
        shapes = tuple(Shape.of(m=size, k=size, n=size) for size in (64, 128))
        return store.record(Experiment("matmul", shapes, ("fp32",), ("torch",)), owner, results=results)

    return store_run


def test_recorded_runs_are_compared_and_labelled_where_there_are_no_two_of_ones_own(page, stored):
    stored(1.0)
    app = page("compare")

    assert not app.exception
    assert "11 faster" in texts(app.markdown)
    assert "NVIDIA H200, 2026-11-28: triad, compared with NVIDIA H100 80GB HBM3" in texts(app.caption)
    assert [badge.proto.body for badge in app.markdown if "Recorded" in badge.value]
    assert len(app.get("vega_lite_chart")) == 1


def test_newest_two_are_compared_where_the_link_names_none(page, stored):
    stored(3.0)
    before, after = stored(1.0), stored(1.2)
    app = page("compare")

    assert {name: app.query_params[name] for name in ("a", "b")} in (
        {"a": before, "b": after},
        {"a": [before], "b": [after]},
    )
    assert "2 slower" in texts(app.markdown)


def test_two_runs_are_compared_in_a_sentence_a_chart_and_a_table(page, stored):
    app = page("compare", a=stored(1.0), b=stored(1.2))

    assert not app.exception
    assert r"Of 2 cases: 2 slower; geometric mean of the conclusive ones: 20.0 % slower." in texts(app.markdown)
    assert len(app.get("vega_lite_chart")) == 1
    assert list(app.dataframe[-1].value["Change"]) == ["slower", "slower"]
    assert list(app.dataframe[-1].value["Ratio"]) == pytest.approx([1.2, 1.2])
    assert "are the same in both" in texts(app.caption)
    assert any("| **slower** |" in block.value for block in app.code)


def test_ones_own_runs_and_recorded_ones_are_offered_and_the_links_own(page, stored, store):
    mine, theirs = stored(1.0), stored(1.0, owner="somebody else")
    store.describe(mine, OWNER, Description(title="Monday"))
    app = page("compare", b=theirs)
    before, after = app.selectbox

    assert any(option.startswith("Monday · ") for option in before.options)
    assert any(recordings()[0].title in option for option in before.options)
    assert len(after.options) == len(before.options) + 1
    before.set_value(mine).run()
    assert app.query_params["a"] == [mine] or app.query_params["a"] == mine
    assert "2 unchanged" in texts(app.markdown)


def test_what_is_not_there_is_named_and_taken_out_of_the_link(page, stored):
    app = page("compare", a="gone", b=stored(1.0))

    assert not app.exception
    assert "gone" in texts(app.warning)
    assert "a" not in app.query_params
    assert "Choose the run before, or tick two" in texts(app.info)


def test_what_differs_is_listed_and_names_are_shown_as_they_are(page, stored, store):
    first, second = stored(1.0), stored(1.0)
    store.describe(first, OWNER, Description(title="<b>*bold* [x](y)"))
    loaded = store.load(second)
    results = [
        replace(result, environment=replace(result.environment, libraries={"torch": "9"})) for result in loaded.results
    ]
    other = store.record(loaded.experiment, OWNER, results=results)
    app = page("compare", a=first, b=other)

    table = app.dataframe[0].value
    assert dict(zip(table["What"], table["After"], strict=True))["torch"] == "9"
    assert any(r"\<b\>\*bold\* \[x\](y)" in block.value for block in app.code)
