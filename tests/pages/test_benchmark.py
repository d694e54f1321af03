import json
from dataclasses import replace

import pytest
from sqlalchemy import text
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from gpuexplore.core.model import Experiment, Phase, Result, RunState, Shape, Status
from gpuexplore.request import Request, fields_in, resolve
from gpuexplore.ui.run import view
from gpuexplore.ui.server import OWNER_COOKIE
from tests.analysis.made import device, ok, with_phases
from tests.hardware.torch_answers import found_on
from tests.pages.conftest import OWNER, only, texts


def button(app, label):
    return next(each for each in app.button if each.label.startswith(label))


def charts(app):
    return app.get("vega_lite_chart")


def test_empty_page_predicts_what_run_would_measure_and_says_what_it_takes(page):
    app = page("benchmark")
    assert not app.exception
    assert "Nothing is measured yet: these are predictions" in texts(app.caption)
    assert "#### Predicted for this machine: at 384 × 384 × 384, " in texts(app.markdown)
    described = [json.loads(chart.proto.spec)["description"] for chart in charts(app)]
    assert [words.partition(".")[0] for words in described] == ["Predicted times in fp32", "Predicted times in bf16"]
    assert button(app, "Run 36 points").proto.type == "primary"
    assert "36 points, about" in texts(app.caption)


def test_empty_page_draws_a_labelled_recorded_run_where_nothing_can_be_predicted(page):
    app = page("benchmark", op="matmul", dtype="fp64")
    assert not app.exception
    assert "Nothing is measured yet: press" in texts(app.caption)
    assert "Not measured by this server" in texts(app.caption)
    assert len(charts(app)) == 1


def test_one_click_queues_the_experiment_of_the_form_and_names_it_in_the_url(page, store):
    app = page("benchmark")
    button(app, "Run").click().run()
    run = store.load(only(app.query_params["run"]))
    assert run.state is RunState.QUEUED
    assert run.owner == OWNER
    assert run.experiment == resolve(Request(dtypes="fp64,fp32,bf16"), ["cpu"])


def test_what_is_slow_is_named_before_the_run_and_a_click_leaves_it_out(page):
    app = page("benchmark", size="512", dtype="fp32,fp16")
    assert "fp16 in numpy: " in texts(app.caption)
    button(app, "Leave out fp16").click().run()
    assert "fp16 in numpy: " not in texts(app.caption)


def test_link_that_selects_nothing_is_named(page):
    named = texts(page("benchmark", op="matmul", size="", impl="", dtype="", device="").warning)
    assert all(f"no {what}" in named for what in ("size", "implementation", "dtype", "device"))


def test_a_queued_run_says_that_it_waits(page, store, experiment, beat):
    store.submit(experiment, "somebody else")
    mine = store.submit(experiment, OWNER)
    beat("ready", device())
    text = page("benchmark", run=mine).get("progress")[0].proto.text
    assert "Waiting for 1 run before it, expected to start in about" in text


def test_a_queued_run_says_that_the_leaders_goes_first(page, store, experiment, beat):
    mine = store.submit(experiment, OWNER)
    store.open_room("leader", "GPU course", 4)
    theirs = store.submit(experiment, "leader")
    beat("ready", device())
    text = page("benchmark", run=mine).get("progress")[0].proto.text
    assert text.startswith("Waiting for 1 run before it, the leader's first, expected to start in about")
    assert "leader" not in page("benchmark", owner="leader", run=theirs).get("progress")[0].proto.text


def test_a_run_without_a_measuring_process_says_that_it_is_being_started(page, store, experiment):
    run_id = store.submit(experiment, OWNER)
    assert "is starting" in page("benchmark", run=run_id).get("progress")[0].proto.text


def test_a_run_whose_measuring_process_fell_silent_says_what_happens_next(page, store, claimed, results, beat):
    store.add_result(claimed, results[0])
    beat("measuring", device())
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE supervisors SET beat_epoch_s = beat_epoch_s - 10")
    text = page("benchmark", run=claimed.run_id).get("progress")[0].proto.text
    assert text.startswith("1 of 8 measured · The measuring process does not respond. It is replaced")


