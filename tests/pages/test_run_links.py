"""A link to a run restores what was chosen on its page: baseline, peak, chart, hidden lines, step of a presentation."""

import pytest

from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from tests.pages.conftest import OWNER, link_of, specs

BASELINES = ("numpy", "torch", "fp32", "bf16")
CHARTS = ("time", "speedup", "share", "rate")
HIDDEN = ("bf16", "numpy", "torch")
CHOICES = [  # each option once, and others beside it each time
    {
        "baseline": BASELINES[number % 4],
        "peak": peak,
        "chart": CHARTS[(number + 1 + number // 4) % 4],
        "hide": list(HIDDEN[: number % 4]),
    }
    for number, peak in enumerate(("", *PEAK_SOURCES))
]


def held(app):
    """Return what the widgets of the page hold."""
    names = {
        key: app.session_state[f"benchmark.{key}"] for key in CHOICES[0] if f"benchmark.{key}" in app.session_state
    }
    return names | {"hide": app.session_state["benchmark.hide"]}


@pytest.mark.parametrize("choice", CHOICES)
def test_what_is_chosen_is_in_the_link_and_comes_back(page, store, experiment, results, choice):
    run_id = store.record(experiment, OWNER, results=results)
    first = page("benchmark", run=run_id)
    if choice["baseline"] != "numpy":
        first.selectbox(key="benchmark.baseline").set_value(choice["baseline"])
    first.selectbox(key="benchmark.peak").set_value(choice["peak"])
    if choice["chart"] != "time":
        first.button_group(key="benchmark.chart").select(choice["chart"])
    first.multiselect(key="benchmark.hide").set_value(choice["hide"])
    first.run()
    first.run()
    again = page("benchmark", **link_of(first))

    assert not again.exception
    assert not again.warning
    assert held(again) == held(first) == choice
    assert specs(again) == specs(first)
    assert [title.value for title in again.title] == [title.value for title in first.title]


def test_each_step_of_a_presentation_comes_back(page, store, experiment, results):
    run_id = store.record(experiment, OWNER, results=results)
    walked = page("benchmark", run=run_id, view="present")
    for _ in range(4):
        again = page("benchmark", **link_of(walked))
        assert not again.exception
        assert [title.value for title in again.title] == [title.value for title in walked.title]
        assert specs(again) == specs(walked)
        next(button for button in walked.button if button.label == "Next").click().run()
