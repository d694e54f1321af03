"""The pages on the runs, the own peaks and the links of the version before."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from gpuexplore.request import SHORT_NAMES
from tests.compatibility.conftest import ADA, DATA
from tests.compatibility.test_database import READABLE, UNKNOWN
from tests.pages.conftest import texts

LINKS = json.loads((DATA / "links.json").read_text(encoding="utf8"))

pytestmark = pytest.mark.usefixtures("store")


def choices(app: AppTest) -> dict[str, object]:
    """Return what the widgets hold, by the parameter of the URL that each writes."""
    widgets = (*app.selectbox, *app.multiselect, *app.text_input, *app.text_area, *app.button_group)
    held = [(widget.key.split("."), widget.value) for widget in widgets if widget.key]
    words = [(key[0] if key[0] == "with" else key[-1], value) for key, value in held]
    return {SHORT_NAMES.get(word, word): value for word, value in words}


@pytest.mark.parametrize("link", LINKS, ids=lambda link: f"{link['page']}-{'-'.join(link['link'])}")
def test_a_link_restores_the_choices_it_was_written_for(page, link):
    app = page(link["page"].replace("_", "-"), owner=ADA, **link["link"])
    for button in [button for button in app.button if button.label == "Edit"]:  # above a run the form is one line
        app = button.click().run()
    held = choices(app)
    expected = {SHORT_NAMES.get(name, name): value for name, value in link["choices"].items()}

    assert not app.exception
    assert {name: held.get(name) for name in expected} == expected


@pytest.mark.parametrize("run_id", READABLE)
def test_every_run_is_shown_under_its_link(page, store, run_id):
    app = page("benchmark", owner=ADA, run=run_id)
    results = store.load(run_id).results
    measured = sum(result.measurement is not None for result in results)

    assert not app.exception
    assert [len(table.value) for table in app.dataframe] == ([len(results)] if results else [])
    assert (len(app.get("vega_lite_chart")) > 0) == (measured > 0)
    assert bool(app.get("progress")) == (run_id in ("queuedruns", "runningrun"))


@pytest.mark.parametrize(("run_id", "reason"), UNKNOWN.items())
def test_a_run_that_names_what_is_unknown_is_refused_with_its_reason(page, run_id, reason):
    app = page("benchmark", owner=ADA, run=run_id)

    assert not app.exception
    assert reason in texts(app.warning)
    assert any(button.label == "Start with a new run" for button in app.button)


def test_own_peaks_are_what_a_run_is_compared_with_by_default(page):
    app = page("benchmark", owner=ADA, run="commandrun")
    stranger = page("benchmark", owner="bob", run="commandrun")

    assert any("a talk" in source for table in app.table for source in table.value.iloc[:, -1])
    assert not any("a talk" in source for table in stranger.table for source in table.value.iloc[:, -1])
    assert list(app.dataframe[0].value["MFU"]) != list(stranger.dataframe[0].value["MFU"])


def test_own_peaks_of_a_name_are_shown_on_the_page_of_devices(page):
    said = texts(page("devices", owner=ADA).markdown)

    assert re.search("fp32.*400 GFLOP/s.*a talk", said)
    assert re.search("memory.*20.0 GB/s.*a talk", said)


def test_runs_lie_on_the_roofline_of_their_device(page):
    here = page("roofline", owner=ADA, runs="all", recorded="off")
    own = page("roofline", owner=ADA, recorded="off")

    assert not here.exception  # of the failed run's case a newer result is there
    assert set(here.dataframe[0].value["Run"]) == {"commandrun", "everystate", "runningrun"}
    assert set(own.dataframe[0].value["Run"]) == {"everystate", "runningrun"}


def test_kernels_of_a_run_are_compared_on_the_page_of_kernels(page):
    app = page("kernels", owner=ADA, impl="numba-cuda-shared", run="gpuresults")
    ladder = app.dataframe[-1].value.set_index("Kernel")

    assert not app.exception
    assert (ladder.loc["numba-cuda-shared", "Of"], ladder.loc["numba-cuda-shared", "Status"]) == ("torch", "ok")


@pytest.mark.parametrize("run_id", ["commandrun", "everystate", "gpuresults"])
def test_a_run_is_a_workload_of_the_what_if_page(page, run_id):
    app = page("what-if", owner=ADA, what="run", run=run_id, device="cpu", gpus="l4")

    assert not app.exception
    assert not app.error
    assert len(app.get("vega_lite_chart")) > 0