def test_the_next_run_says_when_it_is_expected_to_start(page, store, experiment, beat):
    beat("measuring", device())
    store.submit(experiment, "somebody else", estimated_s=90.0)
    store.claim("tests", ["cpu"])
    mine = store.submit(experiment, OWNER)
    text = page("benchmark", run=mine).get("progress")[0].proto.text
    assert text == "Next in the queue, expected to start in about 1 min 30 s"


@pytest.mark.parametrize(("visitor", "says"), [("somebody else", ["The run has ended"]), (OWNER, [])])
def test_those_who_watch_redraw_their_pages_in_turns_when_a_run_ends_and_its_owner_at_once(
    finished, monkeypatch, visitor, says
):
    def watch():
        import streamlit as st

        from gpuexplore.ui.run.view import _draw_progress, _Ticks

        if st.session_state.setdefault("drawn", 0) == 0:
            st.session_state.drawn = 1
            _draw_progress(st.query_params["run"], _Ticks(1.0, None, False))

    monkeypatch.setattr(ContextProxy, "cookies", {OWNER_COOKIE: visitor})
    monkeypatch.setattr(view.PACE, "admits_page", lambda: False)
    app = AppTest.from_function(watch)
    app.query_params["run"] = finished
    app.run()

    assert [bar.proto.text[:17] for bar in app.get("progress")] == says


def test_a_warming_process_is_said_to_load_its_libraries(page, store, experiment, beat):
    run_id = store.submit(experiment, OWNER)
    beat("warming")
    assert "Loading the libraries" in page("benchmark", run=run_id).get("progress")[0].proto.text


def test_a_running_run_shows_the_current_case_the_first_chart_and_a_way_to_cancel(page, store, claimed, results, beat):
    beat("measuring")
    store.add_result(claimed, results[0])
    store.set_current(claimed, claimed.cases[1])
    app = page("benchmark", run=claimed.run_id)
    text = app.get("progress")[0].proto.text
    assert "1 of 8 measured" in text
    assert "torch in fp32" in text
    assert len(charts(app)) >= 1
    assert button(app, "Cancel")


def test_a_first_pass_is_shown_as_such_and_a_final_result_takes_its_place(page, store, claimed, results, beat):
    beat("measuring")
    for result in results:
        store.add_result(claimed, replace(result, provisional=True))
    passed = page("benchmark", run=claimed.run_id)
    store.add_result(claimed, results[0])
    refined = page("benchmark", run=claimed.run_id)

    for app, left in ((passed, 8), (refined, 7)):
        assert app.get("progress")[0].proto.text.startswith(f"8 of 8 measured, refining {left}")
        assert sum("first pass" in flags for flags in app.dataframe[0].value["Flags"]) == left


def test_cancelling_asks_the_supervisor_to_stop(page, store, claimed):
    app = page("benchmark", run=claimed.run_id)
    button(app, "Cancel").click().run()
    assert store.cancel_requested(claimed.run_id)


def test_somebody_elses_run_shows_its_progress_and_no_cancel(page, store, claimed):
    app = page("benchmark", owner="a stranger", run=claimed.run_id)
    assert len(app.get("progress")) == 1
    assert not any(found.label == "Cancel" for found in app.button)


def test_finished_run_shows_its_settings_sentence_chart_table_downloads_and_what_limits_it(page, finished):
    app = page("benchmark", run=finished)
    assert not app.exception
    assert app.session_state["settings.sizes"] == "64,128"
    assert app.session_state["settings.dtypes"] == ["fp32", "bf16"]
    assert not any("differ" in caption.value for caption in app.caption)
    assert list(app.query_params) == ["run"], "so that Back leaves it at once"
    assert "At 128 × 128 × 128" in texts(app.markdown)
    assert len(charts(app)) == 1
    assert len(app.dataframe[0].value) == 8
    labels = [each.proto.label for each in app.get("download_button")]
    assert labels[:4] == ["Report", "JSON", "CSV", "Parquet"]
    assert labels[-2:] == ["SVG", "PNG"]
    assert any("gpuexplore run matmul" in block.value for block in app.code)
    assert any("gx.run('matmul'" in block.value for block in app.code)
    assert why(app).value == why(app).options[0] == "128 × 128 × 128, numpy in fp32"
    assert "reaches only" in texts(app.markdown).partition("**What limits this result**")[2]
    assert "of 1.00 TFLOP/s" in texts(app.caption)


