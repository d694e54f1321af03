"""The page Trace without a file, with one of a CPU and of a GPU, and with what is none."""

from importlib import import_module
from urllib.parse import parse_qs, urlparse

import pytest

from gpuexplore.features.trace import ui
from gpuexplore.jobs.reading import read_apart
from tests.features.trace.analysis.made import DATA, as_bytes, event, gpu_trace
from tests.pages.conftest import compiler, home, page, texts


def read_here(function, *arguments):
    """Read a file in this process, as `jobs.reading.read_apart` does in another one."""
    module, _, name = function.partition(":")
    return getattr(import_module(module), name)(*arguments)


@pytest.fixture
def uploaded(page, monkeypatch):
    """Return a function that opens the page and drops a file onto it."""
    monkeypatch.setattr(ui, "read_apart", read_here)

    def opened(name, content, **query):
        app = page("trace", **query)
        return app.file_uploader[0].upload(name, content, "application/octet-stream").run()

    return opened


def test_without_a_file_a_labelled_example_is_drawn_and_three_lines_say_how_to_make_one(page, monkeypatch):
    monkeypatch.setattr(ui, "read_apart", read_here)
    app = page("trace")

    assert not app.exception
    assert "Record a trace of your own" in {expander.label for expander in app.expander}
    code = app.code[0]
    assert "record_shapes=True" in code.value
    assert len([line for line in code.value.splitlines() if line]) == 3
    assert "Recorded example" in texts(app.markdown)
    assert "Not a trace of yours" in texts(app.caption)
    assert len(app.get("vega_lite_chart")) == 1
    assert "aten::mm" in set(app.dataframe[0].value["Operation"])
    assert "`gpuexplore trace FILE` takes up to 200 MB" in texts(app.caption)


def test_a_device_of_a_link_is_judged_and_kept_before_there_is_a_file(page):
    assert page("trace", device="l4").selectbox[0].value == "l4"
    assert "device 'foo': expected" in texts(page("trace", device="foo").error)


def test_a_trace_of_a_cpu_has_a_headline_a_chart_and_a_table_and_no_roof(uploaded, monkeypatch):
    monkeypatch.setattr(ui, "read_apart", read_apart)  # in a process of its own
    app = uploaded("encoder_layer.json.gz", DATA.read_bytes())

    assert not app.exception
    assert "of CPU time is in" in texts(app.markdown)
    assert "does not name its CPU" in texts(app.caption)
    assert len(app.get("vega_lite_chart")) == 1
    table = app.dataframe[0].value
    assert "aten::mm" in set(table["Operation"])
    assert "Of the roof" not in table.columns, "a column in which nothing is known is left out"
    assert "Recorded example" not in texts(app.markdown)


def test_a_trace_of_a_gpu_has_its_roof_and_ways_to_the_same_here(uploaded):
    app = uploaded("gpu.json", as_bytes(gpu_trace()))
    (first, *_) = app.dataframe[0].value.to_dict("records")

    assert not app.exception
    assert "they reach 69.5 % of the roof" in texts(app.markdown)
    assert first["Of the roof"] == pytest.approx(69.5, abs=0.1)
    assert first["Measure"].startswith("./benchmark?")
    asked = parse_qs(urlparse(first["Predict"]).query)
    assert (asked["op"], asked["shape"], asked["device"]) == (["linear"], ["b=4096,d=4096,k=4096"], ["h100-sxm5-80gb"])
    assert asked["calls"] == ["graph"], "the profiler tells the time of the kernels, without launches"
    (command,) = {line for block in app.code for line in block.value.splitlines() if "predict linear" in line}
    assert command.startswith("gpuexplore predict linear --gpu h100-sxm5-80gb")
    assert command.endswith("--calls graph")
    assert any(block.value.startswith("gpuexplore trace gpu.json") for block in app.code)


@pytest.mark.parametrize("column", ["Measure", "Predict"])
def test_links_of_the_table_restore_the_operation_and_nothing_is_wrong_with_them(uploaded, page, column):
    rows = uploaded("gpu.json", as_bytes(gpu_trace())).dataframe[0].value.to_dict("records")
    link = next(row[column] for row in rows if row["Operation"] == "aten::addmm")
    query = {name: value for name, (value,) in parse_qs(urlparse(link).query).items()}
    app = page({"Measure": "benchmark", "Predict": "what-if"}[column], **query)

    assert not app.exception
    assert not app.error
    assert not app.warning
    assert any(field.value == "b=4096,d=4096,k=4096" for field in app.text_input)


def test_the_device_is_chosen_where_the_trace_does_not_name_it(uploaded):
    app = uploaded("gpu.json", as_bytes(gpu_trace(deviceProperties=[])))
    unknown = texts(app.markdown)
    app.selectbox[0].set_value("t4").run()

    assert "the share of the roof is unknown" in unknown
    assert "on T4 is in" in texts(app.markdown).replace("Tesla ", "")
    assert app.query_params["device"] in ("t4", ["t4"])


def test_this_servers_cpu_is_the_roof_of_a_trace_only_when_it_is_chosen(uploaded):
    app = uploaded("encoder_layer.json.gz", DATA.read_bytes(), device="cpu")

    assert not app.exception
    assert "as chosen" in texts(app.caption)
    assert "Of the roof" in app.dataframe[0].value.columns


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "the file is empty"), (as_bytes(gpu_trace())[:-9], "invalid JSON")]
)
def test_what_is_no_trace_is_told_in_a_sentence_beside_how_to_make_one(uploaded, content, message):
    app = uploaded("trace.json", content)

    assert not app.exception
    assert message in texts(app.error)
    assert "Record a trace of your own" in {expander.label for expander in app.expander}
    assert not app.dataframe


def test_a_larger_trace_than_a_server_reads_is_refused_and_the_command_named(uploaded, monkeypatch):
    monkeypatch.setattr(ui, "MOST_BYTES", 100)
    app = uploaded("gpu.json", as_bytes(gpu_trace()))

    assert "at most 100 bytes unpacked; `gpuexplore trace FILE` takes 200,000,000" in texts(app.error)


def test_names_in_a_trace_are_shown_as_they_are(uploaded):
    app = uploaded("<b>.json", as_bytes({"traceEvents": [event("cpu_op", "[x](javascript:alert) **b**", 0.0, 5.0)]}))

    assert not app.exception
    assert r"\[x\](javascript" in texts(app.markdown) or r"\[x\]" in "".join(block.value for block in app.markdown)
