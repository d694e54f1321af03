import pytest

from gpuexplore.activity import of_kind
from gpuexplore.core.model import RunState
from gpuexplore.features.tensors.analysis.evaluate import StepRefused, evaluate
from gpuexplore.features.tensors.analysis.reading import EXPECTED_S, KIND, _arguments_of
from gpuexplore.features.tensors.ui import DEFAULT, EXAMPLES
from tests.analysis.made import device
from tests.pages.conftest import OWNER, beat, compiler, home, page, store, texts, told

LARGE = EXAMPLES["2000 × 2000"]
BUSY = [{"name": "contended", "evidence": "other work took 60 % of the CPU meanwhile"}]
READINGS = {
    "loop contiguous": {"median_s": 1e-3, "ci95_s": [0.9e-3, 1.1e-3], "bytes_per_s": 16e9, "n": 20, "flags": BUSY},
    "loop strided": {"median_s": 13e-3, "ci95_s": None, "bytes_per_s": 1.2e9, "n": 3, "flags": BUSY},
}
REPORT = {
    "environment": {"device": {"name": "a made-up CPU"}},
    "cache": "warm",
    "readings": READINGS,
    "ratios": {"loop": {"median": 13.0, "ci95": [12.5, 13.6]}, "copy": {"median": 8.5, "ci95": None}},
}


def pressed(app, label):
    """Return the page after a press of the button with that label."""
    return next(button for button in app.button if button.label == label).click().run()


@pytest.fixture
def asked(store, beat):
    """Return how to put the measurement of a tensor into the queue, in some state; it gives the activity's id."""
    beat("ready", device())

    def queued(state=None, reason=None, *, report=None):
        activity = of_kind(KIND, _arguments_of(evaluate(LARGE).result), expected_s=EXPECTED_S)
        run_id = store.submit(activity, OWNER)
        if state is not None:
            claim = store.claim("tests", {"cpu"})
            if report:
                store.add_observation(claim, told(report))
            store.finish(claim, state, reason=reason)
        return run_id

    return queued


def steps(app):
    table = app.dataframe[0].value
    return list(zip(table["Step"], table["Is"], table["Strides"], strict=True))


def test_the_first_visit_shows_a_transpose(page):
    app = page("tensors")

    assert not app.exception
    assert app.text_input[0].value == DEFAULT
    assert steps(app) == [("4x4", "start", "(4, 1)"), ("x", "start", "(4, 1)"), ("x.t()", "view", "(1, 4)")]
    assert len(app.get("vega_lite_chart")) == 1
    assert "#### `x.t()`: shape (4, 4), strides (1, 4), offset 0" in texts(app.markdown)
    assert "Not measured yet." in texts(app.caption)


def test_an_example_is_written_into_the_field(page):
    app = pressed(page("tensors", expression="x = 2x2; x"), "A column")

    assert not app.exception
    assert app.text_input[0].value == EXAMPLES["A column"]
    assert not app.error


@pytest.mark.parametrize("label", [label for label in EXAMPLES if label != "view fails"])
def test_every_example_but_one_is_evaluated(label):
    assert evaluate(EXAMPLES[label]).steps


def test_a_write_says_who_sees_it_and_draws_one_that_does(page):
    app = page("tensors", expression="x = 2x3; y = x.t(); z = x.clone(); x[0][1] = 100")

    assert "y sees it at [1, 0]." in texts(app.markdown)
    assert "z has its own storage" in texts(app.markdown)
    assert app.selectbox[0].value == "y"


def test_a_link_restores_the_tensor_that_is_drawn_and_the_device(page):
    app = page("tensors", expression="x = 2x3; y = x.t(); y[0]", show="y", dtype="fp16", device="cuda")

    assert [box.value for box in app.selectbox] == ["y", "fp16", "cuda"]
    assert "torch.cuda.HalfStorage" in texts(app.code)
    assert "sectors of 32 bytes" in texts(app.markdown)