def test_conditions_of_a_run_say_that_nobody_tried_its_device(page, store, experiment, tmp_path):
    there = found_on(tmp_path, "mps")
    asked = replace(experiment, devices=(there.id,), implementations=("torch",), dtypes=("fp32",))
    results = [ok(size=case.shape["m"], on=there.id) for case in asked.cases()]
    results = [replace(result, environment=replace(result.environment, device=there)) for result in results]
    app = page("benchmark", run=store.record(asked, OWNER, results=results))

    assert not app.exception
    assert "gpuexplore has never been tested on Apple MPS" in texts(app.markdown).replace("\\", "")


@pytest.mark.parametrize(("size", "differ"), [("32", True), ("64:128:x2", False)])
def test_settings_that_differ_from_those_of_the_run_below_are_named(page, finished, size, differ):
    app = page("benchmark", run=finished, size=size)
    assert any("settings differ" in caption.value for caption in app.caption) == differ


def test_an_unknown_run_is_not_found_and_offers_a_new_one(page):
    app = page("benchmark", run="nothere")
    assert "nothere" in texts(app.warning)
    button(app, "Start with a new run").click().run()
    assert "run" not in app.query_params


def test_a_failed_run_shows_its_reason_and_keeps_what_was_measured(page, store, claimed, results):
    store.add_result(claimed, results[0])
    store.finish(claimed, RunState.FAILED, reason="the engine broke")
    app = page("benchmark", run=claimed.run_id)
    assert "the engine broke" in texts(app.error)
    assert len(app.dataframe[0].value) == 1


def test_a_cancelled_run_says_how_far_it_got(page, store, claimed, results):
    store.add_result(claimed, results[0])
    store.finish(claimed, RunState.CANCELLED)
    assert "Cancelled after 1 of 8 points" in texts(page("benchmark", run=claimed.run_id).info)


def test_a_run_that_was_dropped_says_why(page, store, experiment):
    run_id = store.submit(experiment, OWNER)
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE owners SET seen_epoch_s = seen_epoch_s - 700")
    store.drop_abandoned()
    told = texts(page("benchmark", run=run_id).info)
    assert "Cancelled before anything was measured. It was still queued and its owner was away for 10 min" in told


def test_a_run_in_which_nothing_could_be_measured_lists_the_reasons_and_draws_nothing(page, store, experiment):
    skipped = [Result(case, Status.SKIPPED, "one call would take about 9 s") for case in experiment.cases()]
    app = page("benchmark", run=store.record(experiment, OWNER, results=skipped))
    assert not app.exception
    assert not charts(app)
    assert "one call would take about 9 s" in app.dataframe[0].value["Remarks"].iloc[0]
    assert "was skipped for the reason below" in texts(app.markdown)


@pytest.mark.parametrize(
    "named",
    [
        {"op": ("gemm", "operation 'gemm': expected matmul")},
        {"shape": ("m=1", "shape of matmul 'm=1'")},
        {
            "size": ("1000000000", "expected 1 to 1048576"),
            "dtype": ("fp8", "dtype 'fp8': expected fp64, fp32, tf32, bf16, fp16"),
            "impl": ("cuda", "implementation of matmul 'cuda': expected numpy"),
            "device": ("cuda:9", "device 'cuda:9': expected cpu"),
            "cache": ("hot", "cache 'hot': expected cold, warm"),
            "data": ("random", "data 'random'"),
            "threads": ("0", "threads '0'"),
            "budget": ("nan", "budget 'nan'"),
            "align": ("here", "align 'here': expected library, pages"),
        },
    ],
)
def test_bad_values_in_a_link_are_named_with_the_accepted_ones_and_the_defaults_stand(page, named):
    app = page("benchmark", **{name: value for name, (value, _) in named.items()})
    assert not app.exception
    assert [said for _, said in named.values() if said not in texts(app.warning)] == []
    assert not button(app, "Run 36 points").disabled


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("sizes", "many", "size 'many': expected"),
        ("sizes", "9:1:x2", "range '9:1:x2': expected"),
        ("sizes", "", "no size"),
        ("repeat", "0", "fresh processes '0': expected"),
        ("repeat", "61", "fresh processes '61': expected"),
    ],
)
def test_bad_value_in_a_widget_is_named_and_nothing_can_be_queued(page, store, field, value, said):
    app = page("benchmark")
    app.text_input(key=f"settings.{field}").set_value(value).run()
    assert not app.exception
    assert said in texts(app.error)
    assert button(app, "Run").disabled
    assert store.queue_length() == 0


