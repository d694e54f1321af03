"""A recording of the version before: it validates, and is drawn."""

import shutil

import pytest

from gpuexplore.cli import main
from tests.compatibility.conftest import ADA, RECORDING
from tests.pages.conftest import texts


@pytest.fixture
def shipped(folder):
    """Let the recording be one of those that ship."""
    return shutil.copy(RECORDING, folder / "before.jsonl")


@pytest.mark.usefixtures("home")
def test_a_recording_of_the_version_before_validates(capsys):
    assert main(["record", "--check", str(RECORDING)]) == 0
    assert capsys.readouterr().out.splitlines()[-4:-1] == [
        "matmul: 8 of 8 cases",
        "triad: 8 of 8 cases",
        "status: 16 ok",
    ]


@pytest.mark.usefixtures("shipped", "home")
@pytest.mark.parametrize("operation", ["matmul", "triad"])
def test_a_recording_of_the_version_before_is_drawn_with_its_provenance(page, operation):
    app = page("benchmark", run=f"recorded-before-{operation}")

    assert not app.exception
    assert len(app.dataframe[0].value) == 8
    assert len(app.get("vega_lite_chart")) == 1
    assert "by gpuexplore's tests, commit `342fd6e6fe41`" in texts(app.caption)


@pytest.mark.usefixtures("shipped", "store")
def test_a_recording_of_the_version_before_is_drawn_beside_a_run(page):
    app = page("benchmark", owner=ADA, run="commandrun", **{"with": "before"})

    assert "by gpuexplore's tests" in texts(app.caption)
    assert any("recorded" in chart.proto.spec for chart in app.get("vega_lite_chart"))


@pytest.mark.usefixtures("shipped", "store")
def test_a_recording_of_the_version_before_lies_on_the_roofline_of_its_device(page):
    app = page("roofline", owner=ADA, runs="none")

    assert set(app.dataframe[0].value["From"]) == {"recorded"}
