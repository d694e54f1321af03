from dataclasses import replace

import pytest
import streamlit as st

from gpuexplore.core.model import RunState
from gpuexplore.core.serialization import encode
from gpuexplore.features.training.measure import activity_of
from gpuexplore.ui import activity, session
from gpuexplore.ui.shared.pace import _Pace
from tests.analysis.made import device
from tests.features.training.made_training import fp16, mode, processes, report
from tests.hardware.torch_answers import found_on
from tests.pages.conftest import OWNER, beat, compiler, home, page, store, texts, told

pytestmark = pytest.mark.long
DEFAULTS = {"model": "3-10-2", "steps": "100", "modes": "fp32,bf16", "data": "rule", "optimizer": "sgd"}
DEFAULTS |= {"processes": "1", "seed": "0"}


@pytest.fixture
def observed(store):
    """Return a function that queues the default training, adds payloads to it and ends it."""

    def add(*reports, state=None, reason=None, **arguments):
        activity = activity_of(DEFAULTS | arguments, device(), 0)
        run_id = store.submit(activity, OWNER)
        claim = store.claim("tests", {"cpu"})
        for one_report in reports:
            store.add_observation(claim, told(encode(one_report)))
        if state:
            store.finish(claim, state, reason=reason)
        return run_id

    return add


def button(app, label):
    return next(button for button in app.button if button.label == label)


def test_a_device_that_trainings_were_not_made_for_is_refused(page, monkeypatch, tmp_path):
    monkeypatch.setattr(session, "discover", lambda: (device(), found_on(tmp_path, "xpu")))
    app = page("training", device="xpu:0")

    assert not app.exception
    assert "a training needs a CPU or an NVIDIA GPU, but xpu:0 is Intel XPU" in texts([*app.error, *app.warning])
    assert button(app, "Train").disabled


def test_nothing_was_trained_yet_and_a_click_queues_it(page, store):
    app = page("training", modes="fp32", steps="7")
    assert "Not trained on this server yet" in texts(app.caption)
    assert "Recorded example" in texts(app.markdown)
    assert "Not of this server and not with the choices above: 100 steps of 784-784-10" in texts(app.caption)
    assert len(app.get("vega_lite_chart")) == 2  # its loss scale never changed
    assert max(map(len, app.selectbox[0].options)) <= 26  # the model is short in its field, and explained below
    assert "3-10-2: the notebook's training loop: call overhead is all of its time." in texts(app.caption)
    button(app, "Train on cpu").click().run()

    assert not app.exception
    found = store.load_activity(store.claim("tests", {"cpu"}).run_id)
    assert found.activity.kind == "train"
    assert dict(found.activity.arguments) == DEFAULTS | {"modes": "fp32", "steps": "7"}
    assert button(app, "Train on cpu").disabled


@pytest.fixture
def intervals(monkeypatch):
    """Return how often fragments are to be redrawn, as they are registered, while a hundred pages watch."""
    seen, fragment, pace = [], st.fragment, _Pace(chance=lambda: 0.0)
    for number in range(100):
        pace.note(0.02)
        pace.interval_s(f"page {number}")

    def noted(draw, *, run_every=None):
        seen.append(run_every)
        return fragment(draw, run_every=run_every)

    monkeypatch.setattr(st, "fragment", noted)
    monkeypatch.setattr(activity, "PACE", pace)
    return seen


def test_the_more_watch_a_training_the_more_rarely_each_redraws_it(page, observed, beat, intervals):
    beat("measuring", device())
    app = page("training", owner="one of a hundred", activity=observed(report(mode(losses=(0.7,)), final=False)))

    assert not app.exception
    assert intervals[-1] > 5.0
    assert "Many viewers: this is redrawn every" in texts(app.caption)


def test_who_started_a_training_sees_its_first_step_soon_and_nobody_redraws_it_after_its_end(
    page, observed, beat, intervals
):
    beat("measuring", device())
    page("training", activity=observed())
    page("training", activity=observed(report(), state=RunState.DONE))

    assert [interval for interval in intervals if interval != 1.0] == [0.5, None]


def test_a_training_that_runs_shows_how_far_it_is_and_can_be_cancelled(page, observed, store):
    run_id = observed(report(mode(losses=(0.7,)), steps_done=1, final=False))
    app = page("training", activity=run_id)

    assert not app.exception
    assert [progress.proto.text for progress in app.get("progress")] == ["Step 1 of 3"]
    button(app, "Cancel").click().run()
    assert not app.exception


def test_what_came_of_it_is_shown_with_every_figure_also_without_its_link(page, observed):
    app = page("training", activity=observed(report(processes=processes()), state=RunState.DONE))

    assert not app.exception
    told = texts(app.markdown) + texts(app.caption)
    assert "at a loss of 1e-5, 100 % of the gradients are zero, 0.90 % where the loss is scaled by 65,536" in told
    assert "from 65,536 to 32,768; 1 steps were skipped" in told
    assert "2,493,160 bytes" in told
    assert "Why not DataParallel" in told
    assert [metric.value for metric in app.metric] == ["1.60×", "80.0 %", "25.0 %", "2.38 MiB"]
    assert button(app, "Train again on cpu")
    assert "62 parameters" in texts(page("training").caption)
    assert "62 parameters" not in texts(page("training", seed="5").caption)


def test_a_loss_scale_that_never_changed_is_a_sentence_and_no_chart(page, observed):
    steady = replace(fp16(), scales=((0, 65536.0),), skipped_steps=0)
    app = page("training", activity=observed(report(steady), state=RunState.DONE))

    assert "the loss scale stayed at 65,536; 0 steps were skipped" in texts(app.markdown)
    assert not [chart for chart in app.get("vega_lite_chart") if "Loss scale" in chart.proto.spec]


def test_other_work_during_a_training_and_random_labels_are_explained(page, observed):
    run_id = observed(report(data="random", lost_cpu_share=0.35), state=RunState.DONE, data="random")
    app = page("training", data="random", activity=run_id)

    assert "Contended: other work took 35.0 % of the CPU" in texts(app.warning)
    assert "the expected loss on new samples is at least ln 2 = 0.693" in texts(app.caption)
    calm = page("training", activity=observed(report(lost_cpu_share=0.02), state=RunState.DONE))
    assert not calm.warning


def test_a_failure_a_cancellation_and_an_early_end_are_told(page, observed):
    failed = page("training", activity=observed(state=RunState.FAILED, reason="the gradients are wrong"))
    assert "the gradients are wrong" in texts(failed.error)
    cancelled = page("training", activity=observed(state=RunState.CANCELLED, reason="cancelled by its owner"))
    assert "Cancelled by its owner" in texts(cancelled.info)
    early = report(fp16(), stopped="it had taken 4 min", steps=9)
    assert "3 of 9 steps: it had taken 4 min" in texts(
        page("training", activity=observed(early, state=RunState.DONE)).info
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"steps": "0"}, "steps '0': expected whole numbers from 1 to 5,000"),
        ({"modes": "fp32,voodoo"}, "modes 'voodoo'"),
        ({"rate": "nan"}, "learning rate 'nan'"),
        ({"processes": "999"}, "processes '999'"),
        ({"model": "own widths", "widths": "9-9"}, "model '9-9'"),
        ({"model": "voodoo"}, "model 'voodoo'"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_the_accepted_ones(page, query, words):
    app = page("training", **query)

    assert not app.exception
    assert words in texts(app.error).replace("\\", "")