def test_a_view_that_fails_is_explained_and_repaired_by_a_button(page):
    app = page("tensors", expression=EXAMPLES["view fails"])

    assert "character 42" in texts(app.error)
    assert "would need a stride of 2 × 3 = 6; it has 1" in texts(app.markdown)
    assert steps(app)[-1] == ("x.t()", "view", "(1, 3)")

    app = pressed(app, "Use `.contiguous().view(2, 3)`")

    assert not app.error
    assert steps(app)[-1] == ("x.t().contiguous().view(2, 3)", "view", "(3, 1)")
    assert app.text_input[0].value == EXAMPLES["Its repair"]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("__import__('os')", "__import__"),
        ("x = 4x4; x[1", "character 13"),
        ("x = 4x4; x[::-1]", "torch has no negative strides"),
        ("1000000x1000000", "1,000,000,000,000 elements"),
        ("x = 4x4; x.view(<b>)", "'<'"),
    ],
)
def test_what_cannot_be_evaluated_is_named_and_the_field_keeps_it(page, expression, said):
    app = page("tensors", expression=expression)

    assert not app.exception
    assert said in texts(app.error)
    assert app.text_input[0].value == expression


def test_a_large_tensor_is_not_drawn_and_its_cost_is_told_and_an_empty_one_costs_nothing(page):
    app = page("tensors", expression=LARGE)
    assert not app.get("vega_lite_chart")
    assert "Too large to draw" in texts(app.caption)
    assert "16 times as much" in texts(app.markdown)

    app = page("tensors", expression="x = 4x4; x[2:2]")
    assert not app.exception
    assert "It has no elements to read" in texts(app.caption)
    assert "nothing to draw" in texts(page("tensors", expression="arange(0)").caption)


@pytest.mark.parametrize(
    ("expression", "arguments"),
    [
        ("x = 2x3; x.t()", {"shape": "3,2", "strides": "1,3"}),
        ("x = 4x4; x[0, 0]", None),
        ("x = 4x4; x[4:]", None),
        ("1x1x1x1x2", None),
        ("10000x10000", None),
    ],
)
def test_what_the_measurement_is_asked_for(expression, arguments):
    assert _arguments_of(evaluate(expression).result) == arguments


def test_the_button_queues_the_measurement(page, store, beat):
    beat("ready", device())
    app = page("tensors", expression=LARGE)
    pressed(app, "Measure it on cpu")

    (run,) = store.waiting()
    assert store.load_activity(run.id).arguments == _arguments_of(evaluate(LARGE).result)
    assert run.id in app.query_params["activity"]


def test_a_measurement_that_waits_can_be_cancelled(page, asked, store):
    run_id = asked()
    app = page("tensors", expression=LARGE, activity=run_id)
    assert "Next in the queue" in texts(app.markdown)
    pressed(app, "Cancel")

    assert store.load_activity(run_id).state is RunState.CANCELLED
    assert "Cancelled by its owner" in texts(app.info)


def test_a_measurement_that_failed_has_its_reason(page, asked):
    run_id = asked(RunState.FAILED, "the worker ended")

    assert "the worker ended" in texts(page("tensors", expression=LARGE, activity=run_id).error)


@pytest.mark.parametrize("named", [True, False])
def test_a_measurement_is_shown_to_all_with_intervals_device_and_cache(page, asked, named):
    run_id = asked(RunState.DONE, report=REPORT)
    app = page("tensors", expression=LARGE, **({"activity": run_id} if named else {}))

    assert not app.exception
    assert "13.0× the time of the contiguous one (12.5× to 13.6×, 95 %)" in texts(app.markdown).replace("**", "")
    assert "may read in another order" in texts(app.markdown)
    assert list(app.dataframe[1].value["Read"]) == list(READINGS)
    assert "a made-up CPU with warm caches" in texts(app.caption)
    assert texts(app.warning) == (
        "contended: other work took 60 % of the CPU meanwhile (loop contiguous, loop strided)"
    )


def test_a_measurement_of_another_tensor_is_not_shown(page, asked):
    run_id = asked(RunState.DONE, report=REPORT)

    assert "Not measured yet." in texts(page("tensors", expression="x = 4x4; x.t()", activity=run_id).caption)