def test_what_does_not_fit_the_memory_is_refused_with_both_figures(page):
    app = page("benchmark")
    app.text_input(key="settings.sizes").set_value("65536").run()
    assert "GiB" in texts(app.error)
    assert button(app, "Run").disabled


def test_settings_are_written_to_the_url_and_read_back(page):
    app = page("benchmark")
    app.text_input(key="settings.sizes").set_value("32,48").run()
    query = {name: only(value) for name, value in app.query_params.items()}
    assert Request(**fields_in(query)).sizes == "32,48"
    assert page("benchmark", **query).session_state["settings.sizes"] == "32,48"


def test_another_operation_brings_its_own_sizes(page):
    app = page("benchmark")
    app.selectbox(key="settings.operation").set_value("vector_add").run()
    assert not app.exception
    assert app.session_state["settings.sizes"] == "10000,100000,1000000,4000000"


@pytest.mark.parametrize("operation", ["vector_add", "copy"])  # with FLOPs and without
def test_memory_bound_operation_shows_bandwidth_instead_of_compute_rate(page, store, operation):
    sizes = (10_000, 100_000)
    experiment = Experiment(operation, tuple(Shape.of(n=n) for n in sizes), ("fp32",), ("numpy",))
    results = [ok(1e-4, operation=operation, shape=case.shape, implementation="numpy") for case in experiment.cases()]
    app = page("benchmark", run=store.record(experiment, OWNER, results=results), chart="rate")
    assert not app.exception
    assert "Memory rate" in charts(app)[0].proto.spec
    assert "B/s" in texts(app.markdown)


def test_a_preset_fills_the_exact_shapes_and_the_url_names_it(page):
    app = page("benchmark")
    app.button_group(key="form.preset").select("notebook-1000").run()

    assert not app.exception
    assert app.text_input(key="settings.shapes").value == "notebook-1000"
    assert only(app.query_params["shape"]) == "notebook-1000"
    assert button(app, "Run 9 points")


def test_a_link_with_a_preset_shows_it_as_chosen(page):
    app = page("benchmark", op="linear", shape="notebook-linear-cpu")

    assert not app.exception
    assert app.session_state["form.preset"] == "notebook-linear-cpu"


def test_the_rungs_of_a_ladder_can_be_chosen_and_are_not_by_default(page):
    app = page("benchmark")
    chosen = app.multiselect(key="settings.implementations")

    assert chosen.value == ["numpy", "numba-cpu", "torch"]
    chosen.set_value(["numba-cpu-naive"]).run()
    assert button(app, "Run 12 points")


def why(app):
    return next(box for box in app.selectbox if box.label == "Result")


def test_a_training_step_tells_its_phases_beside_what_limits_it(page, store):
    shape = Shape.of(batch=100, inputs=3, hidden=10, outputs=2, layers=2)
    step = ok(1e-4, operation="mlp_step", shape=shape)
    timed = with_phases(step, Phase("forward", (4e-5,)), Phase("backward", (7e-5,)))
    run_id = store.record(Experiment("mlp_step", (shape,), ("fp32",), ("torch",)), OWNER, results=[timed])
    app = page("benchmark", run=run_id)

    assert not app.exception
    assert "forward 40.0 µs (250 MFLOP/s), backward 70.0 µs (200 MFLOP/s)" in texts(app.markdown)


def test_any_result_can_be_explained_also_one_that_has_no_time(page, store, experiment, results):
    wrong = Result(experiment.cases()[0], Status.INCORRECT, "relative error *0.5*")
    app = page("benchmark", run=store.record(experiment, OWNER, results=[wrong, *results[1:]]))
    assert "incorrect" in set(app.dataframe[0].value["Status"])
    assert "relative error *0.5*" in " ".join(app.dataframe[0].value["Remarks"])
    why(app).select("64 × 64 × 64, numpy in fp32 (incorrect)").run()

    assert not app.exception
    assert "numpy in fp32 computes a wrong answer here" in texts(app.markdown)
    assert "relative error *0.5*" in texts(app.caption)


def test_a_growing_run_explains_the_fastest_so_far_and_offers_no_choice(page, store, claimed, results):
    store.add_result(claimed, results[0])
    app = page("benchmark", run=claimed.run_id)

    assert "the fastest so far" in texts(app.caption)
    assert not any(box.label == "Result" for box in app.selectbox)


def test_another_run_brings_its_own_settings(page, store, finished):
    app = page("benchmark", run=finished)
    app.query_params["run"] = store.submit(Experiment("copy", (Shape.of(n=32),), ("fp32",), ("numpy",), ("cpu",)), "me")
    app.run()

    assert app.session_state["settings.operation"] == "copy"


def test_a_run_of_another_version_is_named_and_leaves_the_other_pages_alone(page, store, finished):
    with store.writing() as connection:
        connection.execute(text("update runs set experiment = json_set(experiment, '$.implementations[0]', 'abacus')"))
        connection.execute(text("update results set payload = json_set(payload, '$.case.implementation', 'abacus')"))

    app = page("benchmark", run=finished)
    assert not app.exception
    assert f"run {finished} contains data that this version of gpuexplore does not know" in texts(
        (*app.error, *app.warning, *app.info)
    )
    for name in ("roofline", "what-if"):
        assert not page(name).exception


def test_the_first_visit_is_offered_a_tour(page, monkeypatch):
    went = []
    monkeypatch.setattr(
        "gpuexplore.features.lessons.ui.offer.st.switch_page",
        lambda page, query_params: went.append((page.parent.name, query_params)),
    )
    app = page("benchmark")
    app.button(key="welcome.tour").click().run()

    assert went == [("lessons", {"lesson": "tour"})]


@pytest.mark.parametrize("known_by", ["a run", "an answer"])
def test_visitor_with_a_run_or_an_answer_is_not_offered_the_tour(page, store, experiment, results, known_by):
    if known_by == "a run":
        store.record(experiment, OWNER, results=results)
    else:
        store.add_answer(OWNER, ("tour", "x", "a"), guesses={}, runs=[])

    assert "welcome.tour" not in [button.key for button in page("benchmark").button]


@pytest.mark.parametrize("layout", ["NN", "NT"])
def test_the_line_above_a_run_names_another_layout(page, store, experiment, results, layout):
    options = replace(experiment.options, layout=layout)
    turned = [replace(result, case=replace(result.case, options=options)) for result in results]
    app = page("benchmark", run=store.record(replace(experiment, options=options), OWNER, results=turned))

    assert not app.exception
    assert ("cpu, layout NT" in texts(app.markdown)) == (layout == "NT")


def test_where_arrays_lie_is_chosen_and_kept_in_the_link(page):
    app = page("benchmark", align="pages")
    chosen = app.selectbox(key="settings.align")

    assert (chosen.label, chosen.value) == ("Arrays", "pages")
    assert chosen.options == ["library's own", "2 MiB pages"]
    assert app.query_params["align"] in ("pages", ["pages"])
    assert button(app, "Run").disabled is False


def test_layouts_are_offered_where_matrices_are_multiplied(page):
    app = page("benchmark", layout="NT")
    assert not app.warning
    assert app.selectbox(key="settings.layout").options == ["NN", "NT", "TN"]
    assert app.selectbox(key="settings.layout").value == "NT"

    app.selectbox(key="settings.operation").set_value("softmax").run()
    assert app.selectbox(key="settings.layout").options == ["NN"]
    assert "layout" not in app.query_params
    assert button(app, "Run").disabled is False
